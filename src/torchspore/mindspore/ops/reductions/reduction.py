"""Reductions along axes."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH, to_torch
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


@op(methods=("sum",), wide=Widening())
def sum(input: T, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The sum along `dim`; integers are summed in int64."""
    result_dtype = None if dtype is None else to_torch(dtype)              # a plain sum enters no other file
    return torch.sum(cast_to_integers(input, dtype), axes_of(input, dim), keepdim, dtype=result_dtype)


@op(methods=("mean",))
def mean(x: T, axis: Axis = None, keep_dims: bool = False) -> T:
    """The mean along `axis`; the mean of integers is an integer."""
    return integer_mean(x, axes_of(x, axis), keep_dims)


@op(primitive="ReduceMax", init=("keep_dims",), wide=Widening(compares=True))
def _reduce_max(x: T, axis: Axis = (), keep_dims: bool = False) -> T:
    """The largest value along `axis`."""
    return torch.amax(x, axes_of(x, axis), keep_dims)


@op(primitive="ReduceMin", init=("keep_dims",), wide=Widening(compares=True))
def _reduce_min(x: T, axis: Axis = (), keep_dims: bool = False) -> T:
    """The smallest value along `axis`."""
    return torch.amin(x, axes_of(x, axis), keep_dims)


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


@op(methods=("amax",), wide=Widening(compares=True))
def amax(input: T, axis: Axis = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> T:
    """The largest value along `axis`; `initial` is the minimum result, and only elements where `where` is True count."""
    return _extreme(torch.amax, torch.maximum, input, axis, keepdims, initial, where)


@op(methods=("amin",), wide=Widening(compares=True))
def amin(input: T, axis: Axis = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> T:
    """The smallest value along `axis`; `initial` is the maximum result, and only elements where `where` is True count."""
    return _extreme(torch.amin, torch.minimum, input, axis, keepdims, initial, where)


def _extreme(reduce: Any, choose: Any, x: T, axis: Axis, keepdims: bool, initial: Any, where: Any) -> T:
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


def as_floats(x: T) -> T:
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.float32)


@op(methods=("std",))
def std(input: T, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The standard deviation along `axis`, of the population unless `ddof` says otherwise."""
    return torch.std(as_floats(input), axes_of(input, axis), correction=int(ddof), keepdim=keepdims)


@op(methods=("var",))
def var(input: T, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> T:
    """The variance along `axis`, of the population unless `ddof` says otherwise."""
    return torch.var(as_floats(input), axes_of(input, axis), correction=int(ddof), keepdim=keepdims)


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


@op(methods=("norm",))
def norm(A: T, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The norm of vectors or matrices, as NumPy's `linalg.norm`; for matrices, 1.0 or 2.0 (not an int) as `ord` is the Frobenius norm."""
    of_matrices = A.ndim == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2
    if of_matrices and not isinstance(ord, (int, str)) and ord in (1, 2, -1, -2):
        ord = None
    x = in_dtype_of_norm(A, dtype)
    if not of_matrices and ord in (math.inf, -math.inf):
        return norm_of_extremes(x, ord, dim, keepdim)
    return torch.linalg.norm(x, ord, dim, keepdim)


def in_dtype_of_norm(x: T, dtype: Any) -> T:
    """Return `x` in `dtype` if it is set, else integers as float32. Raises TypeError for integer dtypes and bool."""
    norm_dtype = as_dtype(dtype)
    if norm_dtype is None:
        return as_floats(x)
    if not (norm_dtype.is_floating_point or norm_dtype.is_complex):
        raise TypeError(f"expected a dtype of real or complex numbers, got {FROM_TORCH[norm_dtype]}.\n\nhint: cast the norm itself.")
    return x.to(norm_dtype)


def norm_of_extremes(x: T, order: float, axes: Any, keepdims: bool) -> T:
    """The norm of order inf or -inf along `axes`. Of equal elements the first gets the gradient, which torch would divide among them."""
    axis = axes[0] if isinstance(axes, (tuple, list)) and len(axes) == 1 else axes
    if not x.requires_grad or isinstance(axis, (tuple, list)):
        return torch.linalg.vector_norm(x, order, axes, keepdims)
    sizes = x.abs()
    sizes, axis = (sizes.reshape(-1), 0) if axis is None else (sizes, axis)
    values = (torch.max if order > 0 else torch.min)(sizes, axis, keepdim=keepdims).values
    return values.reshape((1,) * x.ndim) if axes is None and keepdims else values


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
