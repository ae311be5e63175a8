"""Sums, means, products, counts and truth values along axes."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.engine.autograd import integer_gradients
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.dtypes import to_torch
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor
Axis = Any


def cast_to_integers(x: T, dtype: Any) -> T:
    """Cast real numbers to `dtype` if that is an integer dtype or bool; the gradient passes through the cast, as in MindSpore.

    torch's functions do this cast with their `dtype` argument, but refuse it where a gradient is needed.
    """
    if dtype is None or not x.requires_grad:
        return x
    target_dtype = to_torch(dtype)
    if target_dtype.is_floating_point or target_dtype.is_complex or x.is_complex():
        return x
    return integer_gradients.cast(x, target_dtype)


def axes_of(x: T, axis: Axis) -> tuple[int, ...]:
    """Return the axes that `axis` (None, (), an int, a tuple, a list or a Tensor) means; None and () mean all."""
    if isinstance(axis, T):
        axis = tuple(axis.reshape(-1).tolist())
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        return tuple(range(x.ndim))
    return (axis,) if hasattr(axis, "__index__") else tuple(axis)        # NumPy's integers too


@op(primitive="ReduceSum", init=("keep_dims", "skip_mode"), wide=Widening())
def _reduce_sum(x: T, axis: Axis = (), keep_dims: bool = False, skip_mode: bool = False) -> T:
    """The sum along `axis` in x's dtype; for bools, whether any is true; with `skip_mode`, an empty axis leaves x unchanged."""
    if skip_mode and isinstance(axis, (tuple, list)) and not axis:
        return x
    if x.dtype.is_floating_point:
        return torch.sum(x, axes_of(x, axis), keep_dims)
    return torch.sum(x, axes_of(x, axis), keep_dims, dtype=x.dtype)


@op(primitive="ReduceMean", init=("keep_dims",))
def _reduce_mean(x: T, axis: Axis = (), keep_dims: bool = False) -> T:
    """The mean along `axis`, in x's dtype; the mean of integers is an integer."""
    return integer_mean(x, axes_of(x, axis), keep_dims)


def no_truth_values(x: T) -> None:
    """Raises TypeError for bools: their mean as a bool would be meaningless."""
    if x.dtype is torch.bool:
        raise TypeError("expected numbers, got truth values.\n\nhint: cast them, for example with astype(mindspore.float32).")


def integer_mean(x: T, axes: tuple[int, ...], keep_dims: bool) -> T:
    """The mean; for integers it is truncated to an integer. Raises TypeError for bools."""
    no_truth_values(x)
    if x.is_floating_point() or x.is_complex():
        return torch.mean(x, axes, keep_dims)
    return torch.mean(x.to(torch.float64), axes, keep_dims).trunc().to(x.dtype)


@op(methods=("sum",), wide=Widening(), short_path="sum")
def sum(input: T, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The sum along `dim`; integers are summed in int64."""
    if dim is None and dtype is None and not keepdim and not engine.active:
        return torch.sum(input)                                            # outside of graphs and gradients: twice as fast as with axes
    result_dtype = None if dtype is None else to_torch(dtype)              # a plain sum enters no other file
    return torch.sum(cast_to_integers(input, dtype), axes_of(input, dim), keepdim, dtype=result_dtype)


@op(methods=("mean",), short_path="mean")
def mean(x: T, axis: Axis = None, keep_dims: bool = False) -> T:
    """The mean along `axis`; the mean of integers is an integer."""
    if axis is None and not keep_dims and x.dtype is torch.float32 and not engine.active:
        return torch.mean(x)                                               # as in `sum`
    return integer_mean(x, axes_of(x, axis), keep_dims)


@op(primitive="ReduceProd", init=("keep_dims",), wide=Widening())
def _reduce_prod(x: T, axis: Axis = (), keep_dims: bool = False) -> T:
    """The product along `axis`."""
    axes = axes_of(x, axis)
    ndim = x.ndim or 1
    if [a for a in axes if not -ndim <= a < ndim]:
        raise ValueError(f"axis={axis}: expected axes from {-x.ndim} to {x.ndim - 1}.")
    for a in sorted((a % x.ndim for a in axes if x.ndim), reverse=True):
        x = torch.prod(x, a, keep_dims, dtype=x.dtype)
    return x


@op(primitive="ReduceAll", init=("keep_dims",))
def _reduce_all(x: T, axis: Axis = (), keep_dims: bool = False) -> T:
    """Test whether all elements are true along `axis`."""
    return torch.all(x.to(torch.bool), axes_of(x, axis), keep_dims) if x.ndim else x.to(torch.bool)


@op(primitive="ReduceAny", init=("keep_dims",))
def _reduce_any(x: T, axis: Axis = (), keep_dims: bool = False) -> T:
    """Test whether any element is true along `axis`."""
    return torch.any(x, axes_of(x, axis), keep_dims) if x.ndim else torch.any(x)


@op(methods=("all",))
def all(input: T, axis: Axis = None, keep_dims: bool = False) -> T:
    """Test whether all elements are true along `axis`."""
    truth = input.to(torch.bool)                                  # torch returns uint8 for uint8
    return torch.all(truth, axes_of(input, axis), keep_dims) if input.ndim else truth


@op(methods=("any",))
def any(input: T, axis: Axis = None, keep_dims: bool = False) -> T:
    """Test whether any element is true along `axis`."""
    return torch.any(input, axes_of(input, axis), keep_dims) if input.ndim else torch.any(input)


def as_floats(x: T) -> T:
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.float32)


def numbers_as_floats(x: T) -> T:
    """Convert integers to float32. Raises TypeError for booleans, whose spread has no meaning."""
    if x.dtype is torch.bool:
        raise TypeError("expected numbers, got truth values.\n\nhint: cast them, for example with astype(mindspore.float32).")
    return as_floats(x)


@op(methods=("std",))
def std(input: T, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The standard deviation along `axis`, of the population unless `ddof` says otherwise."""
    return torch.std(numbers_as_floats(input), axes_of(input, axis), correction=int(ddof), keepdim=keepdims)


@op(methods=("var",))
def var(input: T, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The variance along `axis`, of the population unless `ddof` says otherwise."""
    return torch.var(numbers_as_floats(input), axes_of(input, axis), correction=int(ddof), keepdim=keepdims)


@op(methods=("prod",), wide=Widening())
def prod(input: T, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> T:
    """The product along `axis`, or of all elements."""
    input = cast_to_integers(input, dtype)
    if axis is None:
        return torch.prod(input, dtype=as_dtype(dtype))
    if isinstance(axis, (tuple, list)):
        result_dtype = as_dtype(dtype) or input.dtype                   # along several axes the dtype stays
        for dim in sorted((a % (input.ndim or 1) for a in axis), reverse=True):
            input = torch.prod(input, dim, keep_dims, dtype=result_dtype)
        return input
    return torch.prod(input, axis, keep_dims, dtype=as_dtype(dtype))


@op(methods=("logsumexp",))
def logsumexp(input: T, dim: Any, keepdim: bool = False) -> T:
    """log(sum(exp(x))) along `dim`."""
    return log_sum_exp(input, axes_of(input, dim), keepdim)


def log_sum_exp(x: T, axes: Any, keepdims: bool) -> T:
    """log(sum(exp(x))) along `axes`, with softmax as its gradient.

    torch's gradient is exp(x - result). If the result has few digits, as for large numbers in float16, these do not sum to 1.
    """
    if not x.requires_grad:
        return torch.logsumexp(x, axes, keepdims)
    largest = torch.amax(x.detach(), axes, keepdim=True)
    largest = torch.where(largest.abs() == math.inf, 0, largest)
    sums = torch.log(torch.sum(torch.exp(x - largest), axes, keepdim=keepdims))
    return sums + (largest if keepdims else largest.reshape(sums.shape))


@op(methods=("count_nonzero",))
def count_nonzero(x: T, axis: Any = (), keep_dims: bool = False, dtype: Any = torch.int32) -> T:
    """The number of nonzero elements along `axis`."""
    return torch.sum(x != 0, axes_of(x, axis), keep_dims, dtype=as_dtype(dtype))


@op(methods=("nansum",), wide=Widening())
def nansum(input: T, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> T:
    """The sum along `axis`, with NaN as 0, in the dtype of `input` (int64 for bools), then cast to `dtype`."""
    sum_dtype = torch.int64 if input.dtype is torch.bool else input.dtype
    return integer_gradients.cast(torch.nansum(input, axes_of(input, axis), keepdims, dtype=sum_dtype), as_dtype(dtype) or sum_dtype)


@op(methods=("nanmean",))
def nanmean(input: T, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> T:
    """The mean along `axis`, ignoring NaN."""
    return torch.nanmean(input, axes_of(input, axis), keepdims, dtype=as_dtype(dtype))


@op(wide=Widening())
def reduce_sum(x: T, axis: Any = ()) -> T:
    """The sum along `axis`, in x's dtype."""
    return torch.sum(x, axes_of(x, axis), dtype=x.dtype)


@op()
def reduce_mean(x: T, axis: Any = ()) -> T:
    """The mean along `axis`, in x's dtype."""
    return integer_mean(x, axes_of(x, axis), False)


@op(primitive="CountNonZero", init=("dims",))
def _count_nonzero(x: T, dims: Any = None) -> T:
    """The number of nonzero elements along `dims` (int64)."""
    return torch.sum(x != 0, axes_of(x, dims), dtype=torch.int64)
