"""Facts about the devices of this machine, and the memory of them that torch uses."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base import once
from torchspore.base.frames import warn
from torchspore.context.store import STORE
from torchspore.engine.devices import device, gpu_kinds
from torchspore.engine.native import allocator

_COUNTERS = {
    "memory_allocated": "allocated_bytes.all.current", "memory_reserved": "reserved_bytes.all.current",
    "max_memory_allocated": "allocated_bytes.all.peak", "max_memory_reserved": "reserved_bytes.all.peak",
}


def current_target() -> str:
    """The `device_target` in force."""
    return str(STORE.get("device_target"))


def module_of(target: str) -> Any:
    """torch's module for a kind of accelerator."""
    return device.backend(target)


def is_initialized(target: str) -> bool:
    """Return whether this process has used the device; the CPU from the start."""
    return target == "CPU" or bool(device.count(target) and module_of(target).is_initialized())


def properties(target: str, index: int) -> Any:
    """torch's description of a device; None for the CPU."""
    return None if target == "CPU" else module_of(target).get_device_properties(index)


def name(target: str, index: int) -> str:
    """The model of a device."""
    return "CPU" if target == "CPU" else str(module_of(target).get_device_name(index))


def capability(target: str, index: int) -> tuple[int, int] | None:
    """The compute capability of a GPU of CUDA or ROCm; None for others."""
    return torch.cuda.get_device_capability(index) if target == "GPU" and gpu_kinds.device_type() == gpu_kinds.CUDA else None


def architectures(target: str) -> list[str] | None:
    """Return the GPU architectures that torch was compiled for; None if torch names none."""
    list_architectures = getattr(module_of(target), "get_arch_list", None) if target == "GPU" else None
    return list(list_architectures()) if list_architectures is not None else None


def memory(target: str) -> dict[str, int]:
    """Bytes that Tensors hold and that torch reserves on the current device, now and at most; 0 on a CPU whose memory is not counted."""
    if target == "CPU":
        figures = allocator.figures()
        used_bytes, peak = (0, 0) if figures is None else (figures.used, figures.peak)
        return {key: peak if key.startswith("max") else used_bytes for key in _COUNTERS}
    if not is_initialized(target):
        return dict.fromkeys(_COUNTERS, 0)
    stats = module_of(target).memory_stats()
    if _COUNTERS["max_memory_allocated"] not in stats and once.first_time("no peaks of memory"):
        warn(f"torch does not count the peak of memory on {gpu_kinds.NAMES[gpu_kinds.kind()]}: the figures of max_memory_allocated and "
             "max_memory_reserved are those of now.")
    return {key: int(stats.get(counter, stats.get(counter.replace("peak", "current"), 0))) for key, counter in _COUNTERS.items()}


def reset_peaks(target: str) -> None:
    """Reset the peak figures to the current ones."""
    if target == "CPU":
        allocator.reset_peak()
    elif is_initialized(target):
        reset = getattr(module_of(target), "reset_peak_memory_stats", None)
        if reset is not None:
            reset()


def empty_cache(target: str) -> None:
    """Return unused memory to the device."""
    if target != "CPU" and is_initialized(target):
        module_of(target).empty_cache()
