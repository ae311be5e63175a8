"""Queries of the model zoo's training cells: mode, mean, number of devices, all from the options of parallel execution."""
from __future__ import annotations

from torchspore.base.text import message
from torchspore.context.public import get_auto_parallel_context


def _get_parallel_mode() -> str:
    """Return the parallel mode."""
    return str(get_auto_parallel_context("parallel_mode"))


def _get_gradients_mean() -> bool:
    """Return whether gradients of several devices are averaged."""
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_device_num() -> int:
    """Return the number of devices: 1 in stand-alone mode, `device_num` if it is set, otherwise the number of processes."""
    from torchspore.distributed.parallel import settings

    return settings.device_num()


def _device_number_check(parallel_mode: str, device_number: int) -> None:
    """Raises ValueError for more than one device in the parallel mode 'stand_alone'."""
    if parallel_mode == "stand_alone" and device_number != 1:
        raise ValueError(message(f"device_number={device_number}", "1, as parallel_mode is 'stand_alone'"))


def _get_global_rank() -> int:
    """Return the rank of this process."""
    return int(get_auto_parallel_context("global_rank"))


def _is_sharding_propagation() -> bool:
    """Return whether strategies propagate from the operators that have one; with one process they do not."""
    return str(get_auto_parallel_context("search_mode")) == "sharding_propagation"


def _get_pipeline_stages() -> int:
    """Return the number of stages of the layers."""
    return int(get_auto_parallel_context("pipeline_stages"))


def _get_enable_parallel_optimizer() -> bool:
    """Return whether the optimizer's states are sharded over devices."""
    return bool(get_auto_parallel_context("enable_parallel_optimizer"))


def _get_full_batch() -> bool:
    """Return whether each device receives the full batch."""
    return bool(get_auto_parallel_context("full_batch"))


def _get_parameter_broadcast() -> bool:
    """Return whether the first device sends its Parameters to the others before training."""
    return bool(get_auto_parallel_context("parameter_broadcast"))


def _get_stage_device_num() -> int:
    """Return the number of devices of each stage."""
    return _get_device_num() // _get_pipeline_stages()


def _is_in_auto_parallel_mode() -> bool:
    """Return whether operators are split over devices."""
    return _get_parallel_mode() in ("semi_auto_parallel", "auto_parallel")


def _is_in_data_parallel_mode() -> bool:
    """Return whether each device trains on a part of the batch."""
    return _get_parallel_mode() == "data_parallel"


def _is_in_hybrid_parallel_mode() -> bool:
    """Return whether the program itself assigns operators to devices."""
    return _get_parallel_mode() == "hybrid_parallel"


def _need_to_full() -> bool:
    """Return whether a batch is a part of the network's batch."""
    return _is_in_auto_parallel_mode() and not _get_full_batch()
