"""Reductions of mint: sums, extremes, sorting, statistics, counts."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.autograd import integer_gradients
from torchspore.engine.formulas.topk import topk as topk_of
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore import ops
from torchspore.mindspore.mint.shared import T, as_dtype, axes, in_floats, total_dtype
from torchspore.mindspore.ops.declaration.declare import bridged, part_of
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.reductions.reduction import cast_to_integers, log_sum_exp, no_truth_values


@bridged(wide=Widening())
def sum(input: T, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The sum over `dim` (None: all), int64 for integers unless `dtype` says otherwise."""
    return torch.sum(cast_to_integers(input, dtype), axes(dim), keepdim, dtype=total_dtype(input, dtype))


@bridged(wide=Widening())
def nansum(input: T, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The sum over `dim` (None: all), ignoring NaN, in the input's dtype, int64 for bools; then in `dtype`."""
    sum_dtype = torch.int64 if input.dtype is torch.bool else input.dtype
    return integer_gradients.cast(torch.nansum(input, axes(dim), keepdim, dtype=sum_dtype), as_dtype(dtype) or sum_dtype)


@bridged
def mean(input: T, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The mean over `dim` (None: all) of the values in `dtype`, if it is set; for integers, it is truncated."""
    mean_dtype = as_dtype(dtype) or input.dtype
    if dtype is None:
        no_truth_values(input)
    between = mean_dtype if mean_dtype.is_floating_point or mean_dtype.is_complex else torch.float64
    values = input.to(mean_dtype).to(between)
    if input.requires_grad and input.is_floating_point() and between is not mean_dtype:
        values = input + (values - input).detach()                # the gradient of the exact mean
    return integer_gradients.cast(torch.mean(values, axes(dim), keepdim), mean_dtype)


@bridged(wide=Widening())
def prod(input: T, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The product over `dim` (None: all), int64 for integers unless `dtype` says otherwise."""
    product_dtype = total_dtype(input, dtype)
    input = cast_to_integers(input, dtype)
    if dim is None:
        out = torch.prod(input, dtype=product_dtype)
        return out.reshape([1] * input.ndim) if keepdim else out
    return torch.prod(input, dim, keepdim, dtype=product_dtype)


@bridged
def all(input: T, dim: Any = None, keepdim: bool = False) -> T:
    """Test whether all elements along `dim` (None: of the Tensor) are true."""
    return torch.all(input.to(torch.bool), axes(dim), keepdim)    # torch returns uint8 for uint8


@bridged
def any(input: T, dim: Any = None, keepdim: bool = False) -> T:
    """Test whether any element along `dim` (None: of the Tensor) is true."""
    return torch.any(input, axes(dim), keepdim)


@bridged(wide=Widening(compares=True))
def amax(input: T, dim: Any = (), keepdim: bool = False) -> T:
    """The largest element along the axes `dim`, all of them for ()."""
    return torch.amax(input, () if axes(dim) is None else dim, keepdim)


@bridged(wide=Widening(compares=True))
def amin(input: T, dim: Any = (), keepdim: bool = False) -> T:
    """The smallest element along the axes `dim`, all of them for ()."""
    return torch.amin(input, () if axes(dim) is None else dim, keepdim)


@bridged(wide=Widening(values=(), compares=True))
def argmin(input: T, dim: Any = None, keepdim: bool = False) -> T:
    """The index (int64) of the smallest element along `dim`, of the flat Tensor for None."""
    return torch.argmin(input, dim, keepdim)


@part_of("max")
def _max_of(input: T, dim: int, keepdim: bool) -> Any:
    return tuple(torch.max(input, dim, keepdim))


@part_of("min")
def _min_of(input: T, dim: int, keepdim: bool) -> Any:
    return tuple(torch.min(input, dim, keepdim))


@part_of("max")
def _largest(input: T) -> T:
    return torch.amax(input, ()) if input.numel() else torch.max(input)


@part_of("min")
def _smallest(input: T) -> T:
    return torch.amin(input, ()) if input.numel() else torch.min(input)


def _extreme(input: Any, arguments: Any, options: Any, forms: Any) -> Any:
    of_all, along, between = forms
    named = {**dict(zip(("dim", "keepdim"), arguments)), **options}
    if not named:
        return of_all(input)
    if "other" in options or isinstance(arguments[0] if arguments else None, (TensorBase, float, bool)):
        return between(input, *arguments, **options)
    unknown = next((name for name in named if name not in ("dim", "keepdim")), None)
    if unknown is not None or "dim" not in named or len(arguments) > 2:
        raise TypeError(f"max/min with {', '.join(named)}: expected (input), (input, dim, keepdim=False) or (input, other).")
    return along(input, named["dim"], named.get("keepdim", False))


def max(input: Any, *dim: Any, **options: Any) -> Any:
    """The largest element; with `dim`, `keepdim` those along an axis and their int64 indexes; with `other` the larger of each pair."""
    return _extreme(input, dim, options, (_largest, _max_of, ops.maximum))


def min(input: Any, *dim: Any, **options: Any) -> Any:
    """The smallest element; with `dim`, `keepdim` those along an axis and their int64 indexes; with `other` the smaller of each pair."""
    return _extreme(input, dim, options, (_smallest, _min_of, ops.minimum))


@bridged
def median(input: T, dim: Any = None, keepdim: bool = False) -> Any:
    """The median (the lower one of two); with `dim` those along that axis and their int64 indexes."""
    return torch.median(input) if dim is None else tuple(torch.median(input, dim, keepdim))


@bridged
def kthvalue(input: T, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest elements along `dim`, counted from 1, and their int64 indexes."""
    return tuple(torch.kthvalue(input, k, dim, keepdim))


@bridged(wide=Widening(compares=True))
def cummax(input: T, dim: int) -> Any:
    """The cumulative maximum along `dim`, and its int64 index."""
    return tuple(torch.cummax(input, dim))


@bridged(wide=Widening(compares=True))
def cummin(input: T, dim: int) -> Any:
    """The cumulative minimum along `dim`, and its int64 index."""
    return tuple(torch.cummin(input, dim))


@bridged(wide=Widening())
def cumsum(input: T, dim: int, dtype: Any = None) -> T:
    """The cumulative sums along `dim`, int64 for integers unless `dtype` says otherwise."""
    return torch.cumsum(cast_to_integers(input, dtype), dim, dtype=total_dtype(input, dtype))


@bridged
def cumprod(input: T, dim: int, dtype: Any = None) -> T:
    """The cumulative products along `dim`, int64 for integers unless `dtype` says otherwise."""
    return torch.cumprod(cast_to_integers(input, dtype), dim, dtype=total_dtype(input, dtype))


@bridged
def logsumexp(input: T, dim: Any, keepdim: bool = False) -> T:
    """log(sum(exp(x))) over `dim`."""
    return log_sum_exp(input, dim, keepdim)


@bridged
def std(input: T, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> T:
    """The standard deviation over `dim` (None: all), divided by the count minus `correction`."""
    return torch.std(input, axes(dim), correction=correction, keepdim=keepdim)


@bridged
def var(input: T, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> T:
    """The variance over `dim` (None: all), divided by the count minus `correction`."""
    return torch.var(input, axes(dim), correction=correction, keepdim=keepdim)


@bridged
def std_mean(input: T, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    """The standard deviation and the mean over `dim` (None: all)."""
    return torch.std_mean(input, axes(dim), correction=correction, keepdim=keepdim)


@bridged
def var_mean(input: T, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    """The variance and the mean over `dim` (None: all)."""
    return torch.var_mean(input, axes(dim), correction=correction, keepdim=keepdim)


@bridged
def count_nonzero(input: T, dim: Any = None) -> T:
    """The number of nonzero elements along `dim` (None: of the Tensor), int64."""
    return torch.count_nonzero(input, axes(dim))


@bridged
def norm(input: T, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> T:
    """The norm of order `p` over `dim` (None: all), of matrices where p is 'nuc'."""
    return torch.norm(in_floats(input), p, axes(dim), keepdim, dtype=as_dtype(dtype))


@bridged
def sort(input: T, *, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sort the elements along `dim`; also return their int64 indexes."""
    return tuple(torch.sort(input, dim=dim, descending=descending, stable=stable))


@bridged
def argsort(input: T, dim: int = -1, descending: bool = False, stable: bool = False) -> T:
    """The int64 indexes that sort the elements along `dim`."""
    return torch.argsort(input, dim=dim, descending=descending, stable=stable)


@bridged(wide=Widening(compares=True))
def topk(input: T, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along `dim`, and their int64 indexes."""
    return topk_of(input, k, dim, largest, sorted)


@bridged
def unique(
    input: T, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None,
) -> Any:
    """The different elements (or slices along `dim`), and on request each element's index among them and their counts."""
    out = torch.unique(input, sorted, return_inverse, return_counts, dim)
    return tuple(out) if isinstance(out, tuple) else out


@bridged
def histc(input: T, bins: int = 100, min: Any = 0, max: Any = 0) -> T:
    """Count the elements in each of `bins` equal intervals of [min, max]; two zeros mean the extremes of `input`."""
    if input.is_floating_point():
        return torch.histc(input, bins, min, max)
    return torch.histc(input.float(), bins, min, max).to(input.dtype)


@bridged
def searchsorted(
    sorted_sequence: T, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: T | None = None,
) -> T:
    """The insertion points of `values` in `sorted_sequence`, int64 unless `out_int32`."""
    return torch.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter)


@bridged(wide=Widening(values=()))
def nonzero(input: T, *, as_tuple: bool = False) -> Any:
    """The int64 indexes of the nonzero elements, a row each; with `as_tuple` one Tensor per axis."""
    return torch.nonzero(input, as_tuple=True) if as_tuple else torch.nonzero(input)


@bridged
def bincount(input: T, weights: T | None = None, minlength: int = 0) -> T:
    """Count each number from 0 on in `input`, or sum its `weights`."""
    if weights is None or not weights.requires_grad:
        return torch.bincount(input, weights, minlength)
    empty = torch.zeros_like(torch.bincount(input, weights.detach(), minlength))      # torch.bincount has no gradient
    return empty.index_add(0, input.to(torch.int64), weights.to(empty.dtype))


@bridged(wide=Widening())
def trace(input: T) -> T:
    """The sum of the diagonal of a matrix, int64 for integers."""
    return torch.trace(input)
