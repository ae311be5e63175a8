"""Which devices there are: `device_target` None stands for the one that operators run on."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.engine.core import device, device_facts
from torchspore.engine.eager import pynative

TARGETS = ("CPU", "GPU", "Ascend")


def checked(call: str, device_target: Any) -> str:
    """The name of a device target. Raises TypeError and ValueError for what is none."""
    if device_target is None:
        return device_facts.current_target()
    if not isinstance(device_target, str):
        raise TypeError(message(f"{call}(device_target={short(device_target)})", f"a str, got {type(device_target).__name__}"))
    if device_target not in TARGETS:
        raise ValueError(message(f"{call}(device_target={short(device_target)})", list_choices(TARGETS)))
    return device_target


def present(call: str, device_target: Any) -> str:
    """The same for a device that this machine has. Raises ValueError where it has none."""
    target = checked(call, device_target)
    if not device.count(target):
        raise ValueError(message(f"{call}(device_target={target!r})", "a device that this machine has", hint="ask hal.is_available first"))
    return target


def _place(call: str, device_id: Any, device_target: Any) -> tuple[str, int]:
    target = present(call, device_target)
    if isinstance(device_id, bool) or not isinstance(device_id, int):
        raise TypeError(message(f"{call}(device_id={short(device_id)})", f"an int, got {type(device_id).__name__}"))
    if not 0 <= device_id < device.count(target):
        raise ValueError(message(f"{call}(device_id={device_id})", f"an int from 0 to {device.count(target) - 1}; none is negative"))
    return target, device_id


def is_available(device_target: str) -> bool:
    """Whether this machine has such a device, and torch can use it."""
    return device.count(checked("is_available", device_target)) > 0


def is_initialized(device_target: str) -> bool:
    """Whether this process has used such a device; the CPU counts as used."""
    return device_facts.is_initialized(checked("is_initialized", device_target))


def device_count(device_target: str | None = None) -> int:
    """How many such devices there are."""
    return device.count(present("device_count", device_target))


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """The model of a device."""
    return device_facts.name(*_place("get_device_name", device_id, device_target))


def get_device_capability(device_id: int, device_target: str | None = None) -> tuple[int, int] | None:
    """The compute capability (major, minor) of a GPU; None for other devices."""
    return device_facts.capability(*_place("get_device_capability", device_id, device_target))


def get_device_properties(device_id: int, device_target: str | None = None) -> Any:
    """What a device is: name, total_memory, …; None for the CPU."""
    return device_facts.properties(*_place("get_device_properties", device_id, device_target))


def get_arch_list(device_target: str | None = None) -> list[str] | None:
    """The GPUs that torch was compiled for; None for other devices."""
    return device_facts.architectures(present("get_arch_list", device_target))


def synchronize() -> None:
    """Waits until the device has computed all that was asked of it."""
    pynative.wait()
