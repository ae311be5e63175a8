"""Differences, sums and searches along an axis: diff, gradient, trapz, interp, convolve, digitize."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.mindspore.numpy.utils import (
    as_list,
    axes_of,
    axis_of,
    floating,
    function,
    is_scalar,
    only_tensor,
    pair,
    to_tensor,
    together,
)
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _stepped(t: T, axis: int) -> T:
    high, low = t.narrow(axis, 1, t.shape[axis] - 1), t.narrow(axis, 0, t.shape[axis] - 1)
    return torch.logical_xor(high, low) if t.dtype is torch.bool else high - low


def _border(value: Any, t: T, axis: int, name: str) -> T:
    if is_scalar(value):
        return to_tensor(value).expand([1 if a == axis else n for a, n in enumerate(t.shape)])
    if not isinstance(value, T):
        raise TypeError(f"expected a number or a Tensor as {name}, got {type(value).__name__}.")
    if value.ndim == 0:
        return value.expand([1 if a == axis else n for a, n in enumerate(t.shape)])
    if value.ndim != t.ndim:
        raise ValueError(f"{name} of shape {tuple(value.shape)}: expected {t.ndim} axes.")
    return value


@function(wide=Widening())
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> T:
    """The `n`-th differences along `axis`; `prepend` and `append` are put in front and behind first."""
    t = only_tensor(a, "a")
    if t.ndim == 0:
        raise ValueError("a: expected one axis at least.")
    axis = axis_of(axis, t.ndim)
    if not is_int(n):
        raise TypeError(message(f"n={n!r}", "an int"))
    if n < 0:
        raise ValueError(f"n={n}: expected at least 0.")
    if n == 0:
        return t
    parts = [t]
    if prepend is not None:
        parts.insert(0, _border(prepend, t, axis, "prepend"))
    if append is not None:
        parts.append(_border(append, t, axis, "append"))
    t = torch.cat(together(*parts), axis) if len(parts) > 1 else t
    if n >= t.shape[axis]:
        raise ValueError(f"n={n}: expected less than {t.shape[axis]}, the length of the axis.")
    for _ in range(n):
        t = _stepped(t, axis)
    return t


@function
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> T:
    """The differences of the flat array, with `to_begin` in front and `to_end` behind, in the dtype of `ary`."""
    flat = only_tensor(ary, "ary").reshape(-1)
    if flat.shape[0] < 2:
        raise ValueError(f"ary: expected two values at least, got {flat.shape[0]}.")
    parts = [to_begin, _stepped(flat, 0), to_end]
    return torch.cat([to_tensor(part).reshape(-1).to(flat.dtype) for part in parts if part is not None])


@function
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The slope along `axis`, an int, a tuple or None for all: half the difference of the neighbours, at the edges the plain difference.

    `varargs` are the distances, one number or one for each axis. Several axes give a list. Raises NotImplementedError if `edge_order` is
    not 1 or a distance is not a number.
    """
    t = floating(to_tensor(f))
    if edge_order != 1:
        raise NotImplementedError(f"edge_order={edge_order!r}: MindSpore supports only 1.")
    axes = axes_of(axis, t.ndim)
    distances = list(varargs) or [1.0]
    if len(distances) not in (1, len(axes)):
        raise TypeError(f"{len(distances)} distances: expected 1, or {len(axes)}, one for each axis.")
    if any(not is_scalar(distance) and not (isinstance(distance, T) and distance.ndim == 0) for distance in distances):
        raise NotImplementedError("expected distances that are numbers: MindSpore supports no others.")
    distances = distances * len(axes) if len(distances) == 1 else distances
    slopes = [_slope(t, slope_axis) / distance for slope_axis, distance in zip(axes, distances)]
    return slopes[0] if len(slopes) == 1 else as_list(slopes)


def _slope(t: T, axis: int) -> T:
    n = t.shape[axis]
    if n < 2:
        raise ValueError(f"f: expected two values at least along axis {axis}.")
    middle = (t.narrow(axis, 2, n - 2) - t.narrow(axis, 0, n - 2)) / 2
    first = t.narrow(axis, 1, 1) - t.narrow(axis, 0, 1)
    last = t.narrow(axis, n - 1, 1) - t.narrow(axis, n - 2, 1)
    return torch.cat([first, middle, last], axis)


@function
def trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> T:
    """The area under y along `axis` by the trapezoidal rule, at the points x or with spacing `dx` (float32, or float16 as y)."""
    values_of_y = to_tensor(y)
    t = values_of_y.to(torch.float32)
    axis = axis_of(axis, t.ndim)
    n = t.shape[axis]
    kind = torch.float16 if values_of_y.dtype is torch.float16 else t.dtype
    height = (t.narrow(axis, 1, n - 1) + t.narrow(axis, 0, n - 1)) / 2
    if x is None:
        return torch.sum(height * dx, axis).to(kind)
    points = to_tensor(x)
    points = points.reshape([-1 if a == axis else 1 for a in range(t.ndim)]) if points.ndim == 1 else points
    along = axis if points.ndim == t.ndim else axis_of(-1, points.ndim)
    return torch.sum(height * _stepped(points, along), axis).to(kind)


@function
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> T:
    """Linear interpolation at x between the points (xp, fp), xp increasing; outside, `left` and `right`, by default the end values."""
    t, points, values = (floating(to_tensor(v)) for v in (x, xp, fp))
    if points.ndim != 1 or values.ndim != 1:
        raise ValueError("xp, fp: expected one axis.")
    if points.shape != values.shape:
        raise ValueError(f"xp of {points.shape[0]} and fp of {values.shape[0]} values: expected as many of one as of the other.")
    t, points, values = together(t, points, values)
    high = torch.searchsorted(points, t.contiguous()).clamp(1, max(points.shape[0] - 1, 1)).clamp(max=points.shape[0] - 1)
    low = (high - 1).clamp(min=0)
    first, width = points.take(low), points.take(high) - points.take(low)
    share = torch.where(width == 0, torch.zeros_like(width), (t - first) / torch.where(width == 0, torch.ones_like(width), width))
    out = values.take(low) + share * (values.take(high) - values.take(low))
    before = values[0] if left is None else to_tensor(left).to(out.dtype)
    after = values[-1] if right is None else to_tensor(right).to(out.dtype)
    return torch.where(t < points[0], before, torch.where(t > points[-1], after, out))


def _slid(a: T, v: T) -> T:
    """Return the full convolution of `a` and `v`: len(a) + len(v) - 1 values."""
    work = torch.float64 if not a.is_floating_point() or a.dtype is torch.float64 else torch.float32
    out = torch.nn.functional.conv1d(a.to(work).reshape(1, 1, -1), v.to(work).flip(0).reshape(1, 1, -1), padding=v.shape[0] - 1)
    return out.reshape(-1)


def _cut(out: T, longer: int, shorter: int, mode: str) -> T:
    if mode == "full":
        return out
    return out[(shorter - 1) // 2:][:longer] if mode == "same" else out[shorter - 1:longer]


def _vectors(a: Any, v: Any, mode: str) -> tuple[T, T]:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode={mode!r}: expected 'full', 'same' or 'valid'.")
    x, y = pair(a, v)
    return x, y


@function
def convolve(a: Any, v: Any, mode: str = "full") -> T:
    """The convolution of two 1-D arrays: all of it, as long as the longer one ('same'), or where they fully overlap ('valid')."""
    x, y = _vectors(a, v, mode)
    x, y = (t.reshape(1) if t.ndim == 0 else t for t in (x, y))
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("a, v: expected one axis.")
    if not x.shape[0] or not y.shape[0]:
        raise ValueError("a, v: expected values.")
    x, y = (y, x) if x.shape[0] < y.shape[0] else (x, y)
    return _cut(_slid(x, y), x.shape[0], y.shape[0], mode).to(x.dtype)


@function
def correlate(a: Any, v: Any, mode: str = "valid") -> T:
    """The correlation of `a` and `v`, with `mode` as in `convolve`. Integers give float32, int64 float64."""
    x, y = _vectors(a, v, mode)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("a, v: expected one axis.")
    if not x.shape[0] or not y.shape[0]:
        raise ValueError("a, v: expected values.")
    kind = x.dtype if x.is_floating_point() else torch.float64 if x.dtype is torch.int64 else torch.float32
    if x.shape[0] >= y.shape[0]:
        return _cut(_slid(x, y.flip(0)), x.shape[0], y.shape[0], mode).to(kind)
    return _cut(_slid(y, x.flip(0)), y.shape[0], x.shape[0], mode).flip(0).to(kind)


@function
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> T:
    """The insertion points of v in the sorted `a` (1-D) (int32): before equal values, or after them ('right').

    `sorter` is the order that sorts `a`.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r}: expected 'left' or 'right'.")
    row, values = pair(a, v)
    if row.ndim != 1:
        raise ValueError(f"a of shape {tuple(row.shape)}: expected one axis.")
    row = row if sorter is None else row[only_tensor(sorter, "sorter").to(torch.int64)]
    return torch.searchsorted(row.contiguous(), values.contiguous(), right=side == "right").to(torch.int32)


@function
def digitize(x: Any, bins: Any, right: bool = False) -> T:
    """The bin number (int32) of each value, between the increasing or decreasing edges `bins`; `right` includes upper edges."""
    values, edges = pair(x, bins)
    if edges.ndim != 1:
        raise ValueError(f"bins of shape {tuple(edges.shape)}: expected one axis.")
    if edges.shape[0] == 0:
        return torch.zeros_like(values, dtype=torch.int32)
    rising = torch.searchsorted(edges.contiguous(), values.contiguous(), right=not right)
    falling = edges.shape[0] - torch.searchsorted(edges.flip(0), values.contiguous(), right=not right)
    return torch.where(edges[0] <= edges[-1], rising, falling).to(torch.int32)


@function
def unwrap(p: Any, discont: float = 3.141592653589793, axis: int = -1) -> T:
    """Angles along `axis` with steps above `discont` reduced by multiples of 2 pi (float32, or float64 as p)."""
    t = floating(to_tensor(p))
    t = t.to(torch.float32) if t.dtype is torch.float16 else t
    axis = axis_of(axis, t.ndim)
    step = _stepped(t, axis)
    turn = torch.remainder(step + torch.pi, 2 * torch.pi) - torch.pi
    turn = torch.where((turn == -torch.pi) & (step > 0), torch.full_like(turn, torch.pi), turn)
    shift = torch.where(torch.abs(step) < discont, torch.zeros_like(step), turn - step)
    return torch.cat([t.narrow(axis, 0, 1), t.narrow(axis, 1, t.shape[axis] - 1) + torch.cumsum(shift, axis)], axis)
