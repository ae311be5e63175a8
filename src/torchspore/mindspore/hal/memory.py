"""How much memory of a device is in use; on the CPU the figures count from the first question on, or from where
`max_device_memory` was set.
"""
from __future__ import annotations

from typing import Any

from torchspore.engine.core import device_facts
from torchspore.engine.memory import limit
from torchspore.mindspore.hal.device import present


def _counted(function: str, device_target: str | None) -> str:
    """The kind of device that `function` asks for. Its memory is counted from now on."""
    target = present(function, device_target)
    if target == "CPU":
        limit.count_from_now()
    return target


def _figures(function: str, device_target: str | None) -> dict[str, int]:
    return device_facts.memory(_counted(function, device_target))


def memory_allocated(device_target: str | None = None) -> int:
    """Bytes that Tensors hold now."""
    return _figures("memory_allocated", device_target)["memory_allocated"]


def memory_reserved(device_target: str | None = None) -> int:
    """Bytes that torch has taken from the device."""
    return _figures("memory_reserved", device_target)["memory_reserved"]


def max_memory_allocated(device_target: str | None = None) -> int:
    """The most bytes that Tensors held at once."""
    return _figures("max_memory_allocated", device_target)["max_memory_allocated"]


def max_memory_reserved(device_target: str | None = None) -> int:
    """The most bytes that torch had taken at once."""
    return _figures("max_memory_reserved", device_target)["max_memory_reserved"]


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """The four figures, and what is reserved and held by no Tensor, under MindSpore's names."""
    found = _figures("memory_stats", device_target)
    return {
        "total_reserved_memory": found["memory_reserved"], "total_allocated_memory": found["memory_allocated"],
        "total_idle_memory": found["memory_reserved"] - found["memory_allocated"],
        "max_reserved_memory": found["max_memory_reserved"], "max_allocated_memory": found["max_memory_allocated"],
    }


def memory_summary(device_target: str | None = None) -> str:
    """`memory_stats` as a table of text."""
    rows = memory_stats(device_target)
    width = max(map(len, rows))
    return "\n".join(f"| {name:{width}} | {size:>16,} B |" for name, size in rows.items())


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """Starts the largest figures anew."""
    device_facts.reset_peaks(_counted("reset_peak_memory_stats", device_target))


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def empty_cache() -> None:
    """Gives memory that no Tensor holds back to the device."""
    device_facts.empty_cache(device_facts.current_target())
