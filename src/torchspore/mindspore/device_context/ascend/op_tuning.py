"""Selection of kernels; `jit_compile` of the option `ascend_config`, and the tuner's options."""
from __future__ import annotations

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.public_names import missing


def op_compile(value: bool) -> None:
    """Sets whether the levels O1 and O2 may write and compile kernels. Raises TypeError unless it is a bool."""
    if not isinstance(value, bool):
        raise TypeError(message(f"op_compile({short(value)})", f"True or False, got {type(value).__name__}"))
    STORE.change("context", {"ascend_config": {"jit_compile": value}}, "ascend.op_tuning.op_compile")


def aoe_tune_mode(tune_mode: str) -> None:
    """Sets the time of the search for the fastest form of each graph: 'online' or 'offline'. Raises ValueError for another name."""
    STORE.change("context", {"aoe_tune_mode": tune_mode}, "ascend.op_tuning.aoe_tune_mode")


def aoe_job_type(config: str) -> None:
    """Sets the target of the tuning: '1' the full graph, '2' its single operators. Raises ValueError for another name."""
    STORE.change("context", {"aoe_config": {"job_type": config}}, "ascend.op_tuning.aoe_job_type")


def aclnn_cache(enable_global_cache: bool = False, cache_queue_length: int = 10000) -> None:
    """Configures a cache of Ascend's library, which is not used here: it has no effect, and `explain` reports it.

    Raises ValueError unless it is a bool, and for a length below 0.
    """
    if enable_global_cache not in (True, False):
        raise ValueError(message(f"aclnn_cache(enable_global_cache={short(enable_global_cache)})", "True or False"))
    if cache_queue_length < 0:
        raise ValueError(message(f"aclnn_cache(cache_queue_length={short(cache_queue_length)})", "an int from 0 on"))
    effects.note("kernels", f"aclnn_cache({enable_global_cache}, {cache_queue_length}): no operator goes through aclnn's cache")


__all__ = ["aclnn_cache", "aoe_job_type", "aoe_tune_mode", "op_compile"]
__getattr__ = missing(__name__)
