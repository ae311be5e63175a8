"""Sums, means, extremes and cumulative sums along axes."""
from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.mindspore.numpy.utils import (
    axes_of,
    axis_of,
    cast,
    dtype_of_cast,
    floating,
    function,
    is_scalar,
    only_tensor,
    promote,
    to_tensor,
    together,
    widened,
)
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor
_NARROW = frozenset({torch.bool, torch.int8, torch.int16, torch.uint8})
_WIDE = frozenset({torch.uint16, torch.uint32, torch.uint64})
_FAR = 2.0 ** 63
"""Replaces NaN in nanmin and nanmax: the result if there is nothing else."""


@function(wide=Widening())
def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None) -> T:
    """The sum over `axis`, an int, a tuple or None for all, of the values in `dtype`; int64 for integers. `initial` is added."""
    t = cast(to_tensor(a), dtype)
    out = torch.sum(widened(t), axes_of(axis, t.ndim), keepdim=keepdims)
    if t.dtype in _WIDE:
        out = out.to(t.dtype)
    if initial is not None:
        if not is_scalar(initial):
            raise TypeError(f"expected a number as initial, got {type(initial).__name__}.")
        out = out + initial
    return cast(out, dtype)


def _mean(t: T, axes: tuple[int, ...], keepdims: bool) -> T:
    """Return the mean in the dtype of `t`: for integers, it is truncated."""
    if t.is_floating_point() or t.is_complex():
        return torch.mean(t, axes, keepdim=keepdims)
    return torch.mean(t.to(torch.float64), axes, keepdim=keepdims).to(t.dtype)


@function
def mean(a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> T:
    """The mean over `axis`, an int, a tuple or None for all, in the dtype of `a`, then in `dtype`. Raises TypeError for bools."""
    t = _numbers(to_tensor(a))
    return cast(_mean(t, axes_of(axis, t.ndim), keepdims), dtype)


def _numbers(t: T) -> T:
    if t.dtype is torch.bool:
        raise TypeError("expected numbers, got truth values.\n\nhint: cast them, for example with astype(mindspore.float32).")
    return t


def _variance(t: T, axes: tuple[int, ...], ddof: int, keepdims: bool) -> T:
    """Return the mean square distance from the mean, which is truncated for integers."""
    if not is_int(ddof):
        raise TypeError(message(f"ddof={ddof!r}", "an int"))
    square = floating((t - _mean(t, axes, True)) ** 2)
    if _count(t, axes) == 0:
        return torch.sum(square, axes, keepdim=keepdims) * torch.nan
    return torch.sum(square, axes, keepdim=keepdims) / (_count(t, axes) - ddof)


def _count(t: T, axes: tuple[int, ...]) -> int:
    count = 1
    for axis in axes:
        count *= t.shape[axis]
    return count


@function
def var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The variance over `axis`, an int, a tuple or None for all, divided by the count minus `ddof`. Integers give float32."""
    t = _numbers(to_tensor(x))
    return _variance(t, axes_of(axis, t.ndim), ddof, keepdims)


@function
def std(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The standard deviation over `axis`, an int, a tuple or None for all, with the count minus `ddof`. Integers give float32."""
    t = _numbers(to_tensor(x))
    return torch.sqrt(_variance(t, axes_of(axis, t.ndim), ddof, keepdims))


@function
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> T:
    """The largest minus the smallest value along `axis`, an int, a tuple or None for all."""
    t = only_tensor(x, "x")
    axes = axes_of(axis, t.ndim)
    return torch.amax(t, axes, keepdim=keepdims) - torch.amin(t, axes, keepdim=keepdims)


@function
def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The mean over `axis` with `weights`, of x's shape or, for one axis, its length; `returned` adds the sum of the weights.

    The result has the dtype of x, or the common dtype of x and the weights. Raises TypeError if the shapes require an axis.
    """
    t = only_tensor(x, "x")
    if t.dtype is torch.bool:
        raise TypeError("x: expected numbers, got truth values.")
    axes = axes_of(axis, t.ndim)
    if weights is None:
        out = _mean(t, axes, False)
        total = torch.full_like(out, _count(t, axes))
        return (out, total) if returned else out
    w = only_tensor(weights, "weights")
    if w.shape != t.shape:
        if axis is None:
            raise TypeError("axis=None: expected an axis, because x and weights differ in shape.")
        if w.ndim != 1 or builtins.len(axes) != 1 or w.shape[0] != t.shape[axes[0]]:
            raise ValueError(f"weights of shape {tuple(w.shape)}: expected the shape of x, {tuple(t.shape)}, or the length of its axis.")
        w = w.reshape([-1 if a == axes[0] else 1 for a in builtins.range(t.ndim)]).expand(t.shape)
    common = promote(t.dtype, w.dtype)
    total = torch.sum(floating(w), axes)
    out = (torch.sum(floating(t.to(common)) * floating(w.to(common)), axes) / total).to(common)
    return (out, total.to(w.dtype)) if returned else out


def _extreme(compute: Callable[..., T], pick: Callable[[T, T], T], a: T, axis: Any, keepdims: bool, initial: Any, where: Any) -> T:
    t = only_tensor(a, "a")
    if t.numel() == 0:
        raise ValueError(f"expected an array with elements, got one of shape {tuple(t.shape)}.")
    axes = axes_of(axis, t.ndim)
    if initial is None:
        if where is not True:
            raise ValueError("where=...: expected a number as initial, too.")
        return compute(t, axes, keepdim=keepdims)
    if not is_scalar(initial) and not isinstance(initial, T):
        raise TypeError(message(f"initial={initial!r}", "a number"))
    first = initial.to(t.dtype) if isinstance(initial, T) else torch.full((), initial, dtype=torch.float64, device=t.device).to(t.dtype)
    if where is not True:
        t = torch.where(to_tensor(where).to(torch.bool), t, first)
    return pick(compute(t, axes, keepdim=keepdims), first)


@function(wide=Widening(compares=True))
def amax(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> T:
    """The largest value over `axis`, an int, a tuple or None for all, at least `initial`, of the elements where `where` is true."""
    return _extreme(torch.amax, torch.maximum, a, axis, keepdims, initial, where)


@function(wide=Widening(compares=True))
def amin(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> T:
    """The smallest value over `axis`, an int, a tuple or None for all, at most `initial`, of the elements where `where` is true."""
    return _extreme(torch.amin, torch.minimum, a, axis, keepdims, initial, where)


max = amax
min = amin


def _index_of(compute: Callable[..., T], a: Any, axis: Any) -> T:
    t = to_tensor(a)
    t = t.to(torch.uint8) if t.dtype is torch.bool else widened(t)
    if axis is None or t.ndim == 0:
        return compute(t.reshape(-1), 0)
    return compute(t, axis_of(axis, t.ndim))


@function(wide=Widening(values=(), compares=True))
def argmax(a: Any, axis: int | None = None) -> T:
    """The index of the largest value along `axis`, or, for None, in the flat array (int64)."""
    return _index_of(torch.argmax, a, axis)


@function(wide=Widening(values=(), compares=True))
def argmin(a: Any, axis: int | None = None) -> T:
    """The index of the smallest value along `axis`, or, for None, in the flat array (int32; int64 for a single number)."""
    index = _index_of(torch.argmin, a, axis)
    return index if to_tensor(a).ndim == 0 else index.to(torch.int32)


@function
def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> T:
    """The number of nonzero values over `axis`, an int, a tuple or None for all (int32)."""
    t = only_tensor(x, "x")
    return torch.sum(t != 0, axes_of(axis, t.ndim), keepdim=keepdims).to(torch.int32)


def _running(compute: Callable[..., T], t: T, axis: int | None, dtype: Any, to: torch.dtype) -> T:
    """Apply `compute` to the values in `to`, and cast the result to `dtype` if that differs from the input's dtype."""
    wide = widened(t.to(to))
    out = (compute(wide.reshape(-1), 0) if axis is None else compute(wide, axis_of(axis, t.ndim))).to(to)
    return out if dtype is None or dtype_of_cast(dtype) is t.dtype else cast(out, dtype)


@function(wide=Widening())
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> T:
    """The cumulative sum along `axis`, or, for None, of the flat array; narrow integers in int32; then in `dtype`, if it differs."""
    t = only_tensor(a, "a")
    return _running(torch.cumsum, t, axis, dtype, torch.int32 if t.dtype in _NARROW else t.dtype)


@function
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> T:
    """The cumulative product along `axis`, or, for None, of the flat array; narrow integers in 32 bits; then in `dtype`, if it is set."""
    t = to_tensor(a)
    to = torch.uint32 if t.dtype in (torch.uint8, torch.uint16) else torch.int32 if t.dtype in _NARROW else t.dtype
    return cast(_running(torch.cumprod, t, axis, None, to), dtype)


def _filled(t: T, value: float) -> T:
    return torch.where(torch.isnan(t), torch.full((), value, dtype=t.dtype, device=t.device), t) if t.is_floating_point() else t


@function
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> T:
    """`cumsum` with NaN as 0."""
    t = _filled(only_tensor(a, "a"), 0.0)
    return _running(torch.cumsum, t, axis, dtype, torch.int32 if t.dtype in _NARROW else t.dtype)


def _nansum(t: T, axes: tuple[int, ...], dtype: Any, keepdims: bool) -> T:
    return cast(torch.sum(_filled(t, 0.0), axes, keepdim=keepdims, dtype=t.dtype), dtype)


@function(wide=Widening())
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> T:
    """The sum over `axis`, an int, a tuple or None for all, with NaN as 0, in the dtype of `a` or in `dtype`."""
    t = to_tensor(a)
    return _nansum(t, axes_of(axis, t.ndim), dtype, keepdims)


@function
def nanmax(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> T:
    """The largest value over `axis` except NaN, -2 ** 63 if there is none. In `dtype`, if it is set."""
    t = to_tensor(a)
    return cast(torch.amax(_filled(t, -_FAR), axes_of(axis, t.ndim), keepdim=keepdims), dtype)


@function
def nanmin(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> T:
    """The smallest value over `axis` except NaN, 2 ** 63 if there is none. In `dtype`, if it is set."""
    t = to_tensor(a)
    return cast(torch.amin(_filled(t, _FAR), axes_of(axis, t.ndim), keepdim=keepdims), dtype)


def _count_numbers(t: T, axes: tuple[int, ...], keepdims: bool) -> T:
    """Return the number of values that are not NaN (float32)."""
    return torch.sum(~torch.isnan(t), axes, keepdim=keepdims).to(torch.float32)


def _nanmean(t: T, axes: tuple[int, ...], dtype: Any, keepdims: bool) -> T:
    return torch.div(*together(_nansum(t, axes, dtype, keepdims), _count_numbers(t, axes, keepdims)))


@function
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> T:
    """The mean over `axis`, ignoring NaN; the sum is in `dtype`, the quotient at least in float32, for integers in `dtype`."""
    t = to_tensor(a)
    out = _nanmean(t, axes_of(axis, t.ndim), dtype, keepdims)
    return out if t.is_floating_point() else cast(out, dtype)


def _nanvar(a: Any, axis: Any, dtype: Any, ddof: int, keepdims: bool) -> T:
    t = floating(to_tensor(a))
    axes = axes_of(axis, t.ndim)
    distance = _filled((t - _nanmean(t, axes, None, True)) ** 2, 0.0)
    return cast(torch.sum(distance, axes, keepdim=keepdims) / (_count_numbers(t, axes, keepdims) - ddof), dtype)


@function
def nanvar(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The variance over `axis`, ignoring NaN, with the count minus `ddof`. In `dtype`, if it is set."""
    return _nanvar(a, axis, dtype, ddof, keepdims)


@function
def nanstd(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The standard deviation over `axis`, ignoring NaN, with the count minus `ddof`. In `dtype`, if it is set."""
    return cast(torch.sqrt(_nanvar(a, axis, None, ddof, keepdims)), dtype)
