"""What PyNative mode does around operators beside computing: waits, marks the device as used, brings Tensors that lie elsewhere."""

from __future__ import annotations

from typing import Any

import torch

from torchspore.context.effects import Outcome
from torchspore.engine import device
from torchspore.engine import tensor as engine
from torchspore.engine.tensor import TensorBase, tensors

wait_for_each = False


def synchronize(wanted: bool) -> Outcome:
    """Makes `pynative_synchronize` act: each operator is waited for, so that an error appears at the line that caused it."""
    if not device.has_queue():
        _wait(False)
        return Outcome.no_effect("operators on the CPU run in the caller's thread")
    _wait(wanted)
    return Outcome.applied("each operator is waited for" if wanted else "operators run ahead of Python")


def _wait(wanted: bool) -> None:
    global wait_for_each
    if wanted != wait_for_each:
        wait_for_each = wanted
        engine.follow_operators(wanted)


def after(out: Any) -> None:
    """Is called with an operator's result (torch tensors) while `engine.active` is not zero."""
    if device.awaits_use:
        for t in out if isinstance(out, (tuple, list)) else (out,):
            device.used(t)
    if wait_for_each:
        torch.accelerator.synchronize()


def bring(arguments: Any) -> bool:
    """Where an operator failed: moves every Tensor among `arguments` that lies elsewhere to the current device; says whether there was one.

    A Tensor that was made before the device was chosen lies on the host; it moves when it is first needed, in the error path.
    """
    moved, wanted = False, device.current()
    for tensor in tensors(arguments):
        if isinstance(tensor, TensorBase) and not _lies_on(tensor._t, wanted):
            engine.rebind(tensor, tensor._t.to(wanted))
            moved = True
    return moved


def _lies_on(t: torch.Tensor, wanted: torch.device) -> bool:
    return t.device.type == wanted.type and (wanted.index is None or t.device.index == wanted.index)
