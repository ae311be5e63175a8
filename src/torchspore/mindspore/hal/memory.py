"""The memory use of a device; on the CPU the figures count from the first query, or from the setting of `max_device_memory`.
"""
from __future__ import annotations

from typing import Any

from torchspore.engine.devices import device_facts
from torchspore.engine.memory import limit
from torchspore.mindspore.hal.device import present


def _counted(function: str, device_target: str | None) -> str:
    """Return the kind of device of the call `function`, and start counting its memory."""
    target = present(function, device_target)
    if target == "CPU":
        limit.count_from_now()
    return target


def _figures(function: str, device_target: str | None) -> dict[str, int]:
    return device_facts.memory(_counted(function, device_target))


def memory_allocated(device_target: str | None = None) -> int:
    """Return the bytes that Tensors use now."""
    return _figures("memory_allocated", device_target)["memory_allocated"]


def memory_reserved(device_target: str | None = None) -> int:
    """Return the bytes that torch has reserved on the device."""
    return _figures("memory_reserved", device_target)["memory_reserved"]


def max_memory_allocated(device_target: str | None = None) -> int:
    """Return the peak of the bytes that Tensors used."""
    return _figures("max_memory_allocated", device_target)["max_memory_allocated"]


def max_memory_reserved(device_target: str | None = None) -> int:
    """Return the peak of the bytes that torch had reserved."""
    return _figures("max_memory_reserved", device_target)["max_memory_reserved"]


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """Return the four figures, and the reserved but unused bytes, under MindSpore's names."""
    figures = _figures("memory_stats", device_target)
    return {
        "total_reserved_memory": figures["memory_reserved"], "total_allocated_memory": figures["memory_allocated"],
        "total_idle_memory": figures["memory_reserved"] - figures["memory_allocated"],
        "max_reserved_memory": figures["max_memory_reserved"], "max_allocated_memory": figures["max_memory_allocated"],
    }


def memory_summary(device_target: str | None = None) -> str:
    """Return `memory_stats` as a text table."""
    rows = memory_stats(device_target)
    width = max(map(len, rows))
    return "\n".join(f"| {name:{width}} | {size:>16,} B |" for name, size in rows.items())


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """Reset the peak figures."""
    device_facts.reset_peaks(_counted("reset_peak_memory_stats", device_target))


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def empty_cache() -> None:
    """Release unused reserved memory to the device."""
    device_facts.empty_cache(device_facts.current_target())
