"""Search, sort and count values: unique values, positions in sorted sequences, the largest of rows."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.formulas.topk import topk
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _unique(input: T) -> tuple[T, T]:
    """Return the values in the order of their first occurrence, and each element's index among them (int32; int64 for int64)."""
    flat = input.reshape(-1)
    values, inverse = torch.unique(flat, return_inverse=True)
    first = torch.full((values.shape[0],), flat.shape[0], dtype=torch.int64, device=flat.device)
    first = first.scatter_reduce(0, inverse, torch.arange(flat.shape[0], device=flat.device), "amin")
    order = torch.argsort(first)
    rank = torch.empty_like(order).scatter(0, order, torch.arange(order.shape[0], device=flat.device))
    kind = torch.int64 if input.dtype is torch.int64 else torch.int32
    return values[order], rank[inverse].to(kind)


@op(methods=("unique",))
def unique(input: T) -> Any:
    """The values in the order of their first occurrence, and each element's index among them, in the input's shape."""
    values, inverse = _unique(input)
    return values, inverse.reshape(input.shape)


@op(primitive="Unique")
def _unique_primitive(input_x: T) -> Any:
    """The values in the order of their first occurrence, and each element's index among them, in the input's shape."""
    values, inverse = _unique(input_x)
    return values, inverse.reshape(input_x.shape)


@op(methods=("unique_with_pad",))
def unique_with_pad(x: T, pad_num: Any) -> Any:
    """The values of a vector in the order of their first occurrence, padded to its length with `pad_num`, and the indexes."""
    return _padded(x, pad_num)


@op(primitive="UniqueWithPad")
def _unique_with_pad(x: T, pad_num: Any) -> Any:
    """The values of a vector in the order of their first occurrence, padded to its length with `pad_num`, and the indexes."""
    return _padded(x, pad_num)


def _padded(x: T, pad_num: Any) -> Any:
    values, inverse = _unique(x)
    fill = pad_num.to(x.dtype).reshape(()) if isinstance(pad_num, T) else constant(pad_num, x.device, x.dtype)
    return torch.cat([values, fill.expand(x.numel() - values.shape[0])]), inverse


def _consecutive(input: T, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    out = torch.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return tuple(out) if isinstance(out, tuple) else out


@op(methods=("unique_consecutive",))
def unique_consecutive(input: T, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """One of each run of equal values (or slices along `dim`), and on request each element's run and the lengths of the runs."""
    return _consecutive(input, return_inverse, return_counts, dim)


@op(primitive="UniqueConsecutive", init=("return_inverse", "return_counts", "dim"))
def _unique_consecutive(input: T, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """One of each run of equal values, each element's run and the lengths of the runs; results that are not requested are empty."""
    values, inverse, counts = _consecutive(input, True, True, dim)
    return values, inverse if return_inverse else inverse.new_zeros(0), counts if return_counts else counts.new_zeros(0)


@op(methods=("searchsorted",))
def searchsorted(
    sorted_sequence: T, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: T | None = None,
) -> T:
    """The insertion points of `values` in sorted sequences: before equal elements, or after them if `right`."""
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"side={side!r}: expected None, 'left' or 'right', in agreement with `right`.")
    if not isinstance(values, T):
        values = constant(values, sorted_sequence.device, sorted_sequence.dtype)
    return torch.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right or side == "right", sorter=sorter)


@op(primitive="SearchSorted", init=("dtype", "right"))
def _searchsorted(sorted_sequence: T, values: T, sorter: T | None = None, dtype: Any = torch.int64, right: bool = False) -> T:
    """The insertion points of `values` in sorted sequences: before equal elements, or after them if `right`."""
    return torch.searchsorted(sorted_sequence, values, right=right, sorter=sorter).to(as_dtype(dtype))


@op(primitive="LowerBound", init=("out_type",))
def _lower_bound(sorted_x: T, values: T, out_type: Any = torch.int32) -> T:
    """For each row, the insertion points of its `values` in its sorted x, before equal elements."""
    return torch.searchsorted(sorted_x.contiguous(), values.contiguous()).to(as_dtype(out_type))


@op(primitive="UpperBound", init=("out_type",))
def _upper_bound(sorted_x: T, values: T, out_type: Any = torch.int32) -> T:
    """For each row, the insertion points of its `values` in its sorted x, after equal elements."""
    return torch.searchsorted(sorted_x.contiguous(), values.contiguous(), right=True).to(as_dtype(out_type))


@op(methods=("bucketize",))
def bucketize(input: T, boundaries: Any, *, right: bool = False) -> T:
    """The bucket of each element (int32): the number of boundaries below it, or not above it if `right`."""
    return torch.bucketize(input.to(torch.float64), _boundaries(boundaries, input), right=right).to(torch.int32)


def _boundaries(boundaries: Any, like: T) -> T:
    values = boundaries if isinstance(boundaries, T) else constant(list(boundaries), like.device, torch.float64)
    return values.to(torch.float64)


@op(primitive="Bucketize", init=("boundaries",))
def _bucketize(input: T, boundaries: Any) -> T:
    """The number of boundaries that are not above each element (int32)."""
    return torch.bucketize(input.to(torch.float64), _boundaries(boundaries, input), right=True).to(torch.int32)


@op(methods=("argwhere",), wide=Widening(values=()))
def argwhere(input: T) -> T:
    """The indexes (int64) of the elements that are not zero, one row each."""
    return torch.argwhere(input)


@op(primitive="NonZero")
def _non_zero(input: T) -> T:
    """The indexes (int64) of the elements that are not zero, one row each."""
    return torch.nonzero(input)


@op(primitive="MaskedSelect", wide=Widening())
def _masked_select(input: T, mask: T) -> T:
    """The elements where `mask` is true, as a vector."""
    return torch.masked_select(input, mask)


@op(primitive="MaskedScatter", methods=("masked_scatter",))
def _masked_scatter(input: T, mask: T, source: T) -> T:
    """A copy with consecutive elements of `source` where `mask` is true."""
    return torch.masked_scatter(input, mask, source)


@op(methods=("msort",))
def msort(input: T) -> T:
    """Sort the values along axis 0."""
    return torch.sort(input, dim=0, stable=True).values


@op(methods=("top_k",), wide=Widening(compares=True))
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
    """The elements of the vector x that are not in y, and their indexes."""
    positions = torch.nonzero(~torch.isin(x, y)).reshape(-1)
    return x[positions], positions.to(as_dtype(out_idx))


@op(primitive="UnravelIndex")
def _unravel_index(indices: T, dims: T) -> T:
    """Indexes of a flat Tensor of shape `dims` as indexes along its axes: shape (axes, n)."""
    return torch.stack(torch.unravel_index(indices, tuple(dims.tolist()))).to(indices.dtype)


@op()
def intopk(x1: T, x2: T, k: int) -> T:
    """Test whether the class x2[i] is among the k largest of the row x1[i]."""
    return _in_best(x1, x2, k)


@op(primitive="InTopK", init=("k",))
def _in_top_k(x1: T, x2: T, k: int) -> T:
    """Test whether the class x2[i] is among the k largest of the row x1[i]."""
    return _in_best(x1, x2, k)


def _in_best(scores: T, classes: T, k: int) -> T:
    if classes.shape != scores.shape[:1]:
        raise ValueError(f"expected one class for each row of scores, got shapes {tuple(scores.shape)} and {tuple(classes.shape)}.")
    classes = classes.long()
    is_class = (classes >= 0) & (classes < scores.shape[1])          # a class that does not exist is not among the largest
    class_scores = torch.gather(scores, 1, torch.where(is_class, classes, 0).unsqueeze(-1))
    return ((scores > class_scores).sum(-1) < k) & torch.isfinite(class_scores.squeeze(-1)) & is_class




@op(primitive="RaggedRange", init=("Tsplits",))
def _ragged_range(starts: T, limits: T, deltas: T, Tsplits: Any) -> Any:
    """For each i the numbers from starts[i] to limits[i] (exclusive) by deltas[i], concatenated, and where each begins."""
    count = max(t.numel() for t in (starts, limits, deltas))
    rows = zip(*(t.reshape(-1).expand(count).tolist() for t in (starts, limits, deltas)))
    parts = [torch.arange(*row, dtype=starts.dtype, device=starts.device) if (row[1] - row[0]) * row[2] > 0 else starts.new_zeros(0)
             for row in rows]
    ends = constant([0, *(part.numel() for part in parts)], starts.device).cumsum(0)
    return ends.to(as_dtype(Tsplits)), torch.cat(parts)
