"""The device that operators run on: the context names it, and this module finds it on the machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from torchspore.base.text import message, with_hint
from torchspore.base.versions import installed
from torchspore.context.store import STORE
from torchspore.engine.devices import device_diagnosis, gpu_kinds
from torchspore.errors import DeviceNotFound
from torchspore.translations import translatable, translate

_A_DEVICE = {"GPU": translatable("a GPU"), "Ascend": translatable("an Ascend device")}

_NOWHERE = (-1, torch.device("cpu"))


def type_of(target: str) -> str:
    """Give torch's name for the devices of a `device_target`; a GPU may be "cuda", "xpu" or "mps"."""
    return gpu_kinds.device_type() if target == "GPU" else {"CPU": "cpu", "Ascend": "npu"}[target]


def _count(target: str) -> int:
    if target == "CPU":
        return 1
    if target == "GPU":
        return int(gpu_kinds.module().device_count())
    if find_spec("torch_npu") is None or device_diagnosis.npu_error():
        return 0
    return int(npu().device_count())


def npu() -> Any:
    """torch's module for Ascend devices, which torch_npu adds."""
    return getattr(torch, "npu")  # torch's types do not know the module that torch_npu adds


def current() -> torch.device:
    """Return the device on which this thread's operators run.

    Raises DeviceNotFound if `device_id` exceeds the existing devices, or if the device cannot allocate memory.
    """
    version, device = _DEVICES.cached
    if version == STORE.version:
        return device
    device = _DEVICES.machine.resolve(STORE.get("device_target"))
    _DEVICES.cached = (STORE.version, device)
    return device


def _resolve(target: str) -> torch.device:
    if target == "CPU":
        return torch.device("cpu")
    device = torch.device(type_of(target), _index(target))
    _wake(target, device)
    return device


def _index(target: str) -> int:
    """Return the `device_id`. Raises DeviceNotFound if it exceeds the existing devices."""
    index: int = STORE.get("device_id")
    if index >= count(target):
        raise DeviceNotFound(_beyond(target, index))
    return index


_awake: set[torch.device] = set()


def _wake(target: str, device: torch.device) -> None:
    """Allocate memory on a device before the program does. Raises DeviceNotFound with the driver's message if that fails."""
    if device in _awake:
        return
    try:
        torch.empty(1, device=device)
    except torch.OutOfMemoryError:         # it is full, which is another error, and not this one's business
        pass
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        command = gpu_kinds.TOOLS[gpu_kinds.kind()] if target == "GPU" else "npu-smi info"
        setting = f"{_at('device_target')}device_target={target!r}, device_id={device.index}"
        text = translate("{setting}: the device exists, and cannot allocate memory: {reason}.\nfound: {devices}.")
        hint = translate("{command} shows details; torchspore run --device CPU {script} runs without it")
        raise DeviceNotFound(with_hint(text.format(setting=setting, reason=reason, devices=describe_devices()),
                                       hint.format(command=command, script=_script()))) from None
    torch.accelerator.set_device_index(device)          # the default of code that names no device, such as CUDA graphs
    _awake.add(device)


@dataclass(frozen=True)
class Machine:
    """Functions that describe the devices of a machine, by `device_target`."""

    count: Callable[[str], int] = _count
    """How many there are."""
    resolve: Callable[[str], torch.device] = _resolve
    """Where operators run."""
    has_queue: Callable[[str], bool] = lambda target: target != "CPU"
    """True if operators run asynchronously."""
    backend: Callable[[str], Any] = lambda target: gpu_kinds.module() if target == "GPU" else npu()
    """torch's module for it."""


class _Devices:
    """The machine, and the current device of the last generation."""

    def __init__(self) -> None:
        self.cached: tuple[int, torch.device] = _NOWHERE
        self.machine = Machine()


_DEVICES = _Devices()


@contextmanager
def on(machine: Machine) -> Iterator[None]:
    """Replace the description of this machine's devices in the block."""
    before, _DEVICES.machine, _DEVICES.cached = _DEVICES.machine, machine, _NOWHERE
    try:
        yield
    finally:
        _DEVICES.machine, _DEVICES.cached = before, _NOWHERE


def count(target: str) -> int:
    """Return how many devices of a `device_target` this process can use; the CPU counts as one."""
    return _DEVICES.machine.count(target)


def _beyond(target: str, index: int) -> str:
    visible = gpu_kinds.VISIBLE.get(gpu_kinds.kind(), "") if target == "GPU" else "ASCEND_RT_VISIBLE_DEVICES"
    setting = f"{_at('device_id')}device_id={index}"
    if os.environ.get(visible):
        text = translate("{setting}: this machine has {count} of {target} that {variable} lets it see.")
        text = text.format(setting=setting, count=count(target), target=target, variable=f"{visible}={os.environ[visible]}")
        return with_hint(text, translate("write device_id=0, or unset {variable}").format(variable=visible))
    text = translate("{setting}: this machine has {count} of {target}.").format(setting=setting, count=count(target), target=target)
    return with_hint(text, translate("write {word}").format(word="device_id=0"))


def resolve_device(call: str, wanted: str) -> torch.device:
    """Return the device for a Tensor sent to 'CPU', 'GPU' or 'Ascend', with or without an index: the host, or the device of this process.

    If TORCHSPORE_DEVICE forces a device, that device is used. Raises ValueError for another index than that of the process, DeviceNotFound
    for a device on which operators do not run.
    """
    name, _, number = wanted.partition(":")
    target = {"cpu": "CPU", "gpu": "GPU", "ascend": "Ascend", "npu": "Ascend", "davinci": "Ascend"}.get(name.lower())
    if target is None or not (number.isdecimal() or not number):
        raise ValueError(message(f"{call}({wanted!r:.60})", "'CPU', 'GPU' or 'Ascend'"))
    if target == "CPU":
        if number and int(number):
            raise ValueError(message(f"{call}({wanted!r:.60})", "'CPU': the host has no other"))
        return torch.device("cpu")
    forced = STORE.source("device_target")[0] == "forced environment"
    if target != STORE.get("device_target") and not forced:
        if count(target):
            text = translate("{call}: operators run on {device}.").format(call=f"{call}({wanted!r})", device=STORE.get("device_target"))
            hint = translate("write mindspore.set_device({target!r}) at the program's beginning").format(target=target)
            raise DeviceNotFound(with_hint(text, hint))
        raise DeviceNotFound(describe_absence(target, f"{call}({wanted!r})"))
    if number and not forced and int(number) != STORE.get("device_id"):
        raise ValueError(message(f"{call}({wanted!r})", f"the process's own device, {target}:{STORE.get('device_id')}",
                                 hint="a process uses one device, that of device_id"))
    return current()


def home() -> str:
    """The `device_target` on which Tensors are made."""
    return str(STORE.get("device_target"))


def is_home(target: str) -> bool:
    """Return whether a text names the device on which Tensors are created, by its target or with its index, or the forced device."""
    if STORE.source("device_target")[0] == "forced environment" and target.partition(":")[0] in ("CPU", "GPU", "Ascend"):
        return True
    return target in (home(), f"{home()}:{STORE.get('device_id')}")


def has_queue() -> bool:
    """Return whether operators on the current device run asynchronously, in a queue."""
    return _DEVICES.machine.has_queue(STORE.get("device_target"))


def backend(target: str | None = None) -> Any:
    """torch's module for an accelerator, without `target` the one that operators run on: `torch.cuda`, or another that has the same names
    (`torch.xpu`, `torch.npu`, `gpu_kinds.mps`); what only CUDA has may be absent."""
    return _DEVICES.machine.backend(target or STORE.get("device_target"))


def wait() -> None:
    """Wait until the accelerator has finished its queued work."""
    torch.accelerator.synchronize(current())


def name() -> str:
    """Return the current device's name for the user, such as "CPU (8 cores)" or the GPU's model."""
    device = current()
    if device.type == "cpu":
        return f"CPU ({os.cpu_count()} cores)"
    return str(backend().get_device_name(device.index))


def describe_devices() -> str:
    """Return a description of this machine's devices for the user."""
    parts = [translate("{count} CPU cores").format(count=os.cpu_count())]
    each = translate("{count} of {target}")
    parts += [each.format(count=count(target), target=target) for target in ("GPU", "Ascend") if count(target)]
    npu = installed("torch-npu")
    return f"{', '.join(parts)} (torch {torch.__version__}, {'torch_npu ' + npu if npu else translate('torch_npu is not installed')})"


def describe_absence(target: str, asking: str = "") -> str:
    """Return the error text for a device that this machine lacks or can't use; it begins with `asking`, or with the option's setting."""
    source, setting = STORE.source("device_target")
    wrong = device_diagnosis.broken(target)
    if asking:
        head, hint = asking, _hint_for_cpu()
    elif source == "forced environment" and setting is not None:
        head = f"{setting.where}={setting.raw}"
        hint = translate("unset {variable}, or set it to CPU").format(variable=setting.where)
    else:
        head = f"{_at('device_target')}device_target={target!r}"
        hint = _hint_for_cpu()
    text = (translate("{setting}: {device} is requested, and this machine has none.\nfound: {devices}.") if wrong is None else
            translate("{setting}: {device} is requested, and can't be used: {reason}.\nfound: {devices}."))
    text = text.format(setting=head, device=translate(_A_DEVICE.get(target, target)), devices=describe_devices(),
                       reason="" if wrong is None else wrong.why)
    return with_hint(text, hint if wrong is None else translate("{command}\n   or: {other}").format(command=wrong.command, other=hint))


def _hint_for_cpu() -> str:
    text = translate("torchspore run --device CPU {script}, or set TORCHSPORE_DEVICE=CPU; the program stays as it is")
    return text.format(script=_script())


def _script() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0].endswith(".py") else "train.py"


def _at(key: str) -> str:
    setting = STORE.source(key)[1]
    return f"{setting.where}: " if setting is not None and setting.where else ""
