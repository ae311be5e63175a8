"""`pad`: an array with a border."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.mindspore.numpy.array_ops import apply_along_axis
from torchspore.mindspore.numpy.utils import part_of, to_tensor

T = torch.Tensor


def _pairs(value: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """Return a number, (before, after), ((before, after),) or one pair for each axis as one pair for each axis."""
    rows = list(value) if isinstance(value, (tuple, list)) else [value]
    if any(isinstance(row, (tuple, list)) for row in rows):
        rows = [list(row) if isinstance(row, (tuple, list)) else [row] for row in rows]
    else:
        rows = [rows]
    if len(rows) not in (1, ndim) or any(len(row) not in (1, 2) for row in rows):
        raise ValueError(f"{name}={value!r}: expected a number, (before, after), or such a pair for each of {ndim} axes.")
    rows = rows * ndim if len(rows) == 1 else rows
    for row in rows:
        if any(item is not None and not isinstance(item, (int, float)) for item in row):
            raise TypeError(message(f"{name}={value!r}", "numbers"))
    return [(row[0], row[-1]) for row in rows]


def _constant(t: T, axis: int, before: int, after: int, values: tuple[Any, Any]) -> T:
    def block(length: int, value: Any) -> T:
        return torch.full([*t.shape[:axis], length, *t.shape[axis + 1:]], value, dtype=torch.float64, device=t.device).to(t.dtype)

    return torch.cat([block(before, values[0]), t, block(after, values[1])], axis)


def _source_indexes(t: T, axis: int, before: int, after: int) -> T:
    return torch.arange(-before, t.shape[axis] + after, device=t.device)


def _edge(t: T, axis: int, before: int, after: int) -> T:
    return t.index_select(axis, _source_indexes(t, axis, before, after).clamp(0, t.shape[axis] - 1))


def _wrap(t: T, axis: int, before: int, after: int) -> T:
    return t.index_select(axis, _source_indexes(t, axis, before, after) % t.shape[axis])


def _mirrored(t: T, axis: int, before: int, after: int, repeats_edge: bool, odd: bool) -> T:
    """Mirror at the edges as often as necessary; `odd` also reflects the values about the edge's value."""
    n = t.shape[axis]
    if n == 1:
        return _edge(t, axis, before, after)
    period = n if repeats_edge else n - 1
    positions = _source_indexes(t, axis, before, after)
    fold = torch.div(positions, period, rounding_mode="floor")
    inner = positions - fold * period
    is_turned = fold % 2 == 1
    mirrored = t.index_select(axis, torch.where(is_turned, n - 1 - inner, inner))
    if not odd:
        return mirrored
    shape = [-1 if a == axis else 1 for a in range(t.ndim)]
    first, last = t.narrow(axis, 0, 1), t.narrow(axis, n - 1, 1)
    fold, is_turned = fold.reshape(shape).to(t.dtype), is_turned.reshape(shape)
    return torch.where(is_turned, first + last - mirrored, mirrored) + fold * (last - first)


def _mean(t: T, axis: int) -> T:
    if t.is_floating_point():
        return t.mean(axis, keepdim=True)
    return t.to(torch.float64).mean(axis, keepdim=True).to(t.dtype)


_STATISTICS: dict[str, Callable[[T, int], T]] = {
    "maximum": lambda t, axis: t.amax(axis, keepdim=True), "minimum": lambda t, axis: t.amin(axis, keepdim=True), "mean": _mean,
}


def _statistic(t: T, axis: int, before: int, after: int, mode: str, lengths: tuple[Any, Any]) -> T:
    n = t.shape[axis]
    left, right = (n if length is None else min(length, n) for length in lengths)
    compute = _STATISTICS[mode]
    low, high = compute(t.narrow(axis, 0, left), axis), compute(t.narrow(axis, n - right, right), axis)
    wide = [-1] * t.ndim
    return torch.cat([
        low.expand([*wide[:axis], before, *wide[axis + 1:]]), t, high.expand([*wide[:axis], after, *wide[axis + 1:]]),
    ], axis)


def _ramp(t: T, axis: int, before: int, after: int, ends: tuple[Any, Any]) -> T:
    """Return values on a straight line from the edge to the end value, which the outermost element has."""
    shape = [-1 if a == axis else 1 for a in range(t.ndim)]
    work = t if t.is_floating_point() else t.to(torch.float64)
    first, last = work.narrow(axis, 0, 1), work.narrow(axis, t.shape[axis] - 1, 1)
    left = torch.arange(before, dtype=work.dtype, device=t.device).reshape(shape) / max(before, 1)
    right = torch.arange(1, after + 1, dtype=work.dtype, device=t.device).reshape(shape) / max(after, 1)
    low, high = ends[0] + (first - ends[0]) * left, last + (ends[1] - last) * right
    return torch.cat([low.to(t.dtype), t, high.to(t.dtype)], axis)


@part_of("pad")
def _padded(arr: Any, pad_width: Any, mode: str, stat_length: Any, constant_values: Any, end_values: Any, reflect_type: str) -> T:
    t = to_tensor(arr)
    if mode == "median":
        raise NotImplementedError("mode='median': MindSpore has no such mode.")
    if mode not in ("constant", "edge", "empty", "linear_ramp", "maximum", "mean", "minimum", "reflect", "symmetric", "wrap"):
        raise ValueError(f"mode={mode!r}: expected 'constant', 'edge', 'reflect', 'symmetric', 'wrap' or another mode of numpy.pad.")
    if t.ndim == 0:
        return t.clone()
    widths = _pairs(pad_width, t.ndim, "pad_width")
    if any(not isinstance(width, int) for row in widths for width in row):
        raise TypeError(f"pad_width={pad_width!r}: expected ints.")
    lengths, values = _pairs(stat_length, t.ndim, "stat_length"), _pairs(constant_values, t.ndim, "constant_values")
    ends = _pairs(end_values, t.ndim, "end_values")
    for axis, (before, after) in enumerate(widths):
        before, after = max(before, 0), max(after, 0)
        if mode in ("constant", "empty"):
            t = _constant(t, axis, before, after, values[axis] if mode == "constant" else (0, 0))
        elif mode in ("reflect", "symmetric"):
            t = _mirrored(t, axis, before, after, mode == "symmetric", reflect_type == "odd")
        elif mode == "linear_ramp":
            t = _ramp(t, axis, before, after, ends[axis])
        elif mode in _STATISTICS:
            t = _statistic(t, axis, before, after, mode, lengths[axis])
        else:
            t = (_edge if mode == "edge" else _wrap)(t, axis, before, after)
    return t


def pad(
    arr: Any, pad_width: Any, mode: Any = "constant", stat_length: Any = None, constant_values: Any = 0, end_values: Any = 0,
    reflect_type: str = "even", **kwargs: Any,
) -> Any:
    """`arr` with `pad_width` values around it: a number, (before, after), or such a pair for each axis; negative ones count as 0.

    `mode` is 'constant' (`constant_values`), 'edge', 'linear_ramp' (to `end_values`), 'maximum', 'minimum' and 'mean' (of
    `stat_length` values at the edge), 'reflect' and 'symmetric' (`reflect_type` 'even' or 'odd'), 'wrap', 'empty', or a function of each
    1-D vector, its widths, its axis and `kwargs`.
    """
    if not callable(mode):
        if kwargs:
            raise TypeError(f"{', '.join(kwargs)}: expected only if mode is a function.")
        return _padded(arr, pad_width, mode, stat_length, constant_values, end_values, reflect_type)
    out = _padded(arr, pad_width, "constant", None, 0, 0, "even")
    for axis, width in enumerate(_pairs(pad_width, out.ndim, "pad_width")):
        def padded(vector: Any, width: tuple[int, int] = width, axis: int = axis) -> Any:
            return mode(vector, width, axis, kwargs)

        out = apply_along_axis(padded, axis, out)
    return out
