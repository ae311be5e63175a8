"""Products of vectors and matrices, and norms."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.engine.formulas.half_precision import in_float32
from torchspore.mindspore.numpy.utils import axes_of, axis_of, cast, floating, function, only_tensor, pair, to_tensor
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _tensors(a: Any, b: Any) -> tuple[T, T]:
    x, y = only_tensor(a, "a"), only_tensor(b, "b")
    if x.dtype is not y.dtype:
        raise TypeError("expected two arrays of one dtype.\n\nhint: cast one of them, for example with astype(mindspore.float32).")
    return x, y


@function(wide=Widening())
def matmul(x1: Any, x2: Any, dtype: Any = None) -> T:
    """The matrix product over the last two axes, the others broadcast; one axis is a row or a column. In `dtype`, if it is set."""
    a, b = _tensors(x1, x2)
    if not a.ndim or not b.ndim:
        raise ValueError("expected arrays of one axis at least.\n\nhint: write multiply for a number.")
    return cast(in_float32(torch.matmul, a, b), dtype)


@function
def dot(a: Any, b: Any) -> T:
    """The sum of products over the last axis of `a` and the second-to-last of `b`; the product if one has no axes."""
    x, y = _tensors(a, b)
    if not x.ndim or not y.ndim:
        return x * y
    axis = 0 if y.ndim == 1 else y.ndim - 2
    if x.shape[-1] != y.shape[axis]:
        raise ValueError(f"a of shape {tuple(x.shape)}, b of shape {tuple(y.shape)}: the lengths of the summed axes differ.")
    return torch.tensordot(x, y, ([x.ndim - 1], [axis]))


@function
def inner(a: Any, b: Any) -> T:
    """The sum of products over the last axes; the product if one has no axes."""
    x, y = _tensors(a, b)
    if not x.ndim or not y.ndim:
        return x * y
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"a of shape {tuple(x.shape)}, b of shape {tuple(y.shape)}: the lengths of the last axes differ.")
    return torch.tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))


@function
def outer(a: Any, b: Any) -> T:
    """The outer product of the flat `a` and the flat `b`."""
    x, y = _tensors(a, b)
    return x.reshape(-1, 1) * y.reshape(1, -1)


@function
def tensordot(a: Any, b: Any, axes: Any = 2) -> T:
    """The sum of products over the last `axes` axes of `a` and the first of `b`, or over the axes in a pair of sequences."""
    x, y = _tensors(a, b)
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left, right = ([axis_list] if isinstance(axis_list, int) else list(axis_list) for axis_list in axes)
    if len(left) != len(right) or any(x.shape[i] != y.shape[j] for i, j in zip(left, right)):
        raise ValueError(f"axes={axes!r}: the lengths of the summed axes differ, a is {tuple(x.shape)} and b {tuple(y.shape)}.")
    return torch.tensordot(x, y, (left, right))


@function
def multi_dot(arrays: Any) -> T:
    """The matrix product of all arrays, matrices except perhaps the first and last, in the cheapest order."""
    tensors = [to_tensor(value) for value in arrays]
    if len(tensors) < 2:
        raise ValueError(f"arrays: expected at least two, got {len(tensors)}.")
    if all(t.is_floating_point() for t in tensors):
        return torch.linalg.multi_dot(tensors)
    out = tensors[0]
    for t in tensors[1:]:
        out = torch.matmul(out, t)
    return out


@function
def matrix_power(a: Any, n: int) -> T:
    """The square matrix `a` multiplied with itself `n` times, the identity for 0. Raises ValueError for n < 0."""
    t = to_tensor(a)
    if not is_int(n):
        raise TypeError(message(f"n={n!r}", "an int"))
    if n < 0:
        raise ValueError(f"n={n}: expected at least 0.")
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ValueError(f"a of shape {tuple(t.shape)}: expected square matrices.")
    out = None
    while n:
        if n & 1:
            out = t.clone() if out is None else torch.matmul(out, t)
        n >>= 1
        t = torch.matmul(t, t) if n else t
    return torch.eye(t.shape[-1], dtype=t.dtype, device=t.device).expand(t.shape).clone() if out is None else out


@function
def kron(a: Any, b: Any) -> T:
    """The Kronecker product: `b` times each value of `a`, as blocks."""
    return torch.kron(*pair(a, b))


@function
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> T:
    """Cross products of vectors of 2 or 3 values along `axisa` and `axisb`, with the result along `axisc`; `axis` replaces all three.

    Two vectors of 2 values give one number, the third component.
    """
    x, y = pair(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = torch.movedim(x, axis_of(axisa, x.ndim), -1), torch.movedim(y, axis_of(axisb, y.ndim), -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(f"vectors of {x.shape[-1]} and {y.shape[-1]} values: expected 2 or 3.")
    if x.shape[-1] == y.shape[-1] == 2:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    x, y = (torch.nn.functional.pad(t, (0, 3 - t.shape[-1])) for t in (x, y))
    x, y = torch.broadcast_tensors(x, y)
    out = torch.linalg.cross(x, y, dim=-1)
    return torch.movedim(out, -1, axis_of(axisc, out.ndim))


def _vector_norm(t: T, order: Any, axes: tuple[int, ...], keepdims: bool) -> T:
    if isinstance(order, str):
        raise ValueError(f"ord={order!r}: expected a number for vectors.")
    size = torch.abs(t)
    if order is None or order == 2:
        return torch.sqrt(torch.sum(size * size, axes, keepdim=keepdims))
    if order in (float("inf"), -float("inf")):
        return (torch.amax if order > 0 else torch.amin)(size, axes, keepdim=keepdims)
    if order == 0:
        return torch.sum(size != 0, axes, keepdim=keepdims).to(t.dtype)
    return torch.pow(torch.sum(torch.pow(size, order), axes, keepdim=keepdims), 1 / order)


def _matrix_norm(t: T, order: Any, axes: tuple[int, ...], keepdims: bool) -> T:
    if order not in (None, "fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
        raise ValueError(f"ord={order!r}: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices.")
    if order in (None, "fro"):
        return _vector_norm(t, None, axes, keepdims)
    return torch.linalg.matrix_norm(t, order, axes, keepdims)


@function
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> T:
    """The norm `ord` of the vectors along one axis, of the matrices along two, or of all values.

    It is float32 for integers and for float16; the largest and smallest values of float16 vectors (`ord` inf and -inf) stay float16.

    For vectors `ord` is a number p, inf, -inf or 0 (the number of nonzero values), for matrices 'fro', 'nuc', 1, 2, inf or their negatives.
    """
    t = floating(to_tensor(x))
    is_extreme = ord in (float("inf"), -float("inf")) and (t.ndim == 1 if axis is None else len(axes_of(axis, t.ndim)) == 1)
    t = t.to(torch.float32) if t.dtype is torch.float16 and not is_extreme else t
    axes = axes_of(axis, t.ndim)
    if ord is None:
        return _vector_norm(t, None, axes, keepdims)
    if axis is None and t.ndim not in (1, 2):
        raise ValueError(f"ord={ord!r}: expected an axis for an array of {t.ndim} axes.")
    if len(axes) == 1:
        return _vector_norm(t, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"axis={axis!r}: expected one axis or two.")
    return _matrix_norm(t, ord, axes, keepdims)
