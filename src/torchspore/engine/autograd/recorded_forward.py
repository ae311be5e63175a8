"""Runs a call again from its initial state: the same Parameters, attributes and random numbers. Its writes are discarded."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchspore.engine.autograd import recompute
from torchspore.engine.tensors.tensor import Frame, TensorBase, frame


class Beginning(recompute.First):
    """A frame around a call, which stores the call's initial state."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device
        self._random = recompute.operator_call(frame(), device, recompute.random_state, device)

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        """Store values that need no gradient, which an operator may overwrite; the others are stored when they are written."""
        return super().resolve(tensor) if not getattr(tensor, "requires_grad", True) else Frame.resolve(self, tensor)

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        self._keep(tensor)
        super().write(tensor, value)

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        self._keep(tensor)
        super().modify(tensor, change)

    def _keep(self, tensor: TensorBase) -> None:
        saved_value = self._read.get(id(tensor))
        if saved_value is None or saved_value[2] is None:
            t = Frame.resolve(self, tensor)
            self._read[id(tensor)] = (tensor, t, t.clone(), t._version)

    @contextmanager
    def rerun(self) -> Iterator[None]:
        """Runs the call again."""
        around, second = frame(), recompute.RecomputeFrame(self.draws)
        for tensor, t in self.parameters():
            second.substitute(tensor, t)
        now = recompute.operator_call(around, self._device, recompute.swap_state, self._random, self._device)
        try:
            with self.attributes_as_before(), second.open():
                yield
        finally:
            recompute.operator_call(around, self._device, recompute.swap_state, now, self._device)
