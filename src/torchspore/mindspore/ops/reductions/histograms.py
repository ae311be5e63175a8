"""Counts of values: bins, histograms, confusion matrices."""
from __future__ import annotations

import torch

from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


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


@op(primitive="ConfusionMatrix", init=("num_classes", "dtype"))
def _confusion_matrix(labels: T, predictions: T, weights: T | None = None, *, num_classes: int, dtype: str = "int32") -> T:
    """Count how often each class (row) was predicted as each class (column), or sum the weights."""
    kind = getattr(torch, dtype)
    amounts = torch.ones_like(labels, dtype=kind) if weights is None else weights.to(kind)
    at = labels.long() * num_classes + predictions.long()
    return torch.zeros(num_classes**2, dtype=kind, device=labels.device).index_add(0, at, amounts).reshape(num_classes, num_classes)
