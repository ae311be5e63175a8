"""The primitives of MindSpore's `sparse_ops` on sparse Tensors as separate parts: indexes (n, axes), values (n,), shape (axes,).

They compute what TensorFlow's operators of the same names compute. Joined Tensors have their elements in row-major order.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index

T = torch.Tensor


def flat_indices(indices: T, shape: Any, name: str = "indices") -> T:
    """Return the flat position of each index (n, axes) in a Tensor of `shape`. Raises ValueError for an index outside the shape."""
    lengths = sizes(shape)
    at = as_index(indices).reshape(-1, len(lengths))
    most = torch.tensor(lengths, device=at.device)
    beyond = ((at < 0) | (at >= most)).any(-1)
    if bool(beyond.any()):
        raise ValueError(f"expected {name} inside the shape {tuple(lengths)}, got {tuple(at[beyond][0].tolist())}.")
    flat = torch.zeros(at.shape[0], dtype=torch.int64, device=at.device)
    for axis, length in enumerate(lengths):
        flat = flat * length + at[:, axis]
    return flat


def indexes(flat: T, shape: Any, dtype: torch.dtype = torch.int64) -> T:
    """Return the indexes (n, axes) of flat positions."""
    return torch.stack(torch.unravel_index(flat, sizes(shape)), -1).to(dtype)


def _require_equal_shapes(x1_shape: Any, x2_shape: Any) -> None:
    if sizes(x1_shape) != sizes(x2_shape):
        raise ValueError(f"expected x2_shape to be {tuple(sizes(x1_shape))}, as x1_shape, got {tuple(sizes(x2_shape))}.")


def _joined(x1: tuple[T, T, T], x2: tuple[T, T, T], combine: Callable[[T, T], T]) -> tuple[T, T]:
    """Return the positions that either sparse Tensor has, and `combine` of the values there; a missing value counts as 0."""
    _require_equal_shapes(x1[2], x2[2])
    first, second = flat_indices(x1[0], x1[2], "x1_indices"), flat_indices(x2[0], x2[2], "x2_indices")
    flat, inverse = torch.unique(torch.cat([first, second]), return_inverse=True)
    count, start = flat.shape[0], first.shape[0]
    first_values, second_values = (
        torch.zeros(count, dtype=values.dtype, device=values.device).index_add(0, at, values.reshape(-1))
        for values, at in ((x1[1], inverse[:start]), (x2[1], inverse[start:]))
    )
    return indexes(flat, x1[2], x1[0].dtype), combine(first_values, second_values)


@op(primitive="SparseAdd")
def sparse_add_op(x1_indices: T, x1_values: T, x1_shape: T, x2_indices: T, x2_values: T, x2_shape: T, thresh: T) -> Any:
    """The sum of two sparse Tensors: indexes, values, shape. Sums with an absolute value below `thresh` are dropped."""
    at, total = _joined((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), torch.add)
    is_large = total.abs() >= thresh
    return at[is_large], total[is_large], x1_shape.clone()


@op(primitive="SparseSparseMaximum")
def _sparse_maximum(x1_indices: T, x1_values: T, x1_shape: T, x2_indices: T, x2_values: T, x2_shape: T) -> Any:
    """The larger value of two sparse Tensors at each position that either has; a missing value counts as 0."""
    return _joined((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), torch.maximum)


@op(primitive="SparseSparseMinimum")
def _sparse_minimum(x1_indices: T, x1_values: T, x1_shape: T, x2_indices: T, x2_values: T, x2_shape: T) -> Any:
    """The smaller value of two sparse Tensors at each position that either has; a missing value counts as 0."""
    return _joined((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), torch.minimum)


@op(primitive="SparseReorder")
def _sparse_reorder(indices: T, values: T, shape: T) -> Any:
    """Sort a sparse Tensor in row-major order: indexes, values."""
    order = torch.argsort(flat_indices(indices, shape), stable=True)
    return indices[order], values[order]


@op(primitive="SparseReshape")
def _sparse_reshape(indices: T, shape: T, new_shape: T) -> Any:
    """Reshape a sparse Tensor to `new_shape`, one number of which may be -1: indexes, shape."""
    old, new = sizes(shape), sizes(new_shape)
    total, product_of_specified = _product(old), _product([length for length in new if length != -1])
    if new.count(-1) == 1 and product_of_specified and total % product_of_specified == 0:
        new = [total // product_of_specified if length == -1 else length for length in new]
    if _product(new) != total or min(new, default=0) < 0:
        raise ValueError(f"expected a new_shape of {total} elements with at most one -1, got {tuple(sizes(new_shape))}.")
    return indexes(flat_indices(indices, old), new, indices.dtype), torch.tensor(new, dtype=shape.dtype, device=shape.device)


def _product(lengths: Sequence[int]) -> int:
    total = 1
    for length in lengths:
        total *= length
    return total


@op(primitive="SparseConcat", init=("concat_dim",))
def _sparse_concat(sp_input_indices: Any, sp_input_values: Any, sp_input_shapes: Any, concat_dim: int = 0) -> Any:
    """Concatenate sparse Tensors along `concat_dim`: indexes in row-major order, values, shape."""
    shapes = [sizes(shape) for shape in sp_input_shapes]
    if len({len(shape) for shape in shapes}) != 1 or not -len(shapes[0]) <= concat_dim < len(shapes[0]):
        raise ValueError(f"expected shapes of one rank that has an axis {concat_dim}, got {', '.join(str(tuple(s)) for s in shapes)}.")
    axis = concat_dim % len(shapes[0])
    if len({tuple(shape[:axis] + shape[axis + 1 :]) for shape in shapes}) != 1:
        raise ValueError(f"expected shapes that differ only along axis {axis}, got {', '.join(str(tuple(s)) for s in shapes)}.")
    total_shape, moved = list(shapes[0]), []
    total_shape[axis] = 0
    for indices, shape in zip(sp_input_indices, shapes):
        flat_indices(indices, shape)
        step = torch.zeros(len(shape), dtype=indices.dtype, device=indices.device)
        step[axis] = total_shape[axis]
        moved.append(indices + step)
        total_shape[axis] += shape[axis]
    at, values = torch.cat(moved), torch.cat(list(sp_input_values))
    order = torch.argsort(flat_indices(at, total_shape), stable=True)
    first = sp_input_shapes[0]
    return at[order], values[order], torch.tensor(total_shape, dtype=first.dtype, device=first.device)


@op(primitive="SparseSplit", init=("num_split",))
def _sparse_split(split_dim: Any, indices: T, values: T, shape: T, num_split: int = 1) -> Any:
    """Split a sparse Tensor into `num_split` parts along an axis; the first parts take the remainder: indexes, values, shapes."""
    lengths, axis = sizes(shape), int(split_dim)
    if not -len(lengths) <= axis < len(lengths) or not 1 <= num_split <= lengths[axis]:
        raise ValueError(f"expected an axis of {tuple(lengths)} as split_dim that has {num_split} parts, got {axis}.")
    flat_indices(indices, shape)
    axis, start, parts = axis % len(lengths), 0, []
    for part in range(num_split):
        length = lengths[axis] // num_split + (part < lengths[axis] % num_split)
        inside = (indices[:, axis] >= start) & (indices[:, axis] < start + length)
        step, part_shape = torch.zeros_like(shape), shape.clone()
        step[axis], part_shape[axis] = start, length
        parts.append((indices[inside] - step.to(indices.dtype), values[inside], part_shape))
        start += length
    return tuple(tuple(kind) for kind in zip(*parts))


@op(primitive="SparseSoftmax")
def _sparse_softmax(indices: T, values: T, shape: T) -> T:
    """The softmax over the values that share all indexes except the last: values."""
    row = torch.div(flat_indices(indices, shape), sizes(shape)[-1], rounding_mode="floor")
    _, inverse = torch.unique(row, return_inverse=True)
    count = int(inverse.max()) + 1 if inverse.numel() else 0
    most = torch.full((count,), -torch.inf, dtype=values.dtype, device=values.device).scatter_reduce(0, inverse, values, "amax")
    powers = torch.exp(values - most.detach()[inverse])
    return powers / torch.zeros(count, dtype=values.dtype, device=values.device).index_add(0, inverse, powers)[inverse]


@op(primitive="SparseToDenseV2", init=("validate_indices",))
def _sparse_to_dense_v2(indices: T, output_shape: Any, values: T, default_value: T, validate_indices: bool = True) -> T:
    """A dense Tensor of `output_shape`: `values` (one, or one for each index) at the indexes, `default_value` elsewhere.

    Raises ValueError for indexes outside the shape, and, if `validate_indices`, for indexes that are repeated or not in row-major order.
    """
    lengths = sizes(output_shape)
    at = flat_indices(indices, lengths)
    if validate_indices and bool((at[1:] <= at[:-1]).any()):
        raise ValueError("expected indices in row-major order, each once.\n\nhint: write SparseToDenseV2(validate_indices=False).")
    dense = default_value.reshape(-1)[:1].expand(_product(lengths)).clone()
    return dense.index_put((at,), values.reshape(-1).expand(at.shape)).reshape(lengths)


def _dense_values(x1_indices: T, x1_values: T, x1_shape: T, x2: T) -> T:
    """Return the values of a dense Tensor, broadcast to the sparse Tensor's shape, at the sparse Tensor's positions."""
    lengths = sizes(x1_shape)
    try:
        stretched = torch.broadcast_to(x2, lengths)
    except RuntimeError:
        raise ValueError(f"expected x2 of a shape that broadcasts to {tuple(lengths)}, got {tuple(x2.shape)}.") from None
    if x1_values.dtype != x2.dtype:
        raise TypeError(f"expected x2 of the dtype of x1_values, {FROM_TORCH[x1_values.dtype]}, got {FROM_TORCH[x2.dtype]}.")
    return stretched.reshape(-1)[flat_indices(x1_indices, lengths, "x1_indices")]


@op(primitive="SparseDenseCwiseAdd")
def _sparse_dense_add(x1_indices: T, x1_values: T, x1_shape: T, x2: T) -> T:
    """Add the values of a dense Tensor to those of a sparse one, at the positions of the latter."""
    return x1_values + _dense_values(x1_indices, x1_values, x1_shape, x2)


@op(primitive="SparseDenseCwiseMul")
def _sparse_dense_mul(x1_indices: T, x1_values: T, x1_shape: T, x2: T) -> T:
    """Multiply the values of a sparse Tensor by those of a dense one, at the positions of the former."""
    return x1_values * _dense_values(x1_indices, x1_values, x1_shape, x2)


@op(primitive="SparseDenseCwiseDiv")
def _sparse_dense_div(x1_indices: T, x1_values: T, x1_shape: T, x2: T) -> T:
    """Divide the values of a sparse Tensor by those of a dense one, at the positions of the former; integers round towards 0."""
    below = _dense_values(x1_indices, x1_values, x1_shape, x2)
    return torch.div(x1_values, below, rounding_mode=None if x1_values.is_floating_point() or x1_values.is_complex() else "trunc")


@op(primitive="SparseFillEmptyRows")
def _sparse_fill_empty_rows(indices: T, values: T, dense_shape: T, default_value: T) -> Any:
    """Put `default_value` at the beginning of each empty row of a sparse matrix.

    Return indexes in row-major order, values, which rows were empty (bool), and the new position of each value.
    """
    if len(sizes(dense_shape)) != 2:
        raise ValueError(f"expected the shape of a matrix as dense_shape, got {tuple(sizes(dense_shape))}.")
    flat_indices(indices, dense_shape)
    rows = sizes(dense_shape)[0]
    is_empty = torch.bincount(indices[:, 0].long(), minlength=rows) == 0
    added = torch.nonzero(is_empty).to(indices.dtype)
    at = torch.cat([indices, torch.cat([added, torch.zeros_like(added)], 1)])
    all_values = torch.cat([values, default_value.reshape(-1)[:1].to(values.dtype).expand(added.shape[0])])
    order = torch.argsort(at[:, 0], stable=True)
    went = torch.empty_like(order)
    went[order] = torch.arange(order.shape[0], device=order.device)
    return at[order], all_values[order], is_empty, went[: indices.shape[0]]


@op(primitive="SparseFillEmptyRowsGrad")
def _sparse_fill_empty_rows_grad(reverse_index_map: T, grad_values: T) -> Any:
    """The gradients of SparseFillEmptyRows for its values (through the map) and for its default (the sum of the others)."""
    at = as_index(reverse_index_map)
    value_gradients = grad_values[at]
    return value_gradients, grad_values.sum() - grad_values[torch.unique(at)].sum()


@op(primitive="SparseAddmm")
def _sparse_addmm(indices: T, values: T, sparse_shape: T, x2_dense: T, x3_dense: T, alpha: T, beta: T) -> T:
    """alpha * (sparse matrix @ x2_dense) + beta * x3_dense."""
    height, width = sizes(sparse_shape)
    flat_indices(indices, sparse_shape)
    if x2_dense.shape[0] != width or x3_dense.shape != (height, x2_dense.shape[-1]):
        raise ValueError(
            f"expected x2_dense of {width} rows and x3_dense of shape {(height, x2_dense.shape[-1])}, "
            f"got {tuple(x2_dense.shape)} and {tuple(x3_dense.shape)}."
        )
    rows, columns = as_index(indices).unbind(-1)
    product = torch.zeros_like(x3_dense).index_add(0, rows, values.unsqueeze(-1) * x2_dense.index_select(0, columns))
    return alpha.reshape(()) * product + beta.reshape(()) * x3_dense


@op(primitive="Sspaddmm")
def _sspaddmm(
    x1_indices: T, x1_values: T, x1_shape: T, x2_indices: T, x2_values: T, x2_shape: T, x3_dense: T, alpha: T, beta: T,
) -> Any:
    """beta * x1 + alpha * (x2 @ x3_dense) of sparse matrices whose indexes are (2, n): indexes, values, shape."""
    for name, indices in (("x1_indices", x1_indices), ("x2_indices", x2_indices)):
        if indices.ndim != 2 or indices.shape[0] != 2:
            raise ValueError(f"expected {name} of shape (2, n), got {tuple(indices.shape)}.")
    (height, width), (rows_of_x2, between) = sizes(x1_shape), sizes(x2_shape)
    if rows_of_x2 != height or x3_dense.shape != (between, width):
        got = f"{(rows_of_x2, between)} @ {tuple(x3_dense.shape)}"
        raise ValueError(f"expected the product of x2_shape and x3_dense to have the shape {(height, width)}, got {got}.")
    rows, columns = as_index(x2_indices)
    product = torch.zeros((height, width), dtype=x1_values.dtype, device=x1_values.device)
    product = product.index_add(0, rows, x2_values.unsqueeze(-1) * x3_dense.index_select(0, columns))
    at = torch.cartesian_prod(torch.unique(rows), torch.arange(width, device=rows.device))
    values = torch.cat([beta.reshape(()) * x1_values, alpha.reshape(()) * product[at[:, 0], at[:, 1]]])
    return torch.cat([x1_indices, at.T.to(x1_indices.dtype)], 1), values, x1_shape.clone()


@op(primitive="SparseCountSparseOutput", init=("binary_output", "minlength", "maxlength"))
def _sparse_count(
    indices: T, values: T, dense_shape: T, weights: T, binary_output: bool = False, minlength: int = -1, maxlength: int = -1,
) -> Any:
    """Count each value in each row of a sparse matrix, or sum its weights: indexes, counts, shape (rows, values).

    Values from `maxlength` on are not counted; the shape has at least `minlength` columns.
    """
    rows = torch.div(flat_indices(indices, dense_shape), sizes(dense_shape)[-1], rounding_mode="floor")
    if bool((values < 0).any()):
        raise ValueError("expected values that are not negative.")
    is_counted = values < maxlength if maxlength >= 0 else torch.ones_like(values, dtype=torch.bool)
    numbers = values[is_counted].long()
    columns = max(minlength, int(numbers.max()) + 1 if numbers.numel() else 0, maxlength if maxlength >= 0 else 0)
    shape = [_product(sizes(dense_shape)[:-1]), columns]
    cells, inverse = torch.unique(rows[is_counted] * max(columns, 1) + numbers, return_inverse=True)
    increments = weights[is_counted] if weights.numel() else torch.ones(numbers.shape[0], dtype=weights.dtype, device=weights.device)
    counts = torch.zeros(cells.shape[0], dtype=weights.dtype, device=weights.device).index_add(0, inverse, increments)
    at = indexes(cells, [shape[0], max(columns, 1)], indices.dtype)
    return at, torch.ones_like(counts) if binary_output else counts, torch.tensor(shape, dtype=dense_shape.dtype, device=dense_shape.device)
