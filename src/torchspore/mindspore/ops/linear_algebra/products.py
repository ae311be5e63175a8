"""Products and sums of vectors, matrices and batches, and distances between rows."""
from __future__ import annotations

import functools
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.formulas.half_precision import in_float32
from torchspore.engine.tensors.dtypes import to_torch
from torchspore.errors import WrongAxes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.linear_algebra.matrix_products import require_equal_dtypes

T = torch.Tensor


@op(methods=("addmm",))
def addmm(input: T, mat1: T, mat2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * (mat1 @ mat2), of matrices."""
    return input * beta + alpha * in_float32(torch.mm, mat1, mat2)


@op(methods=("addmv",))
def addmv(input: T, mat: T, vec: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * (mat @ vec), of a matrix and a vector."""
    return input * beta + alpha * torch.mv(mat, _as_vector(mat, vec))


@op(methods=("addr",))
def addr(x: T, vec1: T, vec2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * x + alpha * the outer product of two vectors."""
    return x * beta + alpha * torch.outer(vec1, vec2)


@op(methods=("addbmm",), wide=Widening())
def addbmm(input: T, batch1: T, batch2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * the sum of the products of batches of matrices."""
    return input * beta + alpha * in_float32(torch.bmm, batch1, batch2).sum(0)


@op(methods=("baddbmm",), wide=Widening())
def baddbmm(input: T, batch1: T, batch2: T, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * the products of batches of matrices."""
    return input * beta + alpha * in_float32(torch.bmm, batch1, batch2)


@op()
def mv(mat: T, vec: T) -> T:
    """The product of a matrix (N, M) and a vector (M,), or of a Tensor of M elements in another shape."""
    return torch.mv(mat, _as_vector(mat, vec))


def _as_vector(mat: T, vec: T) -> T:
    """Flatten `vec` if it has as many elements as `mat` has columns; return others unchanged, for torch to refuse."""
    return vec.reshape(-1) if mat.ndim == 2 and vec.ndim > 1 and vec.numel() == mat.shape[1] else vec


@op(methods=("inner",))
def inner(input: T, other: T) -> T:
    """The sums of products along the last axis of both."""
    return torch.inner(input, other)


@op(methods=("kron",))
def kron(input: T, other: T) -> T:
    """The Kronecker product."""
    return torch.kron(input, other)


@op()
def vecdot(x: T, y: T, *, axis: int = -1) -> T:
    """The sums of conj(x) * y along `axis`."""
    return torch.sum((x.conj() if x.is_complex() else x) * y, axis)


@op()
def tensor_dot(x1: T, x2: T, axes: Any) -> T:
    """The sum of products over `axes`: a number of last axes of x1 and first axes of x2, or the axes of each."""
    if isinstance(axes, int):
        return in_float32(functools.partial(torch.tensordot, dims=axes), x1, x2)
    first, second = axes
    dims = ([first], [second]) if isinstance(first, int) else (list(first), list(second))
    return in_float32(functools.partial(torch.tensordot, dims=dims), x1, x2)


@op()
def batch_dot(x1: T, x2: T, axes: Any = None) -> T:
    """For each element of a batch, the sum of products over one axis of each: shape (N, rest of x1, rest of x2), at least (N, 1)."""
    if axes is None:
        axes = (x1.ndim - 1, x2.ndim - 2 if x2.ndim > 2 else x2.ndim - 1)
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % x1.ndim, second % x2.ndim
    if 0 in (first, second):
        raise ValueError(f"axes={axes}: expected axes other than the batch's, which is 0.")
    a, b = x1.movedim(first, -1), x2.movedim(second, -1)
    rest = (*a.shape[1:-1], *b.shape[1:-1])
    out = in_float32(torch.bmm, a.reshape(a.shape[0], -1, a.shape[-1]), b.reshape(b.shape[0], -1, b.shape[-1]).mT)
    return out.reshape(a.shape[0], *(rest or (1,)))


@op()
def bidense(input1: T, input2: T, weight: T, bias: T | None = None) -> T:
    """input1 @ weight[k] @ input2 for each k, plus `bias`: shapes (..., i), (..., j) and (k, i, j) give (..., k)."""
    return torch.nn.functional.bilinear(input1, input2, weight, bias)


@op(primitive="Dense")
def _dense(input: T, weight: T, bias: T | None = None) -> T:
    """input @ weight.T + bias."""
    require_equal_dtypes(input, weight)
    return torch.nn.functional.linear(input, weight, bias)


@op(primitive="Einsum", init=("equation",))
def _einsum(x: Any, equation: str) -> T:
    """The sum of products of a tuple of Tensors that `equation` describes."""
    return torch.einsum(equation, *x)


@op(primitive="Ger")
def _ger(x1: T, x2: T) -> T:
    """The outer product of two vectors."""
    return x1.unsqueeze(-1) * x2.unsqueeze(-2)


@op(primitive="AddN")
def addn(x: Any) -> T:
    """The sum of the Tensors of a tuple or list."""
    return _sum(x)


@op(primitive="AccumulateNV2")
def _accumulate(x: Any) -> T:
    """The sum of the Tensors of a tuple or list."""
    return _sum(x)


def _sum(x: Any) -> T:
    if isinstance(x, T):
        return x
    total, *rest = x
    for other in rest:
        if other.shape != total.shape:
            raise ValueError(f"expected Tensors of one shape, got {tuple(total.shape)} and {tuple(other.shape)}.")
        total = total + other
    return total.clone() if not rest else total


@op(methods=("cross",))
def cross(input: T, other: T, dim: int | None = None) -> T:
    """The cross product along `dim`, of length 3; by default along the first axis of that length."""
    return _cross(input, other, dim)


@op(primitive="Cross", init=("dim",))
def _cross_primitive(input: T, other: T, dim: int = -65530) -> T:
    """The cross product along `dim`, of length 3; -65530 means the first axis of that length."""
    return _cross(input, other, None if dim == -65530 else dim)


def _cross(input: T, other: T, dim: int | None) -> T:
    if not isinstance(other, T):
        raise TypeError(f"expected a Tensor for other, got {type(other).__name__}.")
    if input.ndim != other.ndim:
        input, other = torch.broadcast_tensors(input, other)
    if dim is None:
        dim = next((axis for axis, size in enumerate(input.shape) if size == 3), None)
    if dim is None:
        raise ValueError(f"expected an axis of length 3, got shape {tuple(input.shape)}.")
    if other.dtype is not input.dtype and other.dtype.is_floating_point is input.dtype.is_floating_point:
        other = other.to(input.dtype)
    return torch.linalg.cross(input, other, dim=dim)


@op()
def cdist(x1: T, x2: T, p: float = 2.0) -> T:
    """The distances between all rows of x1 and all rows of x2 in the p-norm: shapes (..., P, M) and (..., R, M) give (..., P, R)."""
    return _distances(x1, x2, p)


@op(primitive="Cdist", init=("p",))
def _cdist(x1: T, x2: T, p: float = 2.0) -> T:
    """The distances between all rows of x1 and all rows of x2 in the p-norm."""
    return _distances(x1, x2, p)


def _distances(x1: T, x2: T, p: float) -> T:
    return torch.cdist(x1, x2, float(p), compute_mode="donot_use_mm_for_euclid_dist")


@op(primitive="Pdist", init=("p",))
def _pdist(x: T, p: float = 2.0) -> T:
    """The distances between all pairs of rows in the p-norm, as a vector for each matrix."""
    return _pairs(x, p)


@op()
def pdist(input: T, p: float = 2.0) -> T:
    """The distances between all pairs of rows in the p-norm, as a vector for each matrix."""
    return _pairs(input, p)


def _pairs(x: T, p: float) -> T:
    rows, columns = torch.triu_indices(x.shape[-2], x.shape[-2], 1, device=x.device)
    return torch.linalg.vector_norm(x.index_select(-2, rows) - x.index_select(-2, columns), float(p), -1)


@op()
def dist(input: T, other: T, p: float = 2) -> T:
    """The p-norm of the difference of all elements."""
    if p == 0 and (input.requires_grad or other.requires_grad):
        return torch.dist(input.detach(), other.detach(), 0.0)         # a count has the gradient 0; torch's own fails
    return torch.dist(input, other, float(p))


@op(methods=("adjoint",))
def adjoint(x: T) -> T:
    """Transpose and conjugate matrices."""
    return x.mT.conj_physical() if x.is_complex() else x.mT.clone()


@op(primitive="ConjugateTranspose")
def _conjugate_transpose(x: T, perm: Any) -> T:
    """Permute the axes to the order `perm` and conjugate complex numbers."""
    out = x.permute(*perm)
    return out.conj_physical() if out.is_complex() else out.clone()


@op(primitive="Trace")
def _trace(input: T) -> T:
    """The sum of the diagonal, in the dtype of the matrix."""
    return torch.trace(input).to(input.dtype)


@op(primitive="TraceV2")
def _trace_v2(input: T, offset: int = 0, axis1: int = 1, axis2: int = 0, dtype: Any = None) -> T:
    """The sum of a diagonal of two axes; of integers an int64, of truth values whether one is True, unless `dtype` says otherwise.

    Raises WrongAxes for fewer than two axes and for equal ones.
    """
    if input.dim() < 2 or axis1 % input.dim() == axis2 % input.dim():
        raise WrongAxes(message(f"TraceV2(axis1={axis1}, axis2={axis2}) of shape {list(input.shape)}", "two different axes"))
    diagonal = torch.diagonal(input, offset, axis1, axis2)
    if dtype is None:
        return diagonal.any(-1) if input.dtype is torch.bool else diagonal.sum(-1)
    return diagonal.sum(-1, dtype=to_torch(dtype))


@op(primitive="TridiagonalMatMul")
def _tridiagonal_matmul(superdiag: T, maindiag: T, subdiag: T, rhs: T) -> T:
    """Multiply a tridiagonal matrix, whose diagonals have shape (..., 1, M), by `rhs` (..., M, N)."""
    main, above, below = (t.mT for t in (maindiag, superdiag, subdiag))
    nothing = torch.zeros_like(rhs[..., :1, :])
    up = torch.cat([rhs[..., 1:, :], nothing], -2)
    down = torch.cat([nothing, rhs[..., :-1, :]], -2)
    return main * rhs + above * up + below * down
