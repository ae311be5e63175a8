"""Rows of unequal length: sets in the last axis of Tensors, and ragged Tensors with the ends of their rows."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchspore.base.text import list_choices
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.sparse_formats.coo_primitives import flat_indices

T = torch.Tensor
_SETS: Mapping[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": lambda a, b: a - b, "b-a": lambda a, b: b - a, "intersection": lambda a, b: a & b, "union": lambda a, b: a | b,
}
_PARTITIONS = ("FIRST_DIM_SIZE", "ROW_SPLITS", "VALUE_ROWIDS")


def _combined(first: list[list[Any]], second: list[list[Any]], outer: list[int], how: str, like: T) -> Any:
    """Combine the sets of two lists of rows, row by row: indexes, sorted values, shape."""
    if how not in _SETS:
        raise ValueError(f"set_operation={how!r}: expected {list_choices(_SETS)}.")
    rows = [sorted(_SETS[how](set(a), set(b))) for a, b in zip(first, second)]
    at = [(*outer_index, column) for outer_index, row in zip(_every(outer), rows) for column in range(len(row))]
    shape = [*outer, max(map(len, rows), default=0)]
    return (
        torch.tensor(at, dtype=torch.int64, device=like.device).reshape(-1, len(shape)),
        torch.tensor([value for row in rows for value in row], dtype=like.dtype, device=like.device),
        torch.tensor(shape, dtype=torch.int64, device=like.device),
    )


def _every(outer: list[int]) -> list[list[int]]:
    """Return the indexes of all elements of a shape."""
    return torch.cartesian_prod(*[torch.arange(length) for length in outer]).reshape(-1, len(outer)).tolist()


def _rows_of(indices: T, values: T, shape: T) -> list[list[Any]]:
    """Return the values of a sparse Tensor by all indexes except the last."""
    lengths = sizes(shape)
    rows: list[list[Any]] = [[] for _ in _every(lengths[:-1])]
    number = torch.div(flat_indices(indices, lengths), max(lengths[-1], 1), rounding_mode="floor").tolist()
    for row, value in zip(number, values.tolist()):
        rows[row].append(value)
    return rows


@op(primitive="DenseToDenseSetOperation", init=("set_operation", "validate_indices"))
def _dense_sets(x1: T, x2: T, set_operation: str = "a-b", validate_indices: bool = True) -> Any:
    """The difference ('a-b', 'b-a'), intersection or union of the sets in the last axis: indexes, sorted values, shape."""
    if x1.ndim < 2 or x1.shape[:-1] != x2.shape[:-1]:
        raise ValueError(f"expected x1 and x2 of rank 2 or more, equal except the last axis, got {tuple(x1.shape)} and {tuple(x2.shape)}.")
    outer = list(x1.shape[:-1])
    return _combined(x1.reshape(-1, x1.shape[-1]).tolist(), x2.reshape(-1, x2.shape[-1]).tolist(), outer, set_operation, x1)


@op(primitive="DenseToSparseSetOperation", init=("set_operation", "validate_indices"))
def _dense_and_sparse_sets(
    x1: T, x2_indices: T, x2_values: T, x2_shape: T, set_operation: str = "", validate_indices: bool = True,
) -> Any:
    """As `DenseToDenseSetOperation`, with the second sets in a sparse Tensor."""
    outer = sizes(x2_shape)[:-1]
    if x1.ndim < 2 or list(x1.shape[:-1]) != outer:
        raise ValueError(f"expected x1 of rank 2 or more with the axes {tuple(outer)} except the last, got {tuple(x1.shape)}.")
    return _combined(x1.reshape(-1, x1.shape[-1]).tolist(), _rows_of(x2_indices, x2_values, x2_shape), outer, set_operation, x1)


@op(primitive="SetSize", init=("validate_indices",))
def _set_size(set_indices: T, set_values: T, set_shape: T, validate_indices: bool = True) -> T:
    """The number of different values in each row of a sparse Tensor: int32, its shape without the last axis."""
    counts = [len(set(row)) for row in _rows_of(set_indices, set_values, set_shape)]
    return torch.tensor(counts, dtype=torch.int32, device=set_values.device).reshape(sizes(set_shape)[:-1])


def _counts(ends: T) -> T:
    """Return the lengths of rows with these ends. Raises ValueError if the ends do not rise from 0."""
    lengths = as_index(ends).diff()
    if not ends.numel() or int(ends[0]) != 0 or bool((lengths < 0).any()):
        raise ValueError(f"expected row splits that rise from 0, got {ends.tolist()}.")
    return lengths


def _row_and_column(counts: T) -> tuple[T, T]:
    """Return, for each element of rows of these lengths, its row and its position in the row."""
    row = torch.repeat_interleave(torch.arange(counts.shape[0], device=counts.device), counts)
    return row, torch.arange(row.shape[0], device=counts.device) - (counts.cumsum(0) - counts)[row]


@op(primitive="RaggedTensorToSparse", init=("Tsplits",))
def _ragged_to_sparse(rt_nested_splits: Any, rt_dense_values: T, Tsplits: Any = None) -> Any:
    """A ragged Tensor with the row ends `rt_nested_splits`, outermost first, as a sparse one: indexes, values, shape (int64)."""
    at = None
    lengths: list[int] = []
    for ends in rt_nested_splits:
        if not isinstance(ends, T):
            raise TypeError(f"expected Tensors as rt_nested_splits, got {type(ends).__name__}.")
        if Tsplits is not None and FROM_TORCH[ends.dtype] != Tsplits:
            raise TypeError(f"expected splits of {Tsplits}, got {FROM_TORCH[ends.dtype]}.")
        counts = _counts(ends)
        if at is not None and counts.shape[0] != at.shape[0]:
            raise ValueError(f"expected splits of {at.shape[0]} rows, got {counts.shape[0]}.")
        row, column = _row_and_column(counts)
        at = torch.cat([row.unsqueeze(-1) if at is None else at[row], column.unsqueeze(-1)], -1)
        lengths = [*(lengths or [counts.shape[0]]), int(counts.max()) if counts.numel() else 0]
    if at is None or at.shape[0] != rt_dense_values.shape[0]:
        raise ValueError(f"expected splits that end at the {rt_dense_values.shape[0]} rows of the values.")
    inner = list(rt_dense_values.shape[1:])
    if inner:
        tail = torch.tensor(_every(inner), device=at.device)
        at = torch.cat([at.repeat_interleave(tail.shape[0], 0), tail.repeat(at.shape[0], 1)], -1)
    return at, rt_dense_values.reshape(-1), torch.tensor([*lengths, *inner], dtype=torch.int64, device=at.device)


@op(primitive="RaggedTensorToTensor", init=("row_partition_types",))
def _ragged_to_tensor(shape: T, values: T, default_value: T, row_partition_tensors: Any, row_partition_types: Any = ()) -> T:
    """A ragged Tensor as a dense one of `shape` (-1: as long as needed), truncated or padded with `default_value`.

    A partition has the type 'ROW_SPLITS' (the ends of rows) or 'VALUE_ROWIDS' (the row of each value); the latter come after
    'FIRST_DIM_SIZE', the number of rows.
    """
    levels: list[T] = []
    first = None
    for kind, part in zip(row_partition_types, row_partition_tensors):
        if kind == "FIRST_DIM_SIZE":
            first = int(part)
        elif kind == "ROW_SPLITS":
            levels.append(_counts(part))
        elif kind == "VALUE_ROWIDS":
            levels.append(torch.bincount(as_index(part), minlength=first or (int(levels[-1].sum()) if levels else 0)))
        else:
            raise ValueError(f"row_partition_types={list(row_partition_types)}: expected {list_choices(_PARTITIONS)} each.")
        first = first if kind == "FIRST_DIM_SIZE" else None
    at = torch.arange(levels[0].shape[0], device=values.device).unsqueeze(-1)
    for counts in levels:
        row, column = _row_and_column(counts)
        at = torch.cat([at[row], column.unsqueeze(-1)], -1)
    needed = [levels[0].shape[0], *(int(counts.max()) if counts.numel() else 0 for counts in levels), *values.shape[1:]]
    lengths = [need if length < 0 else length for length, need in zip(sizes(shape), needed)]
    inside = (at < torch.tensor(lengths[: at.shape[-1]], device=at.device)).all(-1)
    dense = torch.broadcast_to(default_value.to(values.dtype), lengths).clone()
    return dense.index_put(tuple(at[inside].unbind(-1)), values[inside])
