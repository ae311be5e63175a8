"""Reductions over the slices that share a segment, and sparse values with their indexes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _unsorted(x: T, segment_ids: T, count: Any, how: str, start: Any) -> T:
    """Reduce by `how` the slices of each of `count` segments; negative segments are ignored, empty ones have the value `start`."""
    if x.shape[: segment_ids.ndim] != segment_ids.shape:
        raise ValueError(f"expected segment_ids of the first lengths of x's shape {tuple(x.shape)}, got {tuple(segment_ids.shape)}.")
    rows = x.reshape(-1, *x.shape[segment_ids.ndim :])
    ids, total = as_index(segment_ids).reshape(-1), int(count)
    ids = torch.where(ids < 0, total, torch.where(ids < total, ids, ids + 1))       # too large ones stay beyond the end
    out = torch.full((total + 1, *rows.shape[1:]), start, dtype=x.dtype, device=x.device)
    out = out.scatter_reduce(0, ids.reshape(-1, *[1] * (rows.ndim - 1)).expand(rows.shape), rows, how)
    return out[:-1]


def _least(x: T) -> Any:
    return torch.finfo(x.dtype).min if x.is_floating_point() else torch.iinfo(x.dtype).min


def _most(x: T) -> Any:
    return torch.finfo(x.dtype).max if x.is_floating_point() else torch.iinfo(x.dtype).max


@op(primitive="UnsortedSegmentMax", methods=("unsorted_segment_max",), wide=Widening(compares=True))
def unsorted_segment_max(x: T, segment_ids: T, num_segments: Any) -> T:
    """The largest values of the slices that share a segment: shape (num_segments, ...), the dtype's smallest for none."""
    return _unsorted(x, segment_ids, num_segments, "amax", _least(x))


@op(primitive="UnsortedSegmentMin", methods=("unsorted_segment_min",), wide=Widening(compares=True))
def unsorted_segment_min(x: T, segment_ids: T, num_segments: Any) -> T:
    """The smallest values of the slices that share a segment: shape (num_segments, ...), the dtype's largest for none."""
    return _unsorted(x, segment_ids, num_segments, "amin", _most(x))


@op(primitive="UnsortedSegmentProd", methods=("unsorted_segment_prod",))
def unsorted_segment_prod(x: T, segment_ids: T, num_segments: Any) -> T:
    """The products of the slices that share a segment: shape (num_segments, ...), 1 for none."""
    return _unsorted(x, segment_ids, num_segments, "prod", 1)


def _sorted(x: T, segment_ids: T, how: str) -> T:
    """Reduce by `how` the slices of each segment up to the last one; segments without slices are 0 (for products 1)."""
    if segment_ids.ndim != 1 or x.shape[:1] != segment_ids.shape:
        raise ValueError(f"expected one segment for each of {x.shape[0] if x.ndim else 0} rows, got shape {tuple(segment_ids.shape)}.")
    ids = as_index(segment_ids)
    if bool((ids[1:] < ids[:-1]).any()):
        raise ValueError("expected segment_ids that are sorted in ascending order.")
    total = int(ids[-1]) + 1 if ids.numel() else 0
    out = torch.full((total, *x.shape[1:]), 1 if how == "prod" else 0, dtype=x.dtype, device=x.device)
    at = ids.reshape(-1, *[1] * (x.ndim - 1)).expand(x.shape)
    return out.scatter_reduce(0, at, x, how, include_self=how in ("sum", "prod"))


@op(primitive="SegmentSum")
def _segment_sum(input_x: T, segment_ids: T) -> T:
    """The sums of the rows that share a segment; the segments are sorted."""
    return _sorted(input_x, segment_ids, "sum")


@op(primitive="SegmentMean")
def _segment_mean(input_x: T, segment_ids: T) -> T:
    """The means of the rows that share a segment; the segments are sorted."""
    return _sorted(input_x, segment_ids, "mean")


@op(primitive="SegmentMax")
def _segment_max(input_x: T, segment_ids: T) -> T:
    """The largest values of the rows that share a segment; the segments are sorted."""
    return _sorted(input_x, segment_ids, "amax")


@op(primitive="SegmentMin")
def _segment_min(input_x: T, segment_ids: T) -> T:
    """The smallest values of the rows that share a segment; the segments are sorted."""
    return _sorted(input_x, segment_ids, "amin")


@op(primitive="SegmentProd")
def _segment_prod(input_x: T, segment_ids: T) -> T:
    """The products of the rows that share a segment; the segments are sorted."""
    return _sorted(input_x, segment_ids, "prod")


def _of_rows(x: T, indices: T, segment_ids: T, how: str) -> T:
    return _sorted(x.index_select(0, as_index(indices)), segment_ids, how)


@op(primitive="SparseSegmentMean")
def sparse_segment_mean(x: T, indices: T, segment_ids: T) -> T:
    """The means of the rows x[indices] that share a segment; the segments are sorted."""
    return _of_rows(x, indices, segment_ids, "mean")


@op(primitive="SparseSegmentSum")
def _sparse_segment_sum(x: T, indices: T, segment_ids: T) -> T:
    """The sums of the rows x[indices] that share a segment; the segments are sorted."""
    return _of_rows(x, indices, segment_ids, "sum")


@op(primitive="SparseSegmentSqrtN")
def _sparse_segment_sqrt(x: T, indices: T, segment_ids: T) -> T:
    """The sums of the rows x[indices] that share a segment, divided by the roots of their counts; the segments are sorted."""
    return _by_roots(_of_rows(x, indices, segment_ids, "sum"), segment_ids)


def _by_roots(sums: T, segment_ids: T) -> T:
    counts = torch.bincount(as_index(segment_ids), minlength=sums.shape[0])[: sums.shape[0]].clamp(min=1)
    return sums / counts.to(sums.dtype).sqrt().reshape(-1, *[1] * (sums.ndim - 1))


def _filled(segments: T, num_segments: T) -> T:
    """Pad rows of segments with zeros up to `num_segments`."""
    count = int(num_segments)
    if segments.shape[0] > count:
        raise ValueError(f"expected segment_ids below num_segments, {count}, got {segments.shape[0] - 1}.")
    return torch.cat([segments, segments.new_zeros(count - segments.shape[0], *segments.shape[1:])])


@op(primitive="SparseSegmentSumWithNumSegments")
def _sparse_segment_sum_of(x: T, indices: T, segment_ids: T, num_segments: T) -> T:
    """As `SparseSegmentSum`, with zeros for segments without rows: shape (num_segments, ...)."""
    return _filled(_of_rows(x, indices, segment_ids, "sum"), num_segments)


@op(primitive="SparseSegmentMeanWithNumSegments")
def _sparse_segment_mean_of(x: T, indices: T, segment_ids: T, num_segments: T) -> T:
    """As `SparseSegmentMean`, with zeros for segments without rows: shape (num_segments, ...)."""
    return _filled(_of_rows(x, indices, segment_ids, "mean"), num_segments)


@op(primitive="SparseSegmentSqrtNWithNumSegments")
def _sparse_segment_sqrt_of(x: T, indices: T, segment_ids: T, num_segments: T) -> T:
    """As `SparseSegmentSqrtN`, with zeros for segments without rows: shape (num_segments, ...)."""
    return _filled(_by_roots(_of_rows(x, indices, segment_ids, "sum"), segment_ids), num_segments)


def _dense(indices: T, values: T, shape: Any) -> T:
    lengths = [int(n) for n in (shape.tolist() if isinstance(shape, T) else shape)]
    at = tuple(as_index(indices).reshape(-1, len(lengths)).unbind(-1))
    return torch.zeros(lengths, dtype=values.dtype, device=values.device).index_put(at, values.reshape(-1), accumulate=True)


@op(primitive="SparseToDense")
def _sparse_to_dense(indices: T, values: T, sparse_shape: Any) -> T:
    """Zeros of `sparse_shape` with `values` at the rows of `indices`."""
    return _dense(indices, values, sparse_shape)


@op(primitive="SparseTensorDenseMatmul", init=("adjoint_st", "adjoint_dt"))
def _sparse_matmul(indices: T, values: T, sparse_shape: Any, dense: T, adjoint_st: bool = False, adjoint_dt: bool = False) -> T:
    """The product of a sparse matrix and `dense`, after the requested transpositions."""
    rows, columns = as_index(indices).unbind(-1)
    height, _ = (int(n) for n in (sparse_shape.tolist() if isinstance(sparse_shape, T) else sparse_shape))
    if adjoint_st:
        height = int((sparse_shape.tolist() if isinstance(sparse_shape, T) else sparse_shape)[1])
        rows, columns, values = columns, rows, values.conj() if values.is_complex() else values
    dense = dense.mH if adjoint_dt else dense
    out = torch.zeros(height, dense.shape[-1], dtype=dense.dtype, device=dense.device)
    return out.index_add(0, rows, values.unsqueeze(-1) * dense.index_select(0, columns))


@op(primitive="SparseTensorDenseAdd")
def _sparse_add(x1_indices: T, x1_values: T, x1_shape: Any, x2: T) -> T:
    """Add the values of a sparse Tensor to x2, which has its shape."""
    return x2 + _dense(x1_indices, x1_values, x1_shape)


@op(primitive="SparseSlice")
def _sparse_slice(indices: T, values: T, shape: T, start: T, size: T) -> Any:
    """The part of a sparse Tensor that begins at `start` and has at most `size`: its indexes, values and shape."""
    length = torch.minimum(size, (shape - start).clamp(min=0))
    inside = ((indices >= start) & (indices < start + length)).all(-1)
    return indices[inside] - start, values[inside], length


@op(primitive="Coalesce")
def coalesce(x_indices: T, x_values: T, x_shape: T) -> Any:
    """Sum the values of a sparse Tensor (indexes (axes, n)) with equal indexes, and sort them in row-major order."""
    lengths = x_shape.tolist()
    position = torch.zeros_like(x_indices[0])
    for axis, length in enumerate(lengths):
        position = position * length + x_indices[axis]
    unique, inverse = torch.unique(position, return_inverse=True)
    sums = torch.zeros(unique.shape[0], dtype=x_values.dtype, device=x_values.device).index_add(0, inverse, x_values)
    return torch.stack(torch.unravel_index(unique, lengths)), sums, x_shape.clone()
