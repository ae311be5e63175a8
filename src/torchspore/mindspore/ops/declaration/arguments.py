"""Conversions of arguments that many operators share: shapes, sequences of Tensors, dtypes."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchspore.base.text import short
from torchspore.engine.tensors.creation import length
from torchspore.engine.tensors.dtypes import to_torch
from torchspore.engine.tensors.tensor import TensorBase, raw

T = torch.Tensor
_SEQUENCES = (tuple, list)


def sizes(values: tuple[Any, ...] | Any) -> list[int]:
    """Return the sizes from one tuple, list or Tensor, or from separate arguments."""
    if type(values) in _SEQUENCES:
        numbers = values[0] if len(values) == 1 and type(values[0]) in _SEQUENCES else values
        for number in numbers:
            if type(number) is not int:
                break
        else:
            return list(numbers)
    if isinstance(values, T):
        return [int(v) for v in values.reshape(-1).tolist()]
    if isinstance(values, (int, np.integer)):
        return [int(values)]
    if not hasattr(type(values), "__len__"):
        raise TypeError(f"expected ints as shape, got {type(values).__name__}.")
    if len(values) == 1 and isinstance(values[0], (tuple, list, T)):
        return sizes(values[0])
    if len(values) == 1 and isinstance(values[0], TensorBase) and values[0]._t.ndim:
        return sizes(raw(values[0]))
    for value in values:
        if isinstance(value, (float, str)) or not hasattr(type(value), "__int__"):
            raise TypeError(f"expected ints as shape, got {type(value).__name__} {short(value)}.")
    return [length(v) for v in values]


def several(tensors: Any) -> list[T]:
    """Return the Tensors of a tuple, list or other sequence. Raises TypeError for a single Tensor, which is not a sequence of Tensors."""
    if isinstance(tensors, T):
        raise TypeError("expected a tuple or list of Tensors, got Tensor.")
    return list(tensors)


def as_dtype(dtype: object) -> torch.dtype | None:
    """Convert a MindSpore dtype to a torch dtype; None stays None."""
    return None if dtype is None else to_torch(dtype)
