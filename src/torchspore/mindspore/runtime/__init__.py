"""`mindspore.runtime`: memory, threads and streams."""
from torchspore.mindspore.hal.device import synchronize
from torchspore.mindspore.hal.memory import empty_cache
from torchspore.mindspore.hal.stream import (
    Event,
    Stream,
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
)
from torchspore.mindspore.runtime.executor import (
    dispatch_threads_num,
    launch_blocking,
    set_cpu_affinity,
    set_kernel_launch_capture,
    set_kernel_launch_group,
)
from torchspore.mindspore.runtime.memory import (
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_memory,
)
from torchspore.public_names import missing

__all__ = [
    "Event", "Stream", "StreamCtx", "communication_stream", "current_stream", "default_stream", "dispatch_threads_num", "empty_cache",
    "launch_blocking", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_cpu_affinity",
    "set_cur_stream", "set_kernel_launch_capture", "set_kernel_launch_group", "set_memory", "synchronize",
]
__getattr__ = missing(__name__)
