"""Statistics along axes: medians, quantiles, cumulative products, histograms, covariances."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.engine.autograd import integer_gradients
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.reductions.reduction import as_floats, axes_of, cast_to_integers, integer_mean

T = torch.Tensor


@op(methods=("nansum",), wide=Widening())
def nansum(input: T, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> T:
    """The sum along `axis`, with NaN as 0, in the dtype of `input` (int64 for bools), then cast to `dtype`."""
    sum_dtype = torch.int64 if input.dtype is torch.bool else input.dtype
    return integer_gradients.cast(torch.nansum(input, axes_of(input, axis), keepdims, dtype=sum_dtype), as_dtype(dtype) or sum_dtype)


@op(methods=("nanmean",))
def nanmean(input: T, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> T:
    """The mean along `axis`, ignoring NaN."""
    return torch.nanmean(input, axes_of(input, axis), keepdims, dtype=as_dtype(dtype))


@op(methods=("median",))
def median(input: T, axis: int = -1, keepdims: bool = False) -> Any:
    """The median along `axis` (the lower one of two), and its index (int64)."""
    return tuple(torch.median(input, axis, keepdims)) if input.ndim else (input.clone(), _no_index(input))


@op(methods=("nanmedian",))
def nanmedian(input: T, axis: int = -1, keepdims: bool = False) -> Any:
    """The median along `axis`, ignoring NaN, and its index (int64)."""
    return tuple(torch.nanmedian(input, axis, keepdims)) if input.ndim else (input.clone(), _no_index(input))


def _no_index(input: T) -> T:
    return torch.zeros((), dtype=torch.int64, device=input.device)


@op(primitive="Median", init=("global_median", "axis", "keep_dims", "ignore_nan"))
def _median(x: T, global_median: bool = False, axis: int = 0, keep_dims: bool = False, ignore_nan: bool = False) -> Any:
    """The median along `axis` and its index, or with `global_median` the median of all elements and 0."""
    function = torch.nanmedian if ignore_nan else torch.median
    if global_median or not x.ndim:
        return function(x), _no_index(x)
    return tuple(function(x, axis, keep_dims))


def _quantile(function: Any, input: T, q: Any, axis: Any, keepdims: bool) -> T:
    at = q.to(input.dtype) if isinstance(q, T) else constant(q, input.device, input.dtype)
    return function(input, at, axis, keepdims)


@op(methods=("quantile",))
def quantile(input: T, q: Any, axis: Any = None, keepdims: bool = False) -> T:
    """The quantiles `q` (in [0, 1]) along `axis`, with linear interpolation."""
    return _quantile(torch.quantile, input, q, axis, keepdims)


@op(methods=("nanquantile",))
def nanquantile(input: T, q: Any, axis: Any = None, keepdims: bool = False) -> T:
    """The quantiles `q` (in [0, 1]) along `axis`, ignoring NaN."""
    return _quantile(torch.nanquantile, input, q, axis, keepdims)


@op(primitive="Quantile", init=("dim", "keep_dims", "ignore_nan"))
def _quantile_primitive(input: T, q: Any, dim: Any = None, keep_dims: bool = False, ignore_nan: bool = False) -> T:
    """The quantiles `q` (in [0, 1]) along `dim`; with `ignore_nan`, ignoring NaN."""
    return _quantile(torch.nanquantile if ignore_nan else torch.quantile, input, q, dim, keep_dims)


def _spread(function: Any, input: T, axis: Any, ddof: Any, keepdims: bool) -> Any:
    if math.prod(input.shape[a] for a in axes_of(input, axis)) <= ddof:
        mean = torch.mean(as_floats(input), axes_of(input, axis), keepdims)      # torch warns about too few numbers for a variance
        return torch.full_like(mean, math.nan), mean
    return tuple(function(as_floats(input), axes_of(input, axis), correction=int(ddof), keepdim=keepdims))


@op()
def var_mean(input: T, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The variance and the mean along `axis`."""
    return _spread(torch.var_mean, input, axis, ddof, keepdims)


@op()
def std_mean(input: T, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation and the mean along `axis`."""
    return _spread(torch.std_mean, input, axis, ddof, keepdims)


@op(primitive="ReduceStd", init=("axis", "unbiased", "keep_dims"))
def _reduce_std(x: T, axis: Any = [], unbiased: bool = True, keep_dims: bool = False) -> Any:  # noqa: B006 - as MindSpore writes it
    """The standard deviation and the mean along `axis`; with `unbiased`, the sample's standard deviation."""
    return _spread(torch.std_mean, x, axis, unbiased, keep_dims)


@op(methods=("cummax",), wide=Widening(compares=True))
def cummax(input: T, axis: int) -> Any:
    """The cumulative maximum along `axis`, and its index (int64)."""
    return tuple(torch.cummax(input, axis))


@op(methods=("cummin",), wide=Widening(compares=True))
def cummin(input: T, axis: int) -> Any:
    """The cumulative minimum along `axis`, and its index (int32)."""
    values, indexes = torch.cummin(input, axis)
    return values, indexes.to(torch.int32)


@op(primitive="Cummax", init=("axis",))
def _cummax(input: T, axis: int) -> Any:
    """The cumulative maximum along `axis`, and its index (int64)."""
    return tuple(torch.cummax(input, axis))


@op(primitive="Cummin", init=("axis",))
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


@op(methods=("aminmax",), wide=Widening(values=(0, 1), compares=True))
def aminmax(input: T, *, axis: int | None = 0, keepdims: bool = False) -> Any:
    """The smallest and the largest value along `axis`, or of all elements for None."""
    if not input.requires_grad:
        return tuple(torch.aminmax(input, dim=axis, keepdim=keepdims))
    values = input.reshape(-1) if axis is None else input                      # of equal values, the first gets the gradient
    low, high = (pick(values, 0 if axis is None else axis, keepdim=keepdims).values for pick in (torch.min, torch.max))
    shape = (1,) * input.ndim
    return (low.reshape(shape), high.reshape(shape)) if axis is None and keepdims else (low, high)


@op(methods=("bincount",))
def bincount(input: T, weights: T | None = None, minlength: int = 0) -> T:
    """Count each number from 0 on, or sum its weights: float32, at least `minlength` long."""
    numbers = input.to(torch.int64)
    if weights is None:
        return torch.bincount(numbers, None, minlength).to(torch.float32)
    length = torch.bincount(numbers, weights.detach(), minlength).shape[0]            # checks both; it has no gradient
    return torch.zeros(length, device=numbers.device).index_add(0, numbers, weights.to(torch.float32))


@op(primitive="Bincount")
def _bincount(array: T, size: T, weights: T) -> T:
    """Sum the weights of each number below `size`, in the dtype of `weights`; without weights, count the numbers."""
    length = int(size)
    values = array.reshape(-1).to(torch.int64)
    inside = values < length
    amounts = weights.reshape(-1) if weights.numel() else torch.ones_like(values, dtype=weights.dtype)
    out = torch.zeros(length, dtype=amounts.dtype, device=array.device)
    return out.index_add(0, torch.where(inside, values, 0), torch.where(inside, amounts, 0))


def _histogram(input: T, bins: int, low: float, high: float) -> T:
    is_integral = not input.is_floating_point()
    out = torch.histc(input.to(torch.float32) if is_integral or input.dtype is torch.float16 else input, bins, low, high)
    return out.to(torch.int32) if is_integral else out


@op(methods=("histc",))
def histc(input: T, bins: int = 100, min: float = 0.0, max: float = 0.0) -> T:
    """Count the elements in each of `bins` equal intervals of [min, max], or of the elements' range if both are 0."""
    return _histogram(input, bins, float(min), float(max))


@op(primitive="Histogram", init=("bins", "min", "max"))
def _histogram_primitive(x: T, bins: int = 100, min: float = 0.0, max: float = 0.0) -> T:
    """Count the elements in each of `bins` equal intervals of [min, max], or of the elements' range if both are 0."""
    return _histogram(x, bins, float(min), float(max))


@op(primitive="HistogramFixedWidth", init=("nbins", "dtype"))
def _histogram_fixed_width(x: T, range: T, nbins: int, dtype: str = "int32") -> T:
    """Count the elements in each of `nbins` equal intervals of `range` (2,); elements outside count at the ends."""
    if dtype != "int32":
        raise ValueError(f"dtype={dtype!r}: expected 'int32'.")
    low, high = range.to(torch.float64).unbind()
    at = torch.floor((x.to(torch.float64).reshape(-1) - low) / (high - low) * nbins).clamp(0, nbins - 1).long()
    return torch.zeros(nbins, dtype=torch.int32, device=x.device).index_add(0, at, torch.ones_like(at, dtype=torch.int32))


@op(methods=("cov",))
def cov(input: T, *, correction: int = 1, fweights: T | None = None, aweights: T | None = None) -> T:
    """The covariances of variables, which are rows."""
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    return torch.cov(wide, correction=correction, fweights=fweights, aweights=aweights)


@op(methods=("diff",), wide=Widening())
def diff(x: T, n: int = 1, axis: int = -1, prepend: T | None = None, append: T | None = None) -> T:
    """The n-th differences along `axis`."""
    return torch.diff(x, n, axis, prepend, append)


@op()
def trapz(y: T, x: T | None = None, *, dx: float = 1.0, dim: int = -1) -> T:
    """The integral along `dim` by the trapezoidal rule, at the points x or with spacing `dx`."""
    return torch.trapezoid(y, dx=dx, dim=dim) if x is None else torch.trapezoid(y, x, dim=dim)


@op(wide=Widening())
def reduce_sum(x: T, axis: Any = ()) -> T:
    """The sum along `axis`, in x's dtype."""
    return torch.sum(x, axes_of(x, axis), dtype=x.dtype)


@op()
def reduce_mean(x: T, axis: Any = ()) -> T:
    """The mean along `axis`, in x's dtype."""
    return integer_mean(x, axes_of(x, axis), False)


@op(wide=Widening(compares=True))
def reduce_max(x: T, axis: Any = ()) -> T:
    """The largest value along `axis`."""
    return torch.amax(x, axes_of(x, axis))


@op(wide=Widening(compares=True))
def reduce_min(x: T, axis: Any = ()) -> T:
    """The smallest value along `axis`."""
    return torch.amin(x, axes_of(x, axis))


@op(primitive="CountNonZero", init=("dims",))
def _count_nonzero(x: T, dims: Any = None) -> T:
    """The number of nonzero elements along `dims` (int64)."""
    return torch.sum(x != 0, axes_of(x, dims), dtype=torch.int64)


@op(primitive="ConfusionMatrix", init=("num_classes", "dtype"))
def _confusion_matrix(labels: T, predictions: T, weights: T | None = None, *, num_classes: int, dtype: str = "int32") -> T:
    """Count how often each class (row) was predicted as each class (column), or sum the weights."""
    kind = getattr(torch, dtype)
    amounts = torch.ones_like(labels, dtype=kind) if weights is None else weights.to(kind)
    at = labels.long() * num_classes + predictions.long()
    return torch.zeros(num_classes**2, dtype=kind, device=labels.device).index_add(0, at, amounts).reshape(num_classes, num_classes)
