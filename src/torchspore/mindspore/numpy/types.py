"""Common dtypes of several values; flat indexes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.numpy.utils import dtype_of, function, promote, to_tensor

T = torch.Tensor


def promote_types(type1: Any, type2: Any) -> Any:
    """The smallest dtype for values of both, dtypes or their names; combined with an int, a float keeps its width."""
    return FROM_TORCH[promote(dtype_of(type1), dtype_of(type2))]


def _kind(value: Any) -> torch.dtype:
    if isinstance(value, TensorBase):
        return value._t.dtype
    if isinstance(value, (bool, int, float)):
        return to_tensor(value).dtype
    return dtype_of(value)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The common dtype of all arguments: Tensors, numbers (int32, float32), dtypes and their names."""
    if not arrays_and_dtypes:
        raise IndexError("expected at least one Tensor, number or dtype.")
    dtype = _kind(arrays_and_dtypes[0])
    for value in arrays_and_dtypes[1:]:
        dtype = promote(dtype, _kind(value))
    return FROM_TORCH[dtype]


@function
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "clip", order: str = "C") -> T:
    """The flat indexes (float32) in an array of lengths `dims`; `multi_index` has one row for each axis.

    Indexes outside are clipped (`mode` 'clip') or wrapped around ('wrap'); `order` 'F' counts columns first.
    """
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r}: expected 'C' or 'F'.")
    if mode == "raise":
        raise NotImplementedError("mode='raise': MindSpore has no such mode.")
    if mode not in ("clip", "wrap"):
        raise ValueError(f"mode={mode!r}: expected 'clip' or 'wrap'.")
    rows = to_tensor(multi_index)
    if rows.ndim == 0 or rows.shape[0] != len(dims):
        raise ValueError(f"multi_index: expected {len(dims)} rows, one for each axis.")
    out = torch.zeros(rows.shape[1:], dtype=torch.float32, device=rows.device)
    step = 1
    for axis in range(len(dims)) if order == "F" else reversed(range(len(dims))):
        row = rows[axis].clamp(0, dims[axis] - 1) if mode == "clip" else torch.remainder(rows[axis], dims[axis])
        out = out + row.to(torch.float32) * step
        step *= dims[axis]
    return out
