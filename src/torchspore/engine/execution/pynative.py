"""The work of PyNative mode around operators apart from computing: waiting, marking the device as used, moving Tensors."""

from __future__ import annotations

from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.engine.devices import device
from torchspore.engine.execution import device_selection
from torchspore.engine.memory import memory_owners
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, tensors
from torchspore.errors import DeviceFailed

wait_for_each = False
awaits_first = False
"""True if the first operator of the program is still to come."""
_graph_options: set[str] = set()
"""Options that only graphs read and that strict mode watches."""


def synchronize(is_on: bool) -> Outcome:
    """Apply `pynative_synchronize`: each operator is waited for, so that an error appears at the line that caused it."""
    if not device.has_queue():
        _wait(False)
        return Outcome.no_effect("operators on the CPU run in the caller's thread")
    _wait(is_on)
    return Outcome.applied("each operator is waited for" if is_on else "operators run ahead of Python")


def wait() -> None:
    """Wait until the device has finished its queued work; the CPU has no queue."""
    if device.has_queue():
        device.wait()


def _wait(is_on: bool) -> None:
    global wait_for_each
    if is_on != wait_for_each:
        wait_for_each = is_on
        engine.follow_operators(is_on)


def takes_gradients() -> bool:
    """Return whether gradients flow through what this thread computes."""
    return torch.is_grad_enabled()


def take_gradients(is_on: bool) -> None:
    """Set whether gradients flow through what this thread computes from now on."""
    torch.set_grad_enabled(is_on)


def after(out: Any) -> None:
    """Called with an operator's result (torch tensors) while `tensor.observers` is not zero."""
    if device_selection.awaits_use:
        for t in tree.listed(out):
            device_selection.note_use(t)
    if awaits_first:
        _begin()
    if memory_owners.notes_lines:
        if out.__class__ is torch.Tensor:
            memory_owners.note(out)
        else:
            for t in tree.listed(out):
                memory_owners.note(t)
    if wait_for_each:
        _finish()
    if _graph_options and not STORE.graph_mode and engine.frame() is None:
        _miss_graph()


def await_first() -> None:
    """Make the first operator report itself: settings that limit memory cannot change after it."""
    global awaits_first
    awaits_first = True
    engine.follow_operators(True)


def _begin() -> None:
    global awaits_first
    awaits_first = False
    engine.follow_operators(False)
    effects.operator_ran(user_line() or "<unknown>")


def _finish() -> None:
    """Wait for the last operator on the device. Raises DeviceFailed with the device's message."""
    try:
        device.wait()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise DeviceFailed(f"the device says {reason!r}.\n\nhint: look at the values, indices above all: kernels check them late") from None


def expect_graph(key: str) -> None:
    """Make the first operator in PYNATIVE_MODE, where the option `key` has no effect, an error of strict mode."""
    if not _graph_options:
        engine.follow_operators(True)
    _graph_options.add(key)


def _miss_graph() -> None:
    set_options = [key for key in sorted(_graph_options) if STORE.get(key) != OPTIONS[key].default]
    _graph_options.clear()
    engine.follow_operators(False)
    for key in set_options:
        effects.report(key, effects.NO_GRAPH)


def bring(arguments: Any) -> bool:
    """After an operator failed: move every Tensor among `arguments` on another device to the current device; return whether there was one.

    A Tensor that was created before the choice of the device is on the host; it moves when it is first needed, in the error path.
    """
    moved, target = False, device.current()
    try:
        for tensor in tensors(arguments):
            if isinstance(tensor, TensorBase) and not _is_on(tensor._t, target) and not tensor._t.is_meta:
                engine.rebind(tensor, tensor._t.to(target))
                moved = True
    except RecursionError:                 # lists in lists without end hold nothing to move
        return False
    return moved


def _is_on(t: torch.Tensor, target: torch.device) -> bool:
    return t.device.type == target.type and (target.index is None or t.device.index == target.index)
