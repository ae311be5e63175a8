"""Select and place elements by index, and sort them."""
from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.formulas.topk import topk as topk_of
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.creation import constant, length
from torchspore.mindspore.ops.arrays import table_lookups
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index, counted, normalized_axis
from torchspore.mindspore.ops.declaration.promote import alike, check_not_narrowed
from torchspore.mindspore.ops.declaration.split_capture import is_split
from torchspore.mindspore.ops.declaration.torch_messages import FROM_THE_END
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


@op(wide=Widening())
def gather(input_params: T, input_indices: T, axis: int, batch_dims: int = 0) -> T:
    """The slices along `axis` at `input_indices`: shape params[:axis] + indices[batch_dims:] + params[axis+1:]."""
    return _take(input_params, input_indices, axis, batch_dims)


@op(primitive="Gather", init=("batch_dims",), wide=Widening())
def _gather(input_params: T, input_indices: T, axis: int, batch_dims: int = 0) -> T:
    """The slices along `axis` at `input_indices`."""
    return _take(input_params, input_indices, axis, batch_dims)


_FLOATS = (torch.float32, torch.float64)
"""The dtypes of tables whose rows are taken by indexes of int32 as by those of int64, also in gradients."""


def _take(params: T, indices: T, axis: Any, batch_dims: int) -> T:
    axis = normalized_axis(int(axis), params.ndim)
    if indices.dtype is not torch.int32 or batch_dims or params.dtype not in _FLOATS:
        indices = as_index(indices)
    batch_dims = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if batch_dims:
        return _take_of_each(params, indices, axis, batch_dims)
    if axis == 0 and params.ndim == 2 and not engine.active:
        return counted(lambda at: torch.embedding(params, at), indices, params.shape[0])                # two views less
    flat = indices.reshape(-1)
    out = counted(lambda at: torch.index_select(params, axis, at) if axis else table_lookups.rows(params, at), flat, params.shape[axis])
    return out.reshape((*params.shape[:axis], *indices.shape, *params.shape[axis + 1:]))


def _take_of_each(params: T, indices: T, axis: int, batch_dims: int) -> T:
    """`_take` for each index of the first `batch_dims` axes, which both have. Raises ValueError for other shapes, and a smaller axis."""
    batch, numbers = indices.shape[:batch_dims], indices.shape[batch_dims:]
    if params.shape[:batch_dims] != batch or axis < batch_dims or batch_dims > indices.ndim:
        shapes = f"params {list(params.shape)} and indices {list(indices.shape)} with batch_dims={batch_dims} and axis={axis}"
        raise ValueError(f"expected {batch_dims} equal first axes, and an axis after them, got {shapes}.")
    before, behind = params.shape[batch_dims:axis], params.shape[axis + 1:]
    if len(numbers) > 1 and is_split():
        # Joined axes cannot be split separately: each axis of the indexes stays, and the params repeat along all but the last.
        at_last = (*batch, *before, *numbers[:-1])
        params = params.reshape(*batch, *before, *[1] * (len(numbers) - 1), *params.shape[axis:]).expand(*at_last, *params.shape[axis:])
        index = indices.reshape(*batch, *[1] * len(before), *numbers, *[1] * len(behind)).expand(*at_last, numbers[-1], *behind)
        return counted(lambda at: torch.gather(params, len(at_last), at), index, params.shape[len(at_last)])
    joined = indices if len(numbers) == 1 else indices.reshape(*batch, -1)
    count = joined.shape[-1]
    index = joined.reshape(*batch, *[1] * len(before), count, *[1] * len(behind)).expand(*batch, *before, count, *behind)
    out = counted(lambda at: torch.gather(params, axis, at), index, params.shape[axis])
    return out if len(numbers) == 1 else out.reshape(*batch, *before, *numbers, *behind)


@op(primitive="GatherD", methods=("gather_elements",), wide=Widening())
def gather_elements(input: T, dim: int, index: T) -> T:
    """The elements along `dim` at `index`, in the shape of `index`."""
    return counted(lambda at: torch.gather(input, dim, at), as_index(index), input.shape[dim] if input.ndim else 1)


@op(wide=Widening())
def gather_d(x: T, dim: int, index: T) -> T:
    """The elements along `dim` at `index`, in the shape of `index`."""
    return counted(lambda at: torch.gather(x, dim, at), as_index(index), x.shape[dim] if x.ndim else 1)


def _rows_named(indices: T) -> tuple[T, ...]:
    """Return the indexes of each axis; negative ones are moved beyond the end, so that every kernel refuses them."""
    return tuple(torch.where(indices < 0, FROM_THE_END, as_index(indices)).unbind(-1))


def _row_numbers(x: T, indices: T) -> T | None:
    """Return the indexes of axis 0 if `indices` has one column; None where the general form is needed.

    Kernels for the rows of a Tensor are several times as fast as those for elements at any indexes. On an accelerator they do not check
    for negative indexes; a graph that is split has rules for the general form.
    """
    is_column = indices.ndim > 0 and indices.shape[-1] == 1 and x.ndim > 0
    if not is_column or indices.dtype not in (torch.int32, torch.int64) or indices.device.type != "cpu" or is_split():
        return None
    return indices.reshape(-1)


_OTHER_SUMS = (torch.bool, torch.float16, torch.bfloat16)
"""The dtypes for which torch's `index_add` sums in another way than `index_put`."""


def _add_at_rows(x: T, indices: T, updates: T) -> T:
    """Return a copy of `x` with `updates` added at the rows of `indices`."""
    updates = _fitting(updates, indices, x)
    numbers = _row_numbers(x, indices)
    if numbers is not None and x.dtype not in _OTHER_SUMS:
        with suppress(RuntimeError, IndexError):                             # the general form reports which index is wrong
            return x.index_add(0, numbers.long(), updates.reshape((numbers.shape[0], *x.shape[1:])))
    return x.index_put(_rows_named(indices), updates, accumulate=True)


def _fitting(updates: T, indices: T, x: T) -> T:
    """Return the updates. Raises ValueError for a shape that torch would broadcast: MindSpore requires a value for each element."""
    expected = (*indices.shape[:-1], *x.shape[indices.shape[-1] if indices.ndim else 0:])
    if tuple(updates.shape) != expected:
        raise ValueError(f"expected updates of shape {expected}, got {tuple(updates.shape)}.")
    return updates


@op(primitive="GatherNd", methods=("gather_nd",))
def gather_nd(input_x: T, indices: T) -> T:
    """The slices at the rows of `indices`: shape indices[:-1] + x[indices.shape[-1]:]."""
    numbers = _row_numbers(input_x, indices)
    if numbers is not None:
        with suppress(RuntimeError, IndexError):                             # the general form reports which index is wrong
            return torch.index_select(input_x, 0, numbers).reshape((*indices.shape[:-1], *input_x.shape[1:]))
    return input_x[_rows_named(indices)]


@op(primitive="OneHot", init=("axis",))
def _one_hot(indices: T, depth: int, on_value: Any, off_value: Any, axis: int = -1) -> T:
    """`on_value` at the index, `off_value` elsewhere, along a new `axis` of length `depth`."""
    return _hot(indices, depth, on_value, off_value, axis)


@op()
def one_hot(indices: T, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> T:
    """`on_value` at the index, `off_value` elsewhere, along a new `axis` of length `depth`."""
    return _hot(indices, depth, on_value, off_value, axis)


def _hot(indices: T, depth: int, on: Any, off: Any, axis: int) -> T:
    indices = as_index(indices)
    on, off = (v if isinstance(v, T) else constant(v, indices.device) for v in (on, off))
    positions = torch.arange(int(depth), device=indices.device)
    out = torch.where(indices.unsqueeze(-1) == positions, on, off.to(on.dtype))
    return out if axis in (-1, indices.ndim) else out.movedim(-1, axis)


@op(primitive="Select")
def select(condition: T, input: T, other: T) -> T:
    """`input` where `condition` is true, else `other`; one of the two may be a number."""
    return _where(condition, input, other)


@op()
def where(condition: T, input: T, other: T) -> T:
    """`input` where `condition` is true, else `other`."""
    return _where(condition, input, other)


def _where(condition: T, a: Any, b: Any) -> T:
    condition = condition if condition.dtype is torch.bool else condition != 0
    if isinstance(a, T) and not isinstance(b, T):
        b = constant(b, a.device).to(torch.result_type(a, b))
    elif isinstance(b, T) and not isinstance(a, T):
        a = constant(a, b.device).to(torch.result_type(b, a))
    elif isinstance(a, T) and a.dtype is not b.dtype:          # torch would give a Tensor without axes no say in the dtype
        a, b = alike(a, b)
    return torch.where(condition, a, b)


@op(primitive="MaskedFill", methods=("masked_fill",))
def masked_fill(input_x: T, mask: T, value: Any) -> T:
    """`value` where `mask` is true."""
    check_not_narrowed(input_x.dtype, value, "a value", is_size_free=True)
    return torch.where(mask, constant(value, input_x.device).to(input_x.dtype), input_x)


@op(methods=("masked_select",), wide=Widening())
def masked_select(input: T, mask: T) -> T:
    """The elements where `mask` is true, as a vector."""
    return torch.masked_select(input, mask)


@op(primitive="TopK", init=("sorted",), wide=Widening(compares=True))
def _topk(input_x: T, k: int, sorted: bool = True) -> Any:
    """The `k` largest values of the last axis and their indexes (int32); equal values are in MindSpore's order."""
    values, indexes = topk_of(input_x, int(k), -1, True, sorted)
    return values, indexes.to(torch.int32)


@op(methods=("topk",), wide=Widening(compares=True))
def topk(input: T, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest (or smallest) values along `dim` and their indexes (int32); equal values are in MindSpore's order."""
    values, indexes = topk_of(input, int(k), -1 if dim is None else dim, largest, sorted)
    return values, indexes.to(torch.int32)


@op(primitive="Sort", init=("axis", "descending"))
def _sort(x: T, axis: int = -1, descending: bool = False) -> Any:
    """Sort the values along `axis`; also return their indexes (int32)."""
    values, indexes = torch.sort(x, stable=True, dim=axis, descending=descending)
    return values, indexes.to(torch.int32)


@op(methods=("sort",))
def sort(input_x: T, axis: int = -1, descending: bool = False) -> Any:
    """Sort the values along `axis`; also return their indexes (int32)."""
    values, indexes = torch.sort(input_x, stable=True, dim=axis, descending=descending)
    return values, indexes.to(torch.int32)


@op(methods=("argsort",))
def argsort(input: T, axis: int = -1, descending: bool = False) -> T:
    """The indexes (int32) that sort the values along `axis`."""
    return torch.argsort(input, stable=True, dim=axis, descending=descending).to(torch.int32)


@op(methods=("nonzero",), wide=Widening(values=()))
def nonzero(input: T, *, as_tuple: bool = False) -> Any:
    """The indexes (int64) of the elements that are not zero, one row each."""
    return torch.nonzero(input, as_tuple=as_tuple)


@op(methods=("index_select",))
def index_select(input: T, axis: int, index: T) -> T:
    """The slices along `axis` at `index`."""
    return counted(lambda at: torch.index_select(input, axis, at), as_index(index), input.shape[axis] if input.ndim else 1)


@op(primitive="ScatterNd", wide=Widening())
def scatter_nd(indices: T, updates: T, shape: Any) -> T:
    """Zeros of `shape` with `updates` added at the rows of `indices`."""
    out = torch.zeros([length(s) for s in shape], dtype=updates.dtype, device=updates.device)
    return _add_at_rows(out, indices, updates)


@op(primitive="TensorScatterUpdate", wide=Widening())
def tensor_scatter_update(input_x: T, indices: T, updates: T) -> T:
    """A copy with `updates` at the rows of `indices`."""
    return input_x.index_put(_rows_named(indices), _fitting(updates, indices, input_x))


@op(primitive="TensorScatterAdd", wide=Widening())
def tensor_scatter_add(input_x: T, indices: T, updates: T) -> T:
    """A copy with `updates` added at the rows of `indices`."""
    return _add_at_rows(input_x, indices, updates)


@op(primitive="UnsortedSegmentSum", wide=Widening())
def unsorted_segment_sum(input_x: T, segment_ids: T, num_segments: int) -> T:
    """The sums of the slices that share a segment: shape (num_segments, ...); negative segments are ignored."""
    if input_x.shape[: segment_ids.ndim] != segment_ids.shape:
        raise ValueError(
            f"expected segment_ids of the first lengths of input_x's shape {tuple(input_x.shape)}, got {tuple(segment_ids.shape)}.",
        )
    rest = input_x.shape[segment_ids.ndim:]
    ids, total = as_index(segment_ids).reshape(-1), int(num_segments)
    if total < 0:
        raise ValueError(message(f"num_segments={total}", "an int from 0 on"))
    rows = input_x.reshape(-1, *rest)
    if ids.__class__ is T and ids.is_cpu:
        with suppress(RuntimeError, IndexError):           # few programs have segments that are negative or too large
            return torch.zeros((total, *rest), dtype=input_x.dtype).index_add(0, ids, rows)
    ids = torch.where(ids < 0, total, torch.where(ids < total, ids, ids + 1))       # too large ones stay beyond the end
    out = torch.zeros((total + 1, *rest), dtype=input_x.dtype, device=input_x.device)
    return out.index_add(0, ids, rows)[:-1]


@op(primitive="ComputeAccidentalHits", init=("num_true",))
def _compute_accidental_hits(true_classes: T, sampled_candidates: T, num_true: int = 1) -> Any:
    """Find drawn candidates that are true classes (N, num_true): rows, int32, the candidates' indexes, and weights of the least float32."""
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise ValueError(f"true_classes of shape {tuple(true_classes.shape)}: expected (N, {num_true}).")
    if true_classes.is_floating_point() or sampled_candidates.is_floating_point():
        raise TypeError(f"classes of {true_classes.dtype} and {sampled_candidates.dtype}: expected int32 or int64.")
    hits = (true_classes.unsqueeze(-1) == sampled_candidates).nonzero()
    weights = torch.full((hits.shape[0],), torch.finfo(torch.float32).min, dtype=torch.float32, device=hits.device)
    return hits[:, 0].to(torch.int32), hits[:, 2].contiguous(), weights
