"""A model that was read is run: as torch's operators, inside gradients and captures too."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.core.dtypes import FROM_TORCH
from torchspore.engine.core.tensor import TensorBase, raw, tensors, wrap
from torchspore.export.mindir import shapes
from torchspore.export.model import Model, filled


def tensor(t: torch.Tensor) -> Any:
    """A Tensor of these values."""
    return wrap(t)


class Runner:
    """Calls a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._shapes = shapes(model)

    def __call__(self, inputs: Sequence[Any], parameters: Sequence[TensorBase]) -> Any:
        """The result for the Tensors in `inputs`, with `parameters` in the order of the model's. Raises TypeError and ValueError."""
        given = list(tensors(list(inputs)))
        self._check(given)
        own = dict(zip(self._model.parameters, parameters))
        rest = iter(given)
        everything = [own[name] if name in own else next(rest) for name in self._model.names]
        outputs = self._model.module(*map(raw, everything))
        found = [wrap(t) for t in (outputs if isinstance(outputs, (tuple, list)) else (outputs,))]
        return filled(self._model.result, found, everything)

    def _check(self, given: list[TensorBase]) -> None:
        if len(given) != len(self._shapes):
            raise ValueError(message(f"GraphCell: {len(given)} Tensors", f"{len(self._shapes)}, as the graph was exported with"))
        for name, t, (shape, dtype) in zip(self._model.given, given, self._shapes):
            if tuple(t._t.shape) != shape or t._t.dtype is not dtype:
                raise ValueError(message(f"GraphCell: {name} of shape {tuple(t._t.shape)} and dtype {FROM_TORCH[t._t.dtype]}",
                                         f"shape {shape} and dtype {FROM_TORCH[dtype]}, as the graph was exported with"))
