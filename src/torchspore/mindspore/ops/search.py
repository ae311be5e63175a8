"""Finding, ordering and counting values: unique ones, places in sorted sequences, the best of rows."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.core.creation import constant
from torchspore.engine.eager.topk import topk
from torchspore.mindspore.ops.activation import as_dtype
from torchspore.mindspore.ops.declare import op

T = torch.Tensor


def _unique(input: T) -> tuple[T, T]:
    """The values in the order of their first occurrence, and for each element its place among them (int32; int64 for int64)."""
    flat = input.reshape(-1)
    values, inverse = torch.unique(flat, return_inverse=True)
    first = torch.full((values.shape[0],), flat.shape[0], dtype=torch.int64, device=flat.device)
    first = first.scatter_reduce(0, inverse, torch.arange(flat.shape[0], device=flat.device), "amin")
    order = torch.argsort(first)
    place = torch.empty_like(order).scatter(0, order, torch.arange(order.shape[0], device=flat.device))
    kind = torch.int64 if input.dtype is torch.int64 else torch.int32
    return values[order], place[inverse].to(kind)


@op(methods=("unique",))
def unique(input: T) -> Any:
    """The values in the order of their first occurrence, and for each element its place among them, in the input's shape."""
    values, places = _unique(input)
    return values, places.reshape(input.shape)


@op(primitive="Unique")
def _unique_primitive(input_x: T) -> Any:
    """The values in the order of their first occurrence, and for each element its place among them, in the input's shape."""
    values, places = _unique(input_x)
    return values, places.reshape(input_x.shape)


@op(methods=("unique_with_pad",))
def unique_with_pad(x: T, pad_num: Any) -> Any:
    """The values of a vector in the order of their first occurrence, filled up to its length with `pad_num`, and the places."""
    return _padded(x, pad_num)


@op(primitive="UniqueWithPad")
def _unique_with_pad(x: T, pad_num: Any) -> Any:
    """The values of a vector in the order of their first occurrence, filled up to its length with `pad_num`, and the places."""
    return _padded(x, pad_num)


def _padded(x: T, pad_num: Any) -> Any:
    values, places = _unique(x)
    fill = pad_num.to(x.dtype).reshape(()) if isinstance(pad_num, T) else constant(pad_num, x.device, x.dtype)
    return torch.cat([values, fill.expand(x.numel() - values.shape[0])]), places


def _consecutive(input: T, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    out = torch.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return tuple(out) if isinstance(out, tuple) else out


@op(methods=("unique_consecutive",))
def unique_consecutive(input: T, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """One of each run of equal values (or slices along `dim`), and if asked the places of all elements and the lengths of the runs."""
    return _consecutive(input, return_inverse, return_counts, dim)


@op(primitive="UniqueConsecutive", init=("return_inverse", "return_counts", "dim"))
def _unique_consecutive(input: T, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """One of each run of equal values, and the places of all elements and the lengths of the runs, empty where they were not asked for."""
    values, places, counts = _consecutive(input, True, True, dim)
    return values, places if return_inverse else places.new_zeros(0), counts if return_counts else counts.new_zeros(0)


@op(methods=("searchsorted",))
def searchsorted(
    sorted_sequence: T, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: T | None = None,
) -> T:
    """Where `values` would be put into sorted sequences: before equal elements, or behind them if `right`."""
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"side={side!r}: expected None, 'left' or 'right', as `right` says.")
    if not isinstance(values, T):
        values = constant(values, sorted_sequence.device, sorted_sequence.dtype)
    return torch.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right or side == "right", sorter=sorter)


@op(primitive="SearchSorted", init=("dtype", "right"))
def _searchsorted(sorted_sequence: T, values: T, sorter: T | None = None, dtype: Any = torch.int64, right: bool = False) -> T:
    """Where `values` would be put into sorted sequences: before equal elements, or behind them if `right`."""
    return torch.searchsorted(sorted_sequence, values, right=right, sorter=sorter).to(as_dtype(dtype))


@op(primitive="LowerBound", init=("out_type",))
def _lower_bound(sorted_x: T, values: T, out_type: Any = torch.int32) -> T:
    """For each row where its `values` would be put into its sorted x, before equal elements."""
    return torch.searchsorted(sorted_x.contiguous(), values.contiguous()).to(as_dtype(out_type))


@op(primitive="UpperBound", init=("out_type",))
def _upper_bound(sorted_x: T, values: T, out_type: Any = torch.int32) -> T:
    """For each row where its `values` would be put into its sorted x, behind equal elements."""
    return torch.searchsorted(sorted_x.contiguous(), values.contiguous(), right=True).to(as_dtype(out_type))


@op(methods=("bucketize",))
def bucketize(input: T, boundaries: Any, *, right: bool = False) -> T:
    """Between which boundaries each element lies (int32): up to and with the next, or without it if `right`."""
    return torch.bucketize(input.to(torch.float64), _boundaries(boundaries, input), right=right).to(torch.int32)


def _boundaries(boundaries: Any, like: T) -> T:
    values = boundaries if isinstance(boundaries, T) else constant(list(boundaries), like.device, torch.float64)
    return values.to(torch.float64)


@op(primitive="Bucketize", init=("boundaries",))
def _bucketize(input: T, boundaries: Any) -> T:
    """How many boundaries are not above each element (int32)."""
    return torch.bucketize(input.to(torch.float64), _boundaries(boundaries, input), right=True).to(torch.int32)


@op(methods=("argwhere",))
def argwhere(input: T) -> T:
    """The indexes (int64) of the elements that are not zero, one row each."""
    return torch.argwhere(input)


@op(primitive="NonZero")
def _non_zero(input: T) -> T:
    """The indexes (int64) of the elements that are not zero, one row each."""
    return torch.nonzero(input)


@op(primitive="MaskedSelect")
def _masked_select(input: T, mask: T) -> T:
    """The elements where `mask` is true, as a vector."""
    return torch.masked_select(input, mask)


@op(primitive="MaskedScatter", methods=("masked_scatter",))
def _masked_scatter(input: T, mask: T, source: T) -> T:
    """A copy with the elements of `source`, one after the other, where `mask` is true."""
    return torch.masked_scatter(input, mask, source)


@op(methods=("msort",))
def msort(input: T) -> T:
    """The values in order along axis 0."""
    return torch.sort(input, dim=0, stable=True).values


@op(methods=("top_k",))
def top_k(input_x: T, k: int, sorted: bool = True) -> Any:
    """The k largest values of the last axis and their indexes (int32)."""
    values, indexes = topk(input_x, int(k), -1, True, sorted)
    return values, indexes.to(torch.int32)


@op(primitive="NthElement", init=("reverse",))
def _nth_element(input: T, n: Any, reverse: bool = False) -> T:
    """The n-th smallest value of the last axis, counted from 0; the n-th largest if `reverse`."""
    return torch.sort(input, -1, descending=reverse).values.select(-1, int(n))


@op(primitive="ListDiff", init=("out_idx",))
def _list_diff(x: T, y: T, out_idx: Any = torch.int32) -> Any:
    """The elements of the vector x that y has not, and where they are."""
    places = torch.nonzero(~torch.isin(x, y)).reshape(-1)
    return x[places], places.to(as_dtype(out_idx))


@op(primitive="UnravelIndex")
def _unravel_index(indices: T, dims: T) -> T:
    """Places in a flat Tensor of shape `dims` as indexes along its axes: shape (axes, n)."""
    return torch.stack(torch.unravel_index(indices, tuple(dims.tolist()))).to(indices.dtype)


@op()
def intopk(x1: T, x2: T, k: int) -> T:
    """Whether the class x2[i] is among the k best of the row x1[i]."""
    return _in_best(x1, x2, k)


@op(primitive="InTopK", init=("k",))
def _in_top_k(x1: T, x2: T, k: int) -> T:
    """Whether the class x2[i] is among the k best of the row x1[i]."""
    return _in_best(x1, x2, k)


def _in_best(scores: T, classes: T, k: int) -> T:
    if classes.shape != scores.shape[:1]:
        raise ValueError(f"expected one class for each row of scores, got shapes {tuple(scores.shape)} and {tuple(classes.shape)}.")
    classes = classes.long()
    there = (classes >= 0) & (classes < scores.shape[1])          # a class that there is not is among no best ones
    own = torch.gather(scores, 1, torch.where(there, classes, 0).unsqueeze(-1))
    return ((scores > own).sum(-1) < k) & torch.isfinite(own.squeeze(-1)) & there




@op(primitive="RaggedRange", init=("Tsplits",))
def _ragged_range(starts: T, limits: T, deltas: T, Tsplits: Any) -> Any:
    """For each i the numbers from starts[i] up to, without, limits[i] by deltas[i], one after the other, and where each begins."""
    count = max(t.numel() for t in (starts, limits, deltas))
    rows = zip(*(t.reshape(-1).expand(count).tolist() for t in (starts, limits, deltas)))
    parts = [torch.arange(*row, dtype=starts.dtype, device=starts.device) if (row[1] - row[0]) * row[2] > 0 else starts.new_zeros(0)
             for row in rows]
    ends = constant([0, *(part.numel() for part in parts)], starts.device).cumsum(0)
    return ends.to(as_dtype(Tsplits)), torch.cat(parts)
