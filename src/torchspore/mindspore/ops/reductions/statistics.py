"""Statistics along axes: medians, quantiles, standard deviations, covariances, differences, integrals."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.reductions.reduction import axes_of, numbers_as_floats

T = torch.Tensor


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
    input = numbers_as_floats(input)
    if math.prod(input.shape[a] for a in axes_of(input, axis)) <= ddof:
        mean = torch.mean(input, axes_of(input, axis), keepdims)      # torch warns about too few numbers for a variance
        return torch.full_like(mean, math.nan), mean
    return tuple(function(input, axes_of(input, axis), correction=int(ddof), keepdim=keepdims))


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
    y, x = (t if t is None or t.dtype is torch.float16 or t.is_complex() else t.to(torch.float32) for t in (y, x))   # also float64
    return torch.trapezoid(y, dx=dx, dim=dim) if x is None else torch.trapezoid(y, x, dim=dim)
