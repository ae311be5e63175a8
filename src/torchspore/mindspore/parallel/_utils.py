"""What training cells of the model zoo ask: mode, mean, number of devices, all from the options of parallel execution."""
from __future__ import annotations

from torchspore.context.public import get_auto_parallel_context


def _get_parallel_mode() -> str:
    """The parallel mode."""
    return str(get_auto_parallel_context("parallel_mode"))


def _get_gradients_mean() -> bool:
    """Whether gradients of several devices are averaged."""
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_device_num() -> int:
    """How many devices take part."""
    return int(get_auto_parallel_context("device_num"))


def _get_global_rank() -> int:
    """Which of them this process is."""
    return int(get_auto_parallel_context("global_rank"))


def _is_sharding_propagation() -> bool:
    """Whether strategies are to spread from the operators that have one; there is one process, and none to spread to."""
    return str(get_auto_parallel_context("search_mode")) == "sharding_propagation"
