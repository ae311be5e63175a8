"""Computations of small math layers that have no public function."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.reductions.reduction import log_sum_exp

T = torch.Tensor


@op()
def _regularized_gamma(a: T, x: T) -> T:
    """The lower incomplete gamma function, divided by gamma(a)."""
    return torch.special.gammainc(a, x)


@op()
def _log_beta(x: T, y: T) -> T:
    """The logarithm of the beta function."""
    return torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)


@op()
def _inverse(a: T) -> T:
    """The inverse of square matrices (..., M, M)."""
    return torch.linalg.inv(a)


@op()
def _determinant(a: T) -> T:
    """The determinant of square matrices (..., M, M)."""
    return torch.linalg.det(a)


@op()
def _diagonal_matrix(x: T) -> T:
    """Matrices (..., K, K) with vectors (..., K) on their diagonals."""
    return torch.diag_embed(x)


@op()
def _diagonal(x: T) -> T:
    """The diagonals of matrices (..., M, N)."""
    return torch.diagonal(x, dim1=-2, dim2=-1).clone()


@op()
def _with_diagonal(x: T, diagonal: T) -> T:
    """Matrices (..., M, N) with another diagonal."""
    return torch.diagonal_scatter(x, diagonal, dim1=-2, dim2=-1)


@op()
def _log_sum_exp(x: T, axis: Any, keep_dims: bool) -> T:
    """log(sum(exp(x))) along `axis`, an int or a tuple; () means all axes."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return log_sum_exp(x, axes or tuple(range(x.ndim)), keep_dims)


@op()
def _moments(x: T, axis: Any, keep_dims: bool) -> Any:
    """Mean and population variance along `axis`, computed in float32 for float16 x; None or () means all axes."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis or range(x.ndim))
    wide = x.float() if x.dtype is torch.float16 else x
    mean = wide.mean(axes, keepdim=True)
    variance = (wide - mean).square().mean(axes, keepdim=True)
    out = (mean, variance) if keep_dims else tuple(t.mean(axes) for t in (mean, variance))
    return tuple(t.to(x.dtype) for t in out)


@op()
def embedding(
    input: T, weight: T, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> T:
    """The rows of `weight` at `input`.

    The row `padding_idx` gets no gradient; rows longer than `max_norm` (in the norm `norm_type`) are scaled down in the weight itself;
    `scale_grad_by_freq` divides the gradient of a row by the number of its occurrences.
    """
    return torch.nn.functional.embedding(as_index(input), weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


@op()
def _sparse_times_dense(indices: T, values: T, shape: Any, dense: T, adjoint_sparse: bool, adjoint_dense: bool) -> T:
    """The product of the sparse matrix with `values` at `indices` (count, 2) and a dense one, each optionally transposed first."""
    rows, columns = indices[:, 0].long(), indices[:, 1].long()
    if adjoint_sparse:
        rows, columns, values = columns, rows, values.conj()
    dense = dense.T.conj() if adjoint_dense else dense
    out = values.new_zeros(shape[1] if adjoint_sparse else shape[0], dense.shape[1])
    return out.index_add(0, rows, values.unsqueeze(1) * dense.index_select(0, columns))


@op()
def _by_field(vectors: T, values: T, fields: T, count: int, operator: str) -> T:
    """The sum, mean or maximum of vectors (N, S, D) for each of `count` fields (N, S): (N, count, D)."""
    fields = as_index(fields)
    at = fields.unsqueeze(-1).expand(vectors.shape)
    shape = (vectors.shape[0], count, vectors.shape[2])
    if operator == "MAX":
        lowest = torch.finfo(vectors.dtype).min
        shown = torch.where(values.unsqueeze(-1) != 0, vectors, torch.full_like(vectors, lowest))
        out = vectors.new_full(shape, lowest).scatter_reduce(1, at, shown, "amax")
        return torch.where(out == lowest, torch.zeros_like(out), out)
    total = vectors.new_zeros(shape).scatter_add(1, at, vectors)
    if operator == "SUM":
        return total
    weight = values.new_zeros(shape[:2]).scatter_add(1, fields, values.abs()).unsqueeze(-1)
    return total / torch.where(weight == 0, torch.ones_like(weight), weight).to(total.dtype)
