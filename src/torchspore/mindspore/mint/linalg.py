"""`mindspore.mint.linalg`: inverses, norms, QR."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.mint.shared import T, as_dtype, axes, in_floats
from torchspore.mindspore.ops.declaration.declare import bridged


@bridged
def inv(input: T) -> T:
    """The inverse of each square matrix."""
    return torch.linalg.inv(input)


@bridged
def vector_norm(x: T, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The norm of order `ord` of the vectors along `dim`, of the flat Tensor for None."""
    return torch.linalg.vector_norm(in_floats(x), ord, axes(dim), keepdim, dtype=as_dtype(dtype))


@bridged
def matrix_norm(A: T, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> T:
    """The norm of order `ord` of the matrices in the two axes `dim`."""
    return torch.linalg.matrix_norm(in_floats(A), ord, tuple(dim), keepdim, dtype=as_dtype(dtype))


@bridged
def norm(A: T, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The norm of vectors (one axis in `dim`) or matrices (two); without `ord` the root of the sum of squares."""
    return torch.linalg.norm(in_floats(A), ord, axes(dim), keepdim, dtype=as_dtype(dtype))


@bridged
def qr(A: T, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and an upper triangular R whose product is A; `mode` 'complete' gives a square Q, 'r' only R."""
    return tuple(torch.linalg.qr(A, mode))


__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]
