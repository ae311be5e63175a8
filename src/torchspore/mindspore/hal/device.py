"""The available devices: `device_target` None means the device that operators run on."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import list_choices, message, short
from torchspore.engine.devices import device, device_facts
from torchspore.engine.execution import pynative

TARGETS = ("CPU", "GPU", "Ascend")


def checked(call: str, device_target: Any) -> str:
    """Return the name of a device target. Raises TypeError and ValueError for an invalid one."""
    if device_target is None:
        return device_facts.current_target()
    if not isinstance(device_target, str):
        raise TypeError(message(f"{call}(device_target={short(device_target)})", f"a str, got {type(device_target).__name__}"))
    if device_target not in TARGETS:
        raise ValueError(message(f"{call}(device_target={short(device_target)})", list_choices(TARGETS)))
    return device_target


def present(call: str, device_target: Any) -> str:
    """Return the same for a device of this machine. Raises ValueError if it has none."""
    target = checked(call, device_target)
    if not device.count(target):
        raise ValueError(message(f"{call}(device_target={target!r})", "a device that this machine has", hint="ask hal.is_available first"))
    return target


def _device_of(call: str, device_id: Any, device_target: Any) -> tuple[str, int]:
    target = present(call, device_target)
    check_int_type(call, "device_id", device_id)
    if not 0 <= device_id < device.count(target):
        raise ValueError(message(f"{call}(device_id={device_id})", f"an int from 0 to {device.count(target) - 1}; no negative number"))
    return target, device_id


def is_available(device_target: str) -> bool:
    """Return whether this machine has such a device, and torch can use it."""
    return device.count(checked("is_available", device_target)) > 0


def is_initialized(device_target: str) -> bool:
    """Return whether this process has used such a device; the CPU counts as used."""
    return device_facts.is_initialized(checked("is_initialized", device_target))


def device_count(device_target: str | None = None) -> int:
    """Return the number of such devices."""
    return device.count(present("device_count", device_target))


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Return the model of a device."""
    return device_facts.name(*_device_of("get_device_name", device_id, device_target))


def get_device_capability(device_id: int, device_target: str | None = None) -> tuple[int, int] | None:
    """Return the compute capability (major, minor) of a GPU; None for other devices."""
    return device_facts.capability(*_device_of("get_device_capability", device_id, device_target))


def get_device_properties(device_id: int, device_target: str | None = None) -> Any:
    """Return the properties of a device: name, total_memory, …; None for the CPU."""
    return device_facts.properties(*_device_of("get_device_properties", device_id, device_target))


def get_arch_list(device_target: str | None = None) -> list[str] | None:
    """Return the GPU architectures that torch was compiled for; None for other devices."""
    return device_facts.architectures(present("get_arch_list", device_target))


def synchronize() -> None:
    """Wait until the device has finished all its work."""
    pynative.wait()
