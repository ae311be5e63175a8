"""Running sums, products and extremes along an axis."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.reductions.reduction import cast_to_integers

T = torch.Tensor


@op(methods=("cumsum",), wide=Widening())
def cumsum(x: T, axis: int, dtype: Any = None) -> T:
    """The cumulative sum along `axis`."""
    return torch.cumsum(cast_to_integers(x, dtype), axis, dtype=as_dtype(dtype) or (x.dtype if x.dtype is not torch.bool else None))


@op(primitive="CumSum", init=("exclusive", "reverse"), wide=Widening())
def _cumsum(input: T, axis: int, exclusive: bool = False, reverse: bool = False) -> T:
    """The cumulative sum along `axis`, without the element itself if `exclusive`, from the end if `reverse`."""
    x = input.flip(axis) if reverse else input
    out = torch.cumsum(x, axis, dtype=input.dtype)
    out = out - x if exclusive else out
    return out.flip(axis) if reverse else out


@op(methods=("cummax",), wide=Widening(compares=True))
def cummax(input: T, axis: int) -> Any:
    """The cumulative maximum along `axis`, and its index (int64)."""
    return tuple(torch.cummax(input, axis))


@op(methods=("cummin",), wide=Widening(compares=True))
def cummin(input: T, axis: int) -> Any:
    """The cumulative minimum along `axis`, and its index (int32)."""
    values, indexes = torch.cummin(input, axis)
    return values, indexes.to(torch.int32)


@op(primitive="Cummax", init=("axis",), wide=Widening(compares=True))
def _cummax(input: T, axis: int) -> Any:
    """The cumulative maximum along `axis`, and its index (int64)."""
    return tuple(torch.cummax(input, axis))


@op(primitive="Cummin", init=("axis",), wide=Widening(compares=True))
def _cummin(input: T, axis: int) -> Any:
    """The cumulative minimum along `axis`, and its index (int32)."""
    values, indexes = torch.cummin(input, axis)
    return values, indexes.to(torch.int32)


@op(methods=("cumprod",))
def cumprod(input: T, dim: int, dtype: Any = None) -> T:
    """The cumulative product along `dim`; int64 for integers unless `dtype` says otherwise."""
    return torch.cumprod(cast_to_integers(input, dtype), dim, dtype=as_dtype(dtype))


def _running(function: Any, x: T, axis: int, exclusive: bool, reverse: bool, start: float) -> T:
    """Compute a cumulative statistic along `axis`, without the element itself if `exclusive`, from the end if `reverse`."""
    x = x.flip(axis) if reverse else x
    if exclusive:
        first = torch.full_like(x.narrow(axis, 0, min(1, x.shape[axis])), start)
        x = torch.cat([first, x.narrow(axis, 0, max(x.shape[axis] - 1, 0))], axis)
    out = function(x, axis)
    return out.flip(axis) if reverse else out


@op(primitive="CumProd", init=("exclusive", "reverse"), wide=Widening())
def _cumprod(x: T, axis: int, exclusive: bool = False, reverse: bool = False) -> T:
    """The cumulative product along `axis`, without the element itself if `exclusive`, from the end if `reverse`."""
    return _running(lambda t, a: torch.cumprod(t, a, dtype=t.dtype), x, int(axis), exclusive, reverse, 1)


@op(methods=("logcumsumexp",))
def logcumsumexp(input: T, axis: int) -> T:
    """log(the cumulative sum of exp(x)) along `axis`."""
    return torch.logcumsumexp(input, axis)


@op(primitive="CumulativeLogsumexp", init=("exclusive", "reverse"))
def _logcumsumexp(x: T, axis: T, exclusive: bool = False, reverse: bool = False) -> T:
    """log(the cumulative sum of exp(x)) along `axis`, without the element itself if `exclusive`, from the end if `reverse`."""
    return _running(torch.logcumsumexp, x, int(axis), exclusive, reverse, torch.finfo(x.dtype).min)
