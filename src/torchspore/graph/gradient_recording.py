"""Explicit recordings: the code between `begin` and `end` is differentiated afterwards, as MindSpore's PyNative executor offers it.

Packages with their own `value_and_grad` begin a record, call their function and request gradients by weights that are known only then.
Every Parameter that is read therefore becomes a leaf.
"""
from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from types import FrameType, SimpleNamespace
from typing import Any

import torch

from torchspore.engine.autograd.grad import differentiate
from torchspore.engine.autograd.leaves import is_differentiable, new_leaf
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors, transform, wrap
from torchspore.engine.torch_internals.no_grad import recording_gradients
from torchspore.graph.forward_cache import Forward


class _Local(threading.local):
    def __init__(self) -> None:
        self.open: list[Recording] = []
        self.ended: Recording | None = None


_local = _Local()


class Recording(Forward):
    """One record: a frame from `begin` to `end`, and afterwards what gradients need of it."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], caller: FrameType | None) -> None:
        super().__init__(SimpleNamespace(), args, kwargs)
        self.function, self._caller, self._stack = function, caller, ExitStack()

    def begin(self) -> None:
        """Opens the frame; Tensors among the arguments become leaves."""
        self._stack.enter_context(recording_gradients())
        for tensor in tensors((self.args, self.kwargs)):
            if id(tensor) not in self._leaves:
                t = raw(tensor)
                self._leaf(tensor, new_leaf(t) if is_differentiable(t) else t)
        self._stack.enter_context(self.open())

    def end(self, result: Any) -> None:
        """Closes the frame, and cuts `result` from the graph that made it."""
        self.result = transform(result, lambda tensor: wrap(raw(tensor)))
        self._stack.close()
        with torch.no_grad():
            self.finish(result, False)
        self._is_over = True

    def has_ended(self) -> bool:
        """Return whether the function that began it has ended without `end`, by an exception."""
        at: FrameType | None = sys._getframe()
        while at is not None:
            if at is self._caller:
                return False
            at = at.f_back
        return True


def begin(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """From now on this thread's operators are recorded, until `end`."""
    while _local.open and _local.open[-1].has_ended():
        _local.open.pop().end(())
    recording = Recording(function, args, kwargs, sys._getframe(2))
    recording.begin()
    _local.open.append(recording)


def end(result: Any) -> None:
    """End the innermost record of this thread, whose result is `result`. Raises RuntimeError if no record was begun."""
    if not _local.open:
        raise RuntimeError("end_graph(): expected new_graph() before it.\n\nhint: write new_graph(function, *inputs) before the call.")
    _local.ended = _local.open.pop()
    _local.ended.end(result)


def gradients(
    function: Any, args: tuple[Any, ...], positions: tuple[int, ...], weights: tuple[TensorBase, ...], sens: Any, has_aux: bool,
) -> tuple[Any, list[Any], list[Any]]:
    """(The result, gradients by position, gradients by weight) of the record that ended last; without one `function` is called."""
    recording, _local.ended = _local.ended, None
    gradients = recording.gradients(positions, weights, sens, has_aux) if recording is not None else None
    return gradients if gradients is not None else differentiate(function, args, {}, positions, weights, sens, has_aux)


def is_open() -> bool:
    """Return whether this thread records now."""
    return bool(_local.open)
