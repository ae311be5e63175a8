"""The operators of `mindspore.scipy.linalg` as primitives for user programs."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.declare import part_of
from torchspore.mindspore.ops.declaration.primitive_classes import primitive_class
from torchspore.mindspore.ops.linear_algebra.matrices import decompose_eigen
from torchspore.public_names import missing

__getattr__ = missing(__name__)

T = torch.Tensor
_TRANSPOSED = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


@part_of("SolveTriangular")
def triangular(a: T, b: T, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> T:
    """The solution x of A @ x = b for triangular A (..., N, N) and b (..., N) or (..., N, M); `trans` 1 or 'T', 2 or 'C' transposes A.

    Raises TypeError if the dtypes differ, ValueError for another `trans` and for shapes that do not fit.
    """
    if trans not in _TRANSPOSED:
        raise ValueError(f"trans={trans!r}: expected 0, 1, 2, 'N', 'T' or 'C'.")
    if a.dtype != b.dtype:
        raise TypeError(f"expected a and b of one dtype, got {FROM_TORCH[a.dtype]} and {FROM_TORCH[b.dtype]}.")
    vector = b.ndim == a.ndim - 1
    right = b.unsqueeze(-1) if vector else b
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or right.ndim != a.ndim or right.shape[:-1] != a.shape[:-1]:
        raise ValueError(f"expected a of (..., N, N) and b of (..., N) or (..., N, M), got {tuple(a.shape)} and {tuple(b.shape)}.")
    transposed = _TRANSPOSED[trans]
    matrix = a.mH if transposed else a
    out = torch.linalg.solve_triangular(matrix, right, upper=bool(lower) == transposed, unitriangular=unit_diagonal)
    return out.squeeze(-1) if vector else out


@part_of("LU")
def decompose(x: T) -> Any:
    """(LU in one matrix, pivots counted from 0 (int32), permutation matrices (int32)) of matrices x (..., M, N).

    The permutation matrix P has P @ L @ U = x, as SciPy's.
    """
    packed, pivots = torch.linalg.lu_factor(x)
    permutation, _, _ = torch.lu_unpack(packed, pivots, unpack_data=False)
    return packed, pivots - 1, permutation.to(torch.int32)


@part_of("LinearSumAssignment")
def assign(cost_matrix: T, dimension_limit: Any = None, maximize: bool = False) -> Any:
    """(rows, columns), int64, of the assignment with the smallest sum of costs - the largest with `maximize`.

    Only the first `dimension_limit` columns are used; missing assignments are -1. Computed by SciPy (Crouse, 2016).
    """
    from scipy.optimize import linear_sum_assignment

    if cost_matrix.ndim != 2:
        raise ValueError(f"cost_matrix: expected two axes, got shape {tuple(cost_matrix.shape)}.")
    if not isinstance(maximize, bool):
        raise TypeError(message("maximize", with_type("a bool", maximize)))
    rows, columns = cost_matrix.shape
    limit = columns if dimension_limit is None else min(int(dimension_limit), columns)
    assignment = linear_sum_assignment(cost_matrix[:, :limit].detach().cpu().numpy(), maximize)
    out = torch.full((2, min(rows, columns)), -1, dtype=torch.int64)
    for row, indices in zip(out, assignment, strict=True):
        row[: len(indices)] = torch.as_tensor(indices)
    out = out.to(cost_matrix.device)
    return out[0].clone(), out[1].clone()


@part_of("Eig")
def eigen(x: T, compute_v: bool = True) -> Any:
    """(Eigenvalues, eigenvectors as columns) of square matrices x (..., N, N), complex; without `compute_v` no eigenvectors.

    Raises TypeError for integers, ValueError for other shapes.
    """
    if not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"x: expected floating-point or complex numbers, got {FROM_TORCH[x.dtype]}.")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"x: expected square matrices (..., N, N), got shape {tuple(x.shape)}.")
    return decompose_eigen(x, compute_v)


SolveTriangular = primitive_class("SolveTriangular", triangular, ("lower", "unit_diagonal", "trans"))
LU = primitive_class("LU", decompose, ())
Eig = primitive_class("Eig", eigen, ("compute_v",))
LinearSumAssignment = primitive_class("LinearSumAssignment", assign, ())
__all__ = ["LU", "Eig", "LinearSumAssignment", "SolveTriangular"]
