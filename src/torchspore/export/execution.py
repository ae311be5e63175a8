"""A model that was read is run: as torch's operators, inside gradients and captures too."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors, wrap
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
        input_tensors = list(tensors(list(inputs)))
        self._check(input_tensors)
        values = dict(zip(self._model.parameters, parameters))
        rest = iter(input_tensors)
        everything = [values[name] if name in values else next(rest) for name in self._model.names]
        outputs = self._model.module(*map(raw, everything))
        results = [wrap(t) for t in (outputs if isinstance(outputs, (tuple, list)) else (outputs,))]
        return filled(self._model.result, results, everything)

    def _check(self, input_tensors: list[TensorBase]) -> None:
        if len(input_tensors) != len(self._shapes):
            raise ValueError(message(f"GraphCell: {len(input_tensors)} Tensors", f"{len(self._shapes)}, as the graph was exported with"))
        for name, t, (shape, dtype) in zip(self._model.input_names, input_tensors, self._shapes):
            if tuple(t._t.shape) != shape or t._t.dtype is not dtype:
                raise ValueError(message(f"GraphCell: {name} of shape {tuple(t._t.shape)} and dtype {FROM_TORCH[t._t.dtype]}",
                                         f"shape {shape} and dtype {FROM_TORCH[dtype]}, as the graph was exported with"))
