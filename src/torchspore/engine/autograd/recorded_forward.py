"""A call that is run once more from where it began: same Parameters, attributes and random numbers; what it writes goes nowhere."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchspore.engine.autograd import recompute
from torchspore.engine.tensors.tensor import Frame, TensorBase, frame


class Beginning(recompute.First):
    """A frame around a call, which keeps what the call began with."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device
        self._random = recompute.operator_call(frame(), device, recompute.random_state, device)

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        """Keeps what needs no gradient, which an operator may write into; the rest is kept when it is written."""
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
        """Where the call runs once more."""
        around, second = frame(), recompute.RecomputeFrame(self.draws)
        for tensor, t in self.parameters():
            second.stand_for(tensor, t)
        now = recompute.operator_call(around, self._device, recompute.swap_state, self._random, self._device)
        try:
            with self.attributes_as_before(), second.open():
                yield
        finally:
            recompute.operator_call(around, self._device, recompute.swap_state, now, self._device)
