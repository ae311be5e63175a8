"""Norms along axes, of vectors and of all elements."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.reductions.reduction import as_floats

T = torch.Tensor


@op(methods=("norm",))
def norm(A: T, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The norm of vectors or matrices, as NumPy's `linalg.norm`; for matrices, 1.0 or 2.0 (not an int) as `ord` is the Frobenius norm."""
    of_matrices = A.ndim == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2
    if of_matrices and not isinstance(ord, (int, str)) and ord in (1, 2, -1, -2):
        ord = None
    x = in_dtype_of_norm(A, dtype)
    if not of_matrices and ord in (math.inf, -math.inf):
        return norm_of_extremes(x, ord, dim, keepdim)
    return torch.linalg.norm(x, ord, dim, keepdim)


def in_dtype_of_norm(x: T, dtype: Any) -> T:
    """Return `x` in `dtype` if it is set, else integers as float32. Raises TypeError for integer dtypes and bool."""
    norm_dtype = as_dtype(dtype)
    if norm_dtype is None:
        return as_floats(x)
    if not (norm_dtype.is_floating_point or norm_dtype.is_complex):
        raise TypeError(f"expected a dtype of real or complex numbers, got {FROM_TORCH[norm_dtype]}.\n\nhint: cast the norm itself.")
    return x.to(norm_dtype)


def norm_of_extremes(x: T, order: float, axes: Any, keepdims: bool) -> T:
    """The norm of order inf or -inf along `axes`. Of equal elements the first gets the gradient, which torch would divide among them."""
    axis = axes[0] if isinstance(axes, (tuple, list)) and len(axes) == 1 else axes
    if not x.requires_grad or isinstance(axis, (tuple, list)):
        return torch.linalg.vector_norm(x, order, axes, keepdims)
    sizes = x.abs()
    sizes, axis = (sizes.reshape(-1), 0) if axis is None else (sizes, axis)
    values = (torch.max if order > 0 else torch.min)(sizes, axis, keepdim=keepdims).values
    return values.reshape((1,) * x.ndim) if axes is None and keepdims else values
