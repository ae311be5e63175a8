"""`mindspore.hal`: devices and their memory. Streams and events are torch's own business here and not offered."""
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
from torchspore.names import missing

__all__ = [
    "device_count", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "is_available",
    "is_initialized", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "synchronize",
]
__getattr__ = missing(__name__)
