"""Which device operators run on: what the context asks for, and what this machine has."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.base.versions import installed
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine import tensor as engine
from torchspore.errors import DeviceNotFound

_TYPES = {"CPU": "cpu", "GPU": "cuda", "Ascend": "npu"}
_A_DEVICE = {"GPU": "a GPU", "Ascend": "an Ascend device"}

awaits_use = False
"""Whether the first operator on an accelerator is still to come."""

_cached: tuple[int, torch.device] = (-1, torch.device("cpu"))


def count(target: str) -> int:
    """Gives how many devices of a `device_target` this process can use; the CPU is one."""
    if target == "CPU":
        return 1
    if target == "GPU":
        return torch.cuda.device_count()
    if find_spec("torch_npu") is None:
        return 0
    importlib.import_module("torch_npu")  # gives torch its `npu` module; it wants the CANN libraries, hence only when asked
    return int(npu().device_count())


def npu() -> Any:
    """torch's module for Ascend devices, which torch_npu adds."""
    return getattr(torch, "npu")  # torch's types do not know the module that torch_npu adds


def tell_default() -> None:
    """Makes the accelerator that is there the default of `device_target`."""
    target = next((target for target in ("Ascend", "GPU") if count(target)), "CPU")
    if target != "CPU":
        STORE.learn_default("device_target", target)
        await_use(True)


def current() -> torch.device:
    """Gives the device on which this thread's operators run.

    Raises DeviceNotFound where `device_id` is beyond the devices that are there.
    """
    global _cached
    version, device = _cached
    if version == STORE.version:
        return device
    target = STORE.get("device_target")
    if target == "CPU":
        device = torch.device("cpu")
    else:
        index = STORE.get("device_id")
        if index >= count(target):
            raise DeviceNotFound(_at("device_id") + f"device_id={index}: this machine has {count(target)} of {target}.\n\n"
                                 "hint: write device_id=0.")
        device = torch.device(_TYPES[target], index)
    _cached = (STORE.version, device)
    return device


def has_queue() -> bool:
    """Says whether operators on the current device run behind Python's back, in a queue."""
    return str(STORE.get("device_target")) != "CPU"


def name() -> str:
    """Gives the current device's name for people, such as "CPU (8 cores)" or the GPU's model."""
    device = current()
    if device.type == "cpu":
        return f"CPU ({os.cpu_count()} cores)"
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return str(npu().get_device_name(device.index))


def await_use(wanted: bool) -> None:
    """Makes operators report their results, until the first one lies on an accelerator: from then on the device can't change."""
    global awaits_use
    if wanted != awaits_use:
        awaits_use = wanted
        engine.follow_operators(wanted)


def used(t: object) -> None:
    """Marks the device as used, at the user's line, where an operator's result lies on an accelerator."""
    if isinstance(t, torch.Tensor) and t.device.type != "cpu":
        effects.device_used(user_line() or "<unknown>")
        await_use(False)


def select(target: str) -> Outcome:
    """Makes a `device_target` act; raises DeviceNotFound with the way out where this machine lacks it."""
    if not count(target):
        raise DeviceNotFound(_absent(target))
    await_use(target != "CPU")
    if target == "CPU":
        return Outcome.applied(f"operators run on the CPU, {os.cpu_count()} cores")
    return Outcome.applied(f"operators run on {_TYPES[target]}")


def select_index(index: int) -> Outcome:
    """Makes a `device_id` act; that the device is there is checked when it is first used."""
    if not has_queue():
        return Outcome.no_effect("the CPU has no index")
    return Outcome.applied(f"operators run on {_TYPES[STORE.get('device_target')]}:{index}")


def found() -> str:
    """Says what this machine has, for people."""
    parts = [f"{os.cpu_count()} CPU cores"]
    parts += [f"{count(target)} of {target}" for target in ("GPU", "Ascend") if count(target)]
    versions = f"torch {torch.__version__}"
    npu = installed("torch-npu")
    return f"{', '.join(parts)} ({versions}, {'torch_npu ' + npu if npu else 'torch_npu is not installed'})"


def _absent(target: str) -> str:
    source, setting = STORE.source("device_target")
    script = Path(sys.argv[0]).name if sys.argv and sys.argv[0].endswith(".py") else "train.py"
    if source == "forced environment" and setting is not None:
        head = f"{setting.where}={setting.written}"
        hint = f"unset {setting.where}, or set it to CPU"
    else:
        head = f"{_at('device_target')}device_target={target!r}"
        hint = f"torchspore run --device CPU {script}, or set TORCHSPORE_DEVICE=CPU; the program stays as it is"
    return f"{head}: {_A_DEVICE.get(target, target)} is asked for and this machine has none.\nfound: {found()}.\n\nhint: {hint}."


def _at(key: str) -> str:
    setting = STORE.source(key)[1]
    return f"{setting.where}: " if setting is not None and setting.where else ""
