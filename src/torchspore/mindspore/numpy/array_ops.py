"""Shape, order and slices of arrays; functions applied along axes."""
from __future__ import annotations

import builtins
from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.numpy.utils import as_list, axes_of, axis_of, function, only_tensor, shape_of, to_tensor
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


@function
def reshape(x: Any, new_shape: Any) -> T:
    """The values of x in memory order in `new_shape`, an int or a sequence of ints; -1 stands for the remaining size."""
    t = only_tensor(x, "x")
    lengths = list(new_shape) if isinstance(new_shape, (tuple, list)) else [new_shape]
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, (int, torch.SymInt, T)):
            raise TypeError(f"new_shape={new_shape!r}: expected an int, or a tuple or list of ints.")
    return t.reshape([int(length) if isinstance(length, T) else length for length in lengths])


@function
def ravel(x: Any) -> T:
    """The values of x along one axis."""
    return only_tensor(x, "x").reshape(-1)


@function
def transpose(a: Any, axes: Any = None) -> T:
    """Permute the axes to the order `axes`; None reverses them."""
    t = only_tensor(a, "a")
    if axes is None:
        return t.permute(tuple(reversed(range(t.ndim))))
    order = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    if builtins.len(order) != t.ndim:
        raise ValueError(f"axes={axes!r}: expected each of {t.ndim} axes once.")
    order = tuple(axis_of(axis, t.ndim) for axis in order)
    if builtins.len(set(order)) != t.ndim:
        raise ValueError(f"axes={axes!r}: expected each of {t.ndim} axes once.")
    return t.permute(order)


@function
def expand_dims(a: Any, axis: Any) -> T:
    """Insert an axis of length 1 at `axis`, or at each of several."""
    t = only_tensor(a, "a")
    if not isinstance(axis, (tuple, list)):
        return t.unsqueeze(axis_of(axis, t.ndim + 1))
    ndim = t.ndim + builtins.len(axis)
    for position in sorted(axis_of(item, ndim) for item in axis):
        t = t.unsqueeze(position)
    return t


@function
def squeeze(a: Any, axis: Any = None) -> T:
    """Remove the axes of length 1 that `axis` names, or all of them; a longer axis stays."""
    t = only_tensor(a, "a")
    return t.squeeze() if axis is None else t.squeeze(axes_of(axis, t.ndim, can_repeat=True))


@function
def swapaxes(x: Any, axis1: int, axis2: int) -> T:
    """Swap two axes."""
    t = only_tensor(x, "x")
    return t.swapaxes(axis_of(axis1, t.ndim), axis_of(axis2, t.ndim))


@function
def moveaxis(a: Any, source: Any, destination: Any) -> T:
    """Move the axes `source` to the positions `destination`; the others keep their order."""
    t = only_tensor(a, "a")
    axis_lists = [list(axes) if isinstance(axes, (tuple, list)) else [axes] for axes in (source, destination)]
    positions = [[axis_of(axis, t.ndim) for axis in axes] for axes in axis_lists]
    if builtins.len(positions[0]) != builtins.len(positions[1]):
        raise ValueError(f"source={source!r}, destination={destination!r}: expected as many axes in one as in the other.")
    if any(builtins.len(set(axes)) != builtins.len(axes) for axes in positions):
        raise ValueError(f"source={source!r}, destination={destination!r}: expected no axis twice.")
    return torch.movedim(t, positions[0], positions[1])


@function
def rollaxis(x: Any, axis: int, start: int = 0) -> T:
    """Move `axis` in front of the axis at `start`."""
    t = only_tensor(x, "x")
    axis = axis_of(axis, t.ndim)
    if not -t.ndim <= start <= t.ndim:
        raise ValueError(f"start={start}: expected one from {-t.ndim} to {t.ndim}.")
    start = start + t.ndim if start < 0 else start
    return torch.movedim(t, axis, start - 1 if start > axis else start)


@function(wide=Widening())
def flip(m: Any, axis: Any = None) -> T:
    """Reverse the order along `axis`, an int, a tuple or None for all axes."""
    t = only_tensor(m, "m")
    return torch.flip(t, axes_of(axis, t.ndim))


@function(wide=Widening())
def flipud(m: Any) -> T:
    """Reverse the order along axis 0."""
    t = only_tensor(m, "m")
    return torch.flip(t, (axis_of(0, t.ndim),))


@function(wide=Widening())
def fliplr(m: Any) -> T:
    """Reverse the order along axis 1."""
    t = only_tensor(m, "m")
    return torch.flip(t, (axis_of(1, t.ndim),))


@function(wide=Widening())
def rot90(a: Any, k: int = 1, axes: Any = (0, 1)) -> T:
    """Rotate `k` times by 90 degrees, from the first of two axes towards the second."""
    t = only_tensor(a, "a")
    if not is_int(k):
        raise TypeError(message(f"k={k!r}", "an int"))
    if builtins.len(axes) != 2:
        raise ValueError(f"axes={axes!r}: expected two axes.")
    first, second = (axis_of(axis, t.ndim) for axis in axes)
    if first == second:
        raise ValueError(f"axes={axes!r}: expected two different axes.")
    return torch.rot90(t, k, (first, second))


@function
def roll(a: Any, shift: Any, axis: Any = None) -> T:
    """Shift along `axis`, or for None in the flat array; elements that leave one end enter at the other; sequences are paired."""
    t = only_tensor(a, "a")
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if axis is None:
        return torch.roll(t.reshape(-1), sum(shifts)).reshape(t.shape)
    axes = [axis_of(item, t.ndim) for item in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    longest = max(builtins.len(shifts), builtins.len(axes))
    shifts, axes = (values * longest if builtins.len(values) == 1 else values for values in (shifts, axes))
    if builtins.len(shifts) != builtins.len(axes):
        raise ValueError(f"shift={shift!r}, axis={axis!r}: expected as many of one as of the other.")
    return torch.roll(t, shifts, axes)


@function
def tile(a: Any, reps: Any) -> T:
    """Repeat along each axis, `reps` (an int or a sequence of ints) times."""
    return torch.tile(only_tensor(a, "a"), shape_of(reps))


@function
def repeat(a: Any, repeats: Any, axis: int | None = None) -> T:
    """Repeat each value `repeats` times, one number or one for each, along `axis`, or for None in the flat array."""
    t = to_tensor(a)
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis_of(axis, t.ndim))
    counts = list(repeats) if isinstance(repeats, (tuple, list)) else repeats
    if isinstance(counts, list) and builtins.len(counts) == 1:
        counts = counts[0]
    if isinstance(counts, list):
        if builtins.len(counts) != t.shape[axis]:
            raise ValueError(f"repeats={repeats!r}: expected one number, or {t.shape[axis]}, the length of the axis.")
        counts = constant(counts, t.device)
    elif not isinstance(counts, T):
        counts = shape_of(counts)[0]
    return torch.repeat_interleave(t, counts, axis)


@function
def broadcast_to(array: Any, shape: Any) -> T:
    """Broadcast to `shape`, a sequence of ints."""
    t = only_tensor(array, "array")
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"shape={shape!r}: expected a tuple or a list of ints.")
    return t.expand(tuple(shape)).clone()


@function
def broadcast_arrays(*args: Any) -> Any:
    """A list of the arrays, broadcast to one shape."""
    tensors = [only_tensor(value, f"args[{i}]") for i, value in enumerate(args)]
    return as_list(t.clone() for t in torch.broadcast_tensors(*tensors))


def _single_or_list(tensors: list[T]) -> Any:
    return tensors[0] if builtins.len(tensors) == 1 else as_list(tensors)


@function
def atleast_1d(*arys: Any) -> Any:
    """The arrays with at least one axis; a list for several arrays."""
    tensors = [only_tensor(value, f"arys[{i}]") for i, value in enumerate(arys)]
    return _single_or_list([t.reshape(1) if t.ndim == 0 else t for t in tensors])


@function
def atleast_2d(*arys: Any) -> Any:
    """The arrays with at least two axes, new ones in front; a list for several arrays."""
    tensors = [only_tensor(value, f"arys[{i}]") for i, value in enumerate(arys)]
    return _single_or_list([t.reshape(1, -1) if t.ndim < 2 else t for t in tensors])


@function
def atleast_3d(*arys: Any) -> Any:
    """The arrays with at least three axes: (N,) becomes (1, N, 1), (M, N) becomes (M, N, 1); a list for several arrays."""
    tensors = [only_tensor(value, f"arys[{i}]") for i, value in enumerate(arys)]
    return _single_or_list([t if t.ndim > 2 else t.unsqueeze(-1) if t.ndim == 2 else t.reshape(1, -1, 1) for t in tensors])


@function
def size(a: Any, axis: int | None = None) -> int:
    """The number of values, in all or along `axis`."""
    t = to_tensor(a)
    return t.numel() if axis is None else t.shape[axis_of(axis, t.ndim)]


def array_str(a: Any) -> str:
    """The values of the Tensor `a` as text, in NumPy's format."""
    from torchspore.mindspore.common import Tensor

    if not isinstance(a, Tensor):
        raise TypeError(f"expected a Tensor as a, got {type(a).__name__}.")
    return str(a.asnumpy())


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply `func1d(slice, *args, **kwargs)` to each 1-D slice of `arr` along `axis`; the axes of the results replace it."""
    axis = axis_of(axis, arr.ndim)
    moved = moveaxis(arr, axis, -1)
    outer = moved.shape[:-1]
    rows = reshape(moved, (-1, moved.shape[-1]))
    results = [func1d(rows[i], *args, **kwargs) for i in range(rows.shape[0])]
    out = stack([f if hasattr(f, "asnumpy") else as_tensor(f) for f in results])
    inner = out.shape[1:]
    out = reshape(out, (*outer, *inner))
    count = builtins.len(inner)
    return moveaxis(out, tuple(range(-count, 0)), tuple(range(axis, axis + count))) if count else out


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """`func(a, axis)`, applied to its result for one axis after the other; an axis that it removes is inserted again with length 1."""
    out = as_tensor(a)
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        if not is_int(axis):
            raise TypeError(f"axes={axes!r}: expected an int, or a sequence of ints.")
        axis = axis_of(axis, out.ndim)
        result = func(out, axis)
        out = expand_dims(result, axis) if result.ndim == out.ndim - 1 else result
        if out.ndim != builtins.len(as_tensor(a).shape):
            raise ValueError("func: expected a function that removes at most one axis.")
    return out


@function
def as_tensor(value: Any) -> T:
    """A Tensor of an array-like."""
    return to_tensor(value)


from torchspore.mindspore.numpy.joining import (  # noqa: E402
    append,
    array_split,
    column_stack,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    vsplit,
    vstack,
)
from torchspore.mindspore.numpy.selection import (  # noqa: E402
    argwhere,
    choose,
    intersect1d,
    piecewise,
    select,
    take,
    take_along_axis,
    unique,
    unravel_index,
    where,
)

__all__ = [
    "append", "apply_along_axis", "apply_over_axes", "argwhere", "array_split", "array_str", "atleast_1d", "atleast_2d", "atleast_3d",
    "broadcast_arrays", "broadcast_to", "choose", "column_stack", "concatenate", "dsplit", "dstack", "expand_dims", "flip", "fliplr",
    "flipud", "hsplit", "hstack", "intersect1d", "moveaxis", "piecewise", "ravel", "repeat", "reshape", "roll", "rollaxis", "rot90",
    "select", "size", "split", "squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile", "transpose", "unique", "unravel_index",
    "vsplit", "vstack", "where",
]
