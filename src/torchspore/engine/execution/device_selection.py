"""The effects of `device_target` and `device_id`, which a program can change until its first operator on an accelerator."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices import device
from torchspore.engine.tensors import tensor as engine
from torchspore.errors import DeviceNotFound
from torchspore.translations import translate

awaits_use = False
"""True until the first operator runs on an accelerator."""


def set_default_target() -> None:
    """Make the machine's accelerator, if it has one, the default of `device_target`."""
    target = next((target for target in ("Ascend", "GPU") if _is_likely(target) and device.count(target)), "CPU")
    if target != "CPU":
        STORE.learn_default("device_target", target)
        await_use(True)


def _is_likely(target: str) -> bool:
    """Return False if the operating system knows no Ascend device: importing torch_npu to count them is slow."""
    return target != "Ascend" or "torch_npu" in sys.modules or any(Path("/dev").glob("davinci[0-9]*"))


def await_use(is_on: bool) -> None:
    """Make operators report their results until the first one runs on an accelerator. The device can't change after that."""
    global awaits_use
    if is_on != awaits_use:
        awaits_use = is_on
        engine.follow_operators(is_on)


def note_use(result: object) -> None:
    """Mark the device as used, at the user's line, if an operator's result is on an accelerator."""
    if isinstance(result, torch.Tensor) and result.device.type != "cpu":
        effects.device_used(user_line() or "<unknown>")
        await_use(False)


def select(target: str) -> Outcome:
    """Apply `device_target`. Raise DeviceNotFound, with alternatives, if this machine lacks the device."""
    if not device.count(target):
        raise DeviceNotFound(device.describe_absence(target))
    await_use(target != "CPU")
    if target == "CPU":
        return Outcome.applied(translate("operators run on the CPU, {count} cores").format(count=os.cpu_count()))
    return Outcome.applied(translate("operators run on {device}").format(device=device.type_of(target)))


def select_index(index: int) -> Outcome:
    """Apply `device_id`. The first use of the device checks that it exists."""
    if not device.has_queue():
        return Outcome.no_effect("the CPU has no index")
    name = f"{device.type_of(STORE.get('device_target'))}:{index}"
    return Outcome.applied(translate("operators run on {device}").format(device=name))
