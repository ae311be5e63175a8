"""Selection by conditions and indexes; sets."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.numpy.utils import axis_of, function, only_tensor, part_of, to_tensor, together
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


@function
def where(condition: Any, x: Any = None, y: Any = None) -> T:
    """x where `condition` is true, y elsewhere, broadcast to one shape. Raises TypeError without x and y."""
    if x is None or y is None:
        raise TypeError("expected x and y with the condition.\n\nhint: write argwhere for the indexes where it is true.")
    chosen, otherwise = together(to_tensor(x), to_tensor(y))
    return torch.where(to_tensor(condition).to(torch.bool), chosen, otherwise)


@function
def select(condlist: Any, choicelist: Any, default: Any = 0) -> T:
    """The values of the first choice whose condition is true, else `default`; in the dtype of the choices."""
    conditions, choices = (list(v.unbind(0)) if isinstance(v, T) else list(v) for v in (condlist, choicelist))
    if len(conditions) != len(choices):
        raise ValueError(f"condlist, choicelist: expected as many of one as of the other, got {len(conditions)} and {len(choices)}.")
    if not choices:
        raise ValueError("condlist=[]: expected at least one condition.")
    return _selected([to_tensor(c).to(torch.bool) for c in conditions], together(*map(to_tensor, choices)), default)


def _selected(conditions: list[T], choices: list[T], default: Any) -> T:
    out = to_tensor(default).to(choices[0].dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        out = torch.where(condition, choice, out)
    return out


@function
def choose(a: Any, choices: Any, mode: str = "clip") -> T:
    """Select each element from the choice with the number in `a` (ints), all broadcast to one shape.

    Numbers outside are clipped (`mode` 'clip') or wrapped around ('wrap').
    """
    numbers = to_tensor(a)
    if numbers.is_floating_point() or numbers.dtype is torch.bool:
        raise ValueError("a: expected integers.")
    if numbers.ndim == 0:
        raise ValueError("a: expected one axis at least.")
    options = list(choices.unbind(0)) if isinstance(choices, T) else together(*map(to_tensor, choices))
    numbers = _inside(numbers, len(options), mode)
    shaped = torch.broadcast_tensors(numbers, *options)
    return torch.gather(torch.stack(shaped[1:]), 0, shaped[0].unsqueeze(0).to(torch.int64)).squeeze(0)


def _inside(positions: T, length: int, mode: str) -> T:
    if mode == "raise":
        raise NotImplementedError("mode='raise': MindSpore has no such mode.")
    if mode not in ("clip", "wrap"):
        raise ValueError(f"mode={mode!r}: expected 'clip' or 'wrap'.")
    return torch.clamp(positions, 0, length - 1) if mode == "clip" else torch.remainder(positions, length)


@function
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "clip") -> T:
    """The values at `indices` (ints of any shape) along `axis`, or for None in the flat array; negative ones count from the end.

    Indexes outside are clipped (`mode` 'clip') or wrapped around ('wrap').
    """
    t, positions = only_tensor(a, "a"), only_tensor(indices, "indices")
    if positions.is_floating_point():
        raise TypeError("indices: expected integers.")
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis_of(axis, t.ndim))
    length = t.shape[axis]
    positions = _inside(torch.where(positions < 0, positions + length, positions), length, mode).to(torch.int64)
    out = t.index_select(axis, positions.reshape(-1))
    return out.reshape([*t.shape[:axis], *positions.shape, *t.shape[axis + 1:]])


@function
def take_along_axis(arr: Any, indices: Any, axis: int | None) -> T:
    """For each 1-D slice along `axis`, the values at its slice of `indices`; for None, those of the flat array."""
    t, positions = only_tensor(arr, "arr"), only_tensor(indices, "indices")
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis_of(axis, t.ndim))
    if positions.ndim != t.ndim:
        raise ValueError(f"indices of shape {tuple(positions.shape)}: expected {t.ndim} axes, the number of arr.")
    shape = torch.broadcast_shapes(*([*s.shape[:axis], 1, *s.shape[axis + 1:]] for s in (t, positions)))
    t, positions = (s.expand([*shape[:axis], s.shape[axis], *shape[axis + 1:]]) for s in (t, positions))
    return torch.gather(t, axis, torch.where(positions < 0, positions + t.shape[axis], positions).to(torch.int64))


@function(wide=Widening(values=()))
def argwhere(a: Any) -> T:
    """The indexes (int64, one row each) where `a` is not zero."""
    return torch.nonzero(to_tensor(a))


@function
def unique(x: Any, return_inverse: bool = False) -> Any:
    """The different values in the order of their first occurrence.

    With `return_inverse` also the index of each element's value among them (int32, or int64 for int64).
    """
    flat = only_tensor(x, "x").reshape(-1)
    values, inverse = torch.unique(flat, return_inverse=True)
    positions = torch.arange(flat.numel(), device=flat.device)
    first = torch.full((values.numel(),), flat.numel(), device=flat.device).scatter_reduce(0, inverse, positions, "amin")
    order = torch.argsort(first)
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=flat.device))
    kind = torch.int64 if flat.dtype is torch.int64 else torch.int32
    return (values[order], rank[inverse].to(kind)) if return_inverse else values[order]


def _firsts(flat: T, assume_unique: bool) -> tuple[T, T]:
    """Return the values and the index of each first occurrence; all of them if `assume_unique`."""
    positions = torch.arange(flat.numel(), device=flat.device)
    if assume_unique:
        return flat, positions
    values, inverse = torch.unique(flat, return_inverse=True)
    return values, torch.full((values.numel(),), flat.numel(), device=flat.device).scatter_reduce(0, inverse, positions, "amin")


@function
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The sorted common values, and, with `return_indices`, the indexes of their first occurrences in both flat arrays (int32)."""
    left, right = together(to_tensor(ar1).reshape(-1), to_tensor(ar2).reshape(-1))
    (a, where_a), (b, where_b) = _firsts(left, assume_unique), _firsts(right, assume_unique)
    values, order = torch.sort(torch.cat([a, b]), stable=True)
    common = torch.nonzero(values[1:] == values[:-1]).reshape(-1)
    if not return_indices:
        return values[common]
    return values[common], where_a[order[common]].to(torch.int32), where_b[order[common + 1] - a.numel()].to(torch.int32)


@function
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Convert flat `indices` into an array of `shape` to one index array for each axis; indexes outside are clipped.

    Negative ones count from the end; `order` 'F' counts columns first.
    """
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r}: expected 'C' or 'F'.")
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    t = to_tensor(indices)
    count = 1
    for length in lengths:
        count *= length
    rest = torch.clamp(torch.where(t < 0, t + count, t), 0, count - 1)
    coordinates = []
    for length in lengths if order == "F" else reversed(lengths):
        coordinates.append(torch.remainder(rest, length))
        rest = torch.div(rest, length, rounding_mode="floor")
    if t.is_floating_point():
        coordinates = [torch.floor(axis_positions) for axis_positions in coordinates]
    return tuple(coordinates if order == "F" else reversed(coordinates))


@part_of("piecewise")
def _chosen(conditions: Any, values: Any) -> T:
    return _selected([to_tensor(c).to(torch.bool) for c in conditions], together(*map(to_tensor, values)), 0)


@part_of("piecewise")
def _none_of(conditions: Any) -> T:
    masks = [to_tensor(c).to(torch.bool) for c in conditions]
    out = ~masks[0]
    for condition in masks[1:]:
        out = out & ~condition
    return out


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """For each condition that is true, the value of its function of x, or its number; 0 if none is true.

    One more function than conditions applies where none is true; functions are called with all of x, `args` and `kw`.
    """
    from torchspore.mindspore.numpy.array_ops import as_tensor

    conditions = list(condlist) if isinstance(condlist, (tuple, list)) else [condlist]
    if not isinstance(funclist, (tuple, list)):
        raise TypeError(f"expected a tuple or a list as funclist, got {type(funclist).__name__}.")
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"funclist: expected {len(conditions)} or {len(conditions) + 1} functions, got {len(funclist)}.")
    if len(funclist) == len(conditions) + 1:
        conditions = [*conditions, _none_of(conditions)]
    x = as_tensor(x)
    return _chosen(conditions, [f(x, *args, **kw) if callable(f) else f for f in funclist])
