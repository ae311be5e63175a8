"""Counts in bins, and covariances."""
from __future__ import annotations

import builtins
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.mindspore.numpy.utils import as_list, cast, dtype_of_cast, floating, function, part_of, to_tensor, together

T = torch.Tensor


def edges_of(flat: T, bins: Any, range: Any) -> T:
    """The edges of `bins` bins of equal width over `range` or the values (float32); `bins` itself if it is an array-like."""
    if isinstance(bins, str):
        raise NotImplementedError(f"bins={bins!r}: MindSpore does not support this rule.\n\nhint: write a number, or the edges.")
    if isinstance(bins, bool):
        raise TypeError(f"bins={bins}: expected an int, or the edges.")
    if not isinstance(bins, int):
        return to_tensor(bins)
    if bins < 1:
        raise ValueError(message(f"bins={bins}", "at least 1"))
    if range is not None:
        low, high = (to_tensor(v).to(torch.float32) for v in range)
        if isinstance(range[0], (int, float)) and range[1] < range[0]:
            raise ValueError(f"range={range!r}: expected the larger number last.")
    elif flat.numel() == 0:
        low, high = torch.zeros((), device=flat.device), torch.zeros((), device=flat.device)
    else:
        low, high = flat.min().to(torch.float32), flat.max().to(torch.float32)
    is_point = low == high
    low, high = torch.where(is_point, low - 0.5, low), torch.where(is_point, high + 0.5, high)
    positions = torch.arange(bins + 1, dtype=torch.float32, device=low.device)
    return torch.cat([(low + positions * ((high - low) / bins))[:-1], high.reshape(1)])


def _bin_of(values: T, edges: T) -> tuple[T, T]:
    """Return the number of each value's bin, and whether there is one; the last edge belongs to the last bin."""
    values, edges = together(values, edges)
    bin_numbers = torch.searchsorted(edges.contiguous(), values.contiguous(), right=True) - 1
    count = edges.shape[0] - 1
    bin_numbers = torch.where(values == edges[-1], torch.full_like(bin_numbers, count - 1), bin_numbers)
    return bin_numbers.clamp(0, max(count - 1, 0)), (values >= edges[0]) & (values <= edges[-1])


def _counted(numbers: T, inside: T, weights: T | None, length: int) -> T:
    if length == 0:
        return torch.zeros(0, dtype=torch.float32, device=numbers.device)
    amount = inside.to(torch.float32) if weights is None else torch.where(inside, weights.to(torch.float32), 0.0)
    return torch.zeros(length, dtype=torch.float32, device=numbers.device).scatter_add(0, numbers, amount)


@function
def histogram(a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """The count, or the sum of `weights`, in each bin (float32), and the edges; with `density` the total area is 1.

    `bins` is a number of equal bins over the values or over `range`, or the edges themselves.
    """
    flat = floating(to_tensor(a)).reshape(-1)
    edges = edges_of(flat, bins, range)
    amount = None if weights is None else to_tensor(weights)
    if amount is not None and amount.shape != to_tensor(a).shape:
        raise ValueError("weights: expected the shape of a.")
    numbers, inside = _bin_of(flat, edges)
    counts = _counted(numbers, inside, None if amount is None else amount.reshape(-1), edges.shape[0] - 1)
    if density:
        counts = counts / (edges[1:] - edges[:-1]).to(torch.float32) / counts.sum()
    return counts, edges


def _sample(sample: Any) -> T:
    """Return the points as rows: a sequence has one array for each coordinate, a Tensor has them as columns."""
    if isinstance(sample, (tuple, list)):
        return torch.stack([floating(to_tensor(coordinate)).reshape(-1) for coordinate in sample], 1)
    if sample.ndim != 2:
        raise ValueError(f"sample of shape {tuple(sample.shape)}: expected two axes.")
    return floating(sample)


def _histogram(points: T, bins: Any, range: Any, weights: Any, density: bool) -> tuple[T, list[T]]:
    ndim = points.shape[1]
    bins = [bins] * ndim if isinstance(bins, int) else list(bins)
    if builtins.len(bins) != ndim:
        raise ValueError(f"bins: expected a number, or one for each of {ndim} coordinates, got {builtins.len(bins)}.")
    ranges = [None] * ndim if range is None else list(range)
    edges = [edges_of(points[:, i], bins[i], ranges[i]) for i in builtins.range(ndim)]
    flat = torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    inside = torch.ones(points.shape[0], dtype=torch.bool, device=points.device)
    shape = [axis_edges.shape[0] - 1 for axis_edges in edges]
    total = 1
    for i, axis_edges in enumerate(edges):
        numbers, fits = _bin_of(points[:, i], axis_edges)
        flat, inside, total = flat * shape[i] + numbers, inside & fits, total * shape[i]
    counts = _counted(flat, inside, None if weights is None else to_tensor(weights).reshape(-1), total).reshape(shape)
    if density:
        counts = counts / counts.sum()
        for i, axis_edges in enumerate(edges):
            widths = (axis_edges[1:] - axis_edges[:-1]).to(torch.float32)
            counts = counts / widths.reshape([-1 if a == i else 1 for a in builtins.range(ndim)])
    return counts, edges


@part_of("histogramdd")
def _histogramdd(sample: Any, bins: Any, range: Any, weights: Any, density: bool) -> Any:
    counts, edges = _histogram(_sample(sample), bins, range, weights, density)
    return counts, as_list(edges)


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """The count of points, or the sum of `weights`, in each box (float32), and a list of the edges along each axis.

    `sample` has points as rows, or is a sequence of the coordinates; `bins` and `range` are as in `histogram`, one for each axis.
    """
    return _histogramdd(sample, bins, range, weights, density)


@function
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """The count of points (x, y), or the sum of `weights`, in each box (float32), and the edges along both axes.

    `bins` is a number of equal bins, one number or the edges for each axis; `range` a pair for each axis.
    """
    counts, edges = _histogram(_sample([x, y]), bins, range, weights, density)
    return (counts, *edges)


@function
def bincount(x: Any, weights: Any = None, minlength: int = 0, length: int | None = None) -> T:
    """The count of each number from 0 in x (1-D integers), or the sum of its `weights` (float32).

    The result has at least `minlength` values, or exactly `length`, which a graph requires; negative numbers count as 0.
    """
    t = to_tensor(x)
    if t.ndim != 1:
        raise ValueError(f"x of shape {tuple(t.shape)}: expected one axis.")
    if t.is_floating_point():
        raise TypeError("x: expected integers.")
    amount = None if weights is None else to_tensor(weights)
    if amount is not None and amount.shape != t.shape:
        raise ValueError("weights: expected the shape of x.")
    t = t.to(torch.int64).clamp(min=0)
    if length is None:
        length = max(int(t.max().item()) + 1 if t.numel() else 0, minlength)
    return _counted(t.clamp(max=length - 1), t < length, amount, length)


def _rows(m: Any, y: Any, rowvar: bool, dtype: Any) -> T:
    """Return the variables as rows, those of y below those of m."""
    tensors = [to_tensor(value) for value in (m, y) if value is not None]
    if any(t.ndim > 2 for t in tensors):
        raise ValueError("expected arrays of two axes at most.")
    kind = torch.float32 if dtype is None else dtype_of_cast(dtype)
    if dtype is None and any(t.dtype is torch.float64 for t in tensors):
        kind = torch.float64
    shaped = [t.to(kind).reshape(1, -1) if t.ndim < 2 else t.to(kind) for t in tensors]
    return torch.cat([t.T if not rowvar and t.shape[0] != 1 else t for t in shaped])


def _weights(value: Any, count: int, name: str) -> T | None:
    if value is None:
        return None
    t = to_tensor(value)
    if t.is_floating_point():
        raise TypeError(f"{name}: expected integers.")
    if t.ndim != 1:
        raise ValueError(f"{name}: expected one axis.")
    if t.shape[0] != count:
        raise RuntimeError(f"{name} of {t.shape[0]} values: expected {count}, one for each observation.")
    return torch.abs(t).to(torch.float32)


def _covariance(rows: T, ddof: float, fweights: T | None, aweights: T | None) -> T:
    """Return sums of products of distances from the weighted means, divided by the weights minus the `ddof` correction."""
    weights = [w.to(rows.dtype) for w in (fweights, aweights) if w is not None]
    if not weights:
        distance = rows - rows.mean(1, keepdim=True)
        return distance @ distance.T / (rows.shape[1] - ddof)
    weight = weights[0] * weights[1] if builtins.len(weights) == 2 else weights[0]
    total = weight.sum()
    distance = rows - (rows * weight).sum(1, keepdim=True) / total
    factor = total - ddof if aweights is None else total - ddof * (weight * aweights.to(rows.dtype)).sum() / total
    return (distance * weight) @ distance.T / factor


@function
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None, aweights: Any = None,
    dtype: Any = None,
) -> T:
    """The covariances of the variables, the rows of m and y (without `rowvar`, their columns); a number for one variable.

    Divided by the count minus 1, or minus `ddof`, or by the count with `bias`; `fweights` and `aweights` (integers) weigh observations.
    """
    rows = _rows(m, y, rowvar, dtype)
    count = rows.shape[1]
    less = ddof if ddof is not None else 0 if bias else 1
    out = _covariance(rows, less, _weights(fweights, count, "fweights"), _weights(aweights, count, "aweights"))
    return cast(out.squeeze(), dtype)


@function
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> T:
    """The correlations of the variables, the rows of x and y (without `rowvar`, their columns); 1 for one variable."""
    covariance = _covariance(_rows(x, y, rowvar, None), 1, None, None)
    size = torch.sqrt(torch.diagonal(covariance))
    out = torch.clamp(covariance / size.unsqueeze(0) / size.unsqueeze(1), -1, 1)
    return cast(out.squeeze(), dtype)
