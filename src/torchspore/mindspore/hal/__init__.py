"""`mindspore.hal`: devices, their memory, streams and events."""
from torchspore.mindspore.hal.device import (
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_initialized,
    synchronize,
)
from torchspore.mindspore.hal.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
)
from torchspore.mindspore.hal.stream import (
    Event,
    Stream,
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
)
from torchspore.public_names import missing

__all__ = [
    "Event", "Stream", "StreamCtx", "communication_stream", "current_stream", "default_stream",
    "device_count", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "is_available",
    "is_initialized", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_cur_stream",
    "synchronize",
]
__getattr__ = missing(__name__)
