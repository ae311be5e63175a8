"""Largest and smallest values along axes, and their positions."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.reductions.reduction import axes_of

T = torch.Tensor


@op(primitive="ReduceMax", init=("keep_dims",), wide=Widening(compares=True))
def _reduce_max(x: T, axis: Any = (), keep_dims: bool = False) -> T:
    """The largest value along `axis`."""
    return torch.amax(x, axes_of(x, axis), keep_dims)


@op(primitive="ReduceMin", init=("keep_dims",), wide=Widening(compares=True))
def _reduce_min(x: T, axis: Any = (), keep_dims: bool = False) -> T:
    """The smallest value along `axis`."""
    return torch.amin(x, axes_of(x, axis), keep_dims)


@op(methods=("amax",), wide=Widening(compares=True))
def amax(input: T, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> T:
    """The largest value along `axis`; `initial` is the minimum result, and only elements where `where` is True count."""
    return _extreme(torch.amax, torch.maximum, input, axis, keepdims, initial, where)


@op(methods=("amin",), wide=Widening(compares=True))
def amin(input: T, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> T:
    """The smallest value along `axis`; `initial` is the maximum result, and only elements where `where` is True count."""
    return _extreme(torch.amin, torch.minimum, input, axis, keepdims, initial, where)


def _extreme(reduce: Any, choose: Any, x: T, axis: Any, keepdims: bool, initial: Any, where: Any) -> T:
    if where is not None:
        fill = _end(x.dtype, choose is torch.minimum) if initial is None else initial
        x = torch.where(where, x, constant(fill, x.device, x.dtype))
    out = reduce(x, axes_of(x, axis), keepdims)
    return out if initial is None else choose(out, constant(initial, x.device, x.dtype))


def _end(dtype: torch.dtype, upper: bool) -> Any:
    """Return the largest or the smallest value of a dtype."""
    if dtype.is_floating_point:
        return math.inf if upper else -math.inf
    return upper if dtype is torch.bool else torch.iinfo(dtype).max if upper else torch.iinfo(dtype).min


def _chosen(input: T, initial: Any, where: Any, outer: Any) -> T:
    """Limit the input by `initial`, which also replaces elements where `where` is False."""
    if initial is None and where is None:
        return input
    if initial is None:
        raise ValueError("where=...: expected initial too, which replaces the excluded elements.")
    if isinstance(initial, T) and initial.ndim == 0:
        initial = initial.item()
    if not isinstance(initial, (int, float)):
        raise TypeError(message(f"initial={initial!r:.40}", with_type("a number", initial)))
    start = torch.full_like(input, initial)
    if where is not None and not isinstance(where, (T, bool)):
        raise TypeError(f"where={where!r:.40}: expected a Tensor of truth values, got {type(where).__name__}.")
    if isinstance(where, T) and where.dtype is not torch.bool:
        raise TypeError("where=...: expected a Tensor of truth values, got one of numbers.")
    bounded = outer(input, start)
    if where is None or isinstance(where, bool):
        return start if where is False else bounded
    return torch.where(where, bounded, start)


@op(wide=Widening(compares=True))
def max(input: T, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    """Without `axis`, the largest value and index 0; else the largest values along it and their indexes (int64).

    With `axis`, no value is below `initial`, which also replaces elements where `where` is False.
    """
    if axis is not None:
        input = _chosen(input, initial, where, torch.maximum)
    if axis is None:
        return torch.amax(input, axes_of(input, None)), torch.zeros((), dtype=torch.int64, device=input.device)
    return tuple(torch.max(input, axis, keepdims))


@op(wide=Widening(compares=True))
def min(input: T, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    """Without `axis`, the smallest value and index 0; else the smallest values along it and their indexes (int64).

    With `axis`, no value is above `initial`, which also replaces elements where `where` is False.
    """
    if axis is not None:
        input = _chosen(input, initial, where, torch.minimum)
    if axis is None:
        return torch.amin(input, axes_of(input, None)), torch.zeros((), dtype=torch.int64, device=input.device)
    return tuple(torch.min(input, axis, keepdims))


@op(primitive="ArgMaxWithValue", init=("axis", "keep_dims"), wide=Widening(values=(1,), compares=True))
def _argmax_with_value(input: T, axis: int = 0, keep_dims: bool = False) -> Any:
    """The index (int64) and the value of the maximum along `axis`."""
    values, indexes = torch.max(input, axis, keep_dims)
    return indexes, values


@op(primitive="ArgMinWithValue", init=("axis", "keep_dims"), wide=Widening(values=(1,), compares=True))
def _argmin_with_value(input: T, axis: int = 0, keep_dims: bool = False) -> Any:
    """The index (int64) and the value of the minimum along `axis`."""
    values, indexes = torch.min(input, axis, keep_dims)
    return indexes, values


@op(wide=Widening(values=(), compares=True))
def argmax(input: T, dim: int | None = None, keepdim: bool = False) -> T:
    """The index (int64) of the largest value along `dim`, or in the flat Tensor, where `keepdim` has no effect."""
    return torch.argmax(_numbers(input), dim, keepdim and dim is not None)


@op(methods=("argmin",), wide=Widening(values=(), compares=True))
def argmin(input: T, axis: int | None = None, keepdims: bool = False) -> T:
    """The index (int32) of the smallest value along `axis`, or in the flat Tensor, where `keepdims` has no effect."""
    return torch.argmin(_numbers(input), axis, keepdims and axis is not None).to(torch.int32)


def _numbers(x: T) -> T:
    """Return x, with bools as 0 and 1, because torch does not order bools."""
    return x.to(torch.uint8) if x.dtype is torch.bool else x


@op(primitive="Argmax", init=("axis", "output_type"), wide=Widening(values=(), compares=True))
def _argmax_primitive(input_x: T, axis: int = -1, output_type: Any = torch.int32) -> T:
    """The index of the largest value along `axis`, int32 unless `output_type` says int64."""
    return torch.argmax(input_x, axis).to(as_dtype(output_type))


@op(primitive="Argmin", init=("axis", "output_type"), wide=Widening(values=(), compares=True))
def _argmin_primitive(input_x: T, axis: int = -1, output_type: Any = torch.int32) -> T:
    """The index of the smallest value along `axis`, int32 unless `output_type` says int64."""
    return torch.argmin(input_x, axis).to(as_dtype(output_type))


@op(methods=("aminmax",), wide=Widening(values=(0, 1), compares=True))
def aminmax(input: T, *, axis: int | None = 0, keepdims: bool = False) -> Any:
    """The smallest and the largest value along `axis`, or of all elements for None."""
    if not input.requires_grad:
        return tuple(torch.aminmax(input, dim=axis, keepdim=keepdims))
    values = input.reshape(-1) if axis is None else input                      # of equal values, the first gets the gradient
    low, high = (pick(values, 0 if axis is None else axis, keepdim=keepdims).values for pick in (torch.min, torch.max))
    shape = (1,) * input.ndim
    return (low.reshape(shape), high.reshape(shape)) if axis is None and keepdims else (low, high)


@op(wide=Widening(compares=True))
def reduce_max(x: T, axis: Any = ()) -> T:
    """The largest value along `axis`."""
    return torch.amax(x, axes_of(x, axis))


@op(wide=Widening(compares=True))
def reduce_min(x: T, axis: Any = ()) -> T:
    """The smallest value along `axis`."""
    return torch.amin(x, axes_of(x, axis))
