"""Counts in bins, and covariances."""
from __future__ import annotations

import builtins
from typing import Any

import torch

from torchspore.mindspore.numpy.utils import as_list, cast, dtype_of_cast, floating, function, part_of, to_tensor, together

T = torch.Tensor


def edges_of(flat: T, bins: Any, range: Any) -> T:
    """The edges of `bins` bins of equal width over `range` or the values (float32); `bins` itself where it is an array-like."""
    if isinstance(bins, str):
        raise NotImplementedError(f"bins={bins!r}: MindSpore has no such rule.\n\nhint: write a number, or the edges.")
    if isinstance(bins, bool):
        raise TypeError(f"bins={bins}: expected an int, or the edges.")
    if not isinstance(bins, int):
        return to_tensor(bins)
    if bins < 1:
        raise ValueError(f"bins={bins}: expected at least 1.")
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
    places = torch.arange(bins + 1, dtype=torch.float32, device=low.device)
    return torch.cat([(low + places * ((high - low) / bins))[:-1], high.reshape(1)])


def _bin_of(values: T, edges: T) -> tuple[T, T]:
    """The number of each value's bin, and whether it lies in one; the last edge belongs to the last bin."""
    values, edges = together(values, edges)
    found = torch.searchsorted(edges.contiguous(), values.contiguous(), right=True) - 1
    count = edges.shape[0] - 1
    found = torch.where(values == edges[-1], torch.full_like(found, count - 1), found)
    return found.clamp(0, count - 1), (values >= edges[0]) & (values <= edges[-1])


def _counted(numbers: T, inside: T, weights: T | None, length: int) -> T:
    amount = inside.to(torch.float32) if weights is None else torch.where(inside, weights.to(torch.float32), 0.0)
    return torch.zeros(length, dtype=torch.float32, device=numbers.device).scatter_add(0, numbers, amount)


@function
def histogram(a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """How many values, or which sum of `weights`, each bin has (float32), and the edges; with `density` the area over all bins is 1.

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
    """The points as rows: a sequence has one array for each coordinate, a Tensor has them as columns."""
    if isinstance(sample, (tuple, list)):
        return torch.stack([floating(to_tensor(one)).reshape(-1) for one in sample], 1)
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
    shape = [one.shape[0] - 1 for one in edges]
    total = 1
    for i, one in enumerate(edges):
        numbers, fits = _bin_of(points[:, i], one)
        flat, inside, total = flat * shape[i] + numbers, inside & fits, total * shape[i]
    counts = _counted(flat, inside, None if weights is None else to_tensor(weights).reshape(-1), total).reshape(shape)
    if density:
        counts = counts / counts.sum()
        for i, one in enumerate(edges):
            counts = counts / (one[1:] - one[:-1]).to(torch.float32).reshape([-1 if a == i else 1 for a in builtins.range(ndim)])
    return counts, edges


@part_of("histogramdd")
def _histogramdd(sample: Any, bins: Any, range: Any, weights: Any, density: bool) -> Any:
    counts, edges = _histogram(_sample(sample), bins, range, weights, density)
    return counts, as_list(edges)


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """How many points, or which sum of `weights`, each box has (float32), and a list of the edges along each axis.

    `sample` has points as rows, or is a sequence of the coordinates; `bins` and `range` are as in `histogram`, one for each axis.
    """
    return _histogramdd(sample, bins, range, weights, density)


@function
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """How many points (x, y), or which sum of `weights`, each box has (float32), and the edges along both axes.

    `bins` is a number of equal bins, one number or the edges for each axis; `range` a pair for each axis.
    """
    counts, edges = _histogram(_sample([x, y]), bins, range, weights, density)
    return (counts, *edges)


@function
def bincount(x: Any, weights: Any = None, minlength: int = 0, length: int | None = None) -> T:
    """How often each number from 0 comes in x (1-D integers), or which sum of `weights` it has (float32).

    The result has `minlength` values at least, or just `length`, which a graph needs; negative numbers count as 0.
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
    """The variables as rows, those of y below those of m."""
    found = [to_tensor(value) for value in (m, y) if value is not None]
    if any(t.ndim > 2 for t in found):
        raise ValueError("expected arrays of two axes at most.")
    kind = torch.float32 if dtype is None else dtype_of_cast(dtype)
    if dtype is None and any(t.dtype is torch.float64 for t in found):
        kind = torch.float64
    shaped = [t.to(kind).reshape(1, -1) if t.ndim < 2 else t.to(kind) for t in found]
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
    """Sums of products of distances from the weighted means, over the weights less what `ddof` takes away."""
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
    """The covariances of the variables, the rows of m and y, or their columns without `rowvar`; a number for one variable.

    Divided by the count less 1, or less `ddof`, or by the count with `bias`; `fweights` and `aweights` (integers) weigh observations.
    """
    rows = _rows(m, y, rowvar, dtype)
    count = rows.shape[1]
    less = ddof if ddof is not None else 0 if bias else 1
    out = _covariance(rows, less, _weights(fweights, count, "fweights"), _weights(aweights, count, "aweights"))
    return cast(out.squeeze(), dtype)


@function
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> T:
    """The correlations of the variables, the rows of x and y, or their columns without `rowvar`; 1 for one variable."""
    found = _covariance(_rows(x, y, rowvar, None), 1, None, None)
    size = torch.sqrt(torch.diagonal(found))
    out = torch.clamp(found / size.unsqueeze(0) / size.unsqueeze(1), -1, 1)
    return cast(out.squeeze(), dtype)
