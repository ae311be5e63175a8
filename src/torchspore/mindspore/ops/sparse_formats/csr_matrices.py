"""The primitives of MindSpore's `sparse_ops` on CSR matrices, one matrix or a batch, stored in five Tensors.

The Tensors are `dense_shape` ((2,) or (3,)); `batch_pointers` (batch + 1,), where each matrix begins among the values; `row_pointers`
(batch times (rows + 1)), where each row begins in its matrix; the columns (n,); and the values (n,).
"""
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.sparse_formats.coo_primitives import flat_indices

T = torch.Tensor


class Matrix(NamedTuple):
    """The five Tensors."""

    dense_shape: T
    batch_pointers: T
    row_pointers: T
    col_indices: T
    values: T

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Return the numbers of matrices, rows and columns. Raises ValueError for another rank."""
        dense_shape = sizes(self.dense_shape)
        if len(dense_shape) not in (2, 3):
            raise ValueError(f"expected a dense_shape of 2 or 3 numbers, got {tuple(dense_shape)}.")
        batch, rows, columns = (1, *dense_shape) if len(dense_shape) == 2 else dense_shape
        return batch, rows, columns

    def at(self) -> T:
        """Return the indexes (n, 3) of the values: matrix, row, column. Raises ValueError if the pointers do not fit the values."""
        batch, rows, columns = self.lengths
        starts = self.row_pointers.long().reshape(-1)
        if starts.shape[0] != batch * (rows + 1) or self.batch_pointers.numel() != batch + 1:
            raise ValueError(
                f"expected {batch + 1} batch_pointers and {batch * (rows + 1)} row_pointers for {batch} matrices of {rows} rows, "
                f"got {self.batch_pointers.numel()} and {starts.shape[0]}."
            )
        counts = starts.reshape(batch, rows + 1).diff(dim=1).reshape(-1)
        if bool((counts < 0).any()) or int(counts.sum()) != self.values.shape[0] or self.col_indices.shape != self.values.shape[:1]:
            raise ValueError(f"expected row_pointers that end at the number of values, {self.values.shape[0]}, and one column each.")
        row = torch.repeat_interleave(torch.arange(batch * rows, device=starts.device), counts)
        indexes = torch.stack([torch.div(row, max(rows, 1), rounding_mode="floor"), row % max(rows, 1), self.col_indices.long()], -1)
        flat_indices(indexes, (batch, rows, columns), "col_indices")
        return indexes

    def dense(self) -> T:
        """Return the matrices as a dense Tensor (batch, rows, columns)."""
        dense = torch.zeros(self.lengths, dtype=self.values.dtype, device=self.values.device)
        return dense.index_put(tuple(self.at().unbind(-1)), self.values)


def _in_rows(at: T, values: T, dense_shape: T) -> Matrix:
    """Convert a sparse Tensor with indexes (n, 2) or (n, 3) in row-major order to CSR matrices."""
    batch, rows, _ = (1, *sizes(dense_shape)) if at.shape[-1] == 2 else sizes(dense_shape)
    at = torch.nn.functional.pad(at.long(), (3 - at.shape[-1], 0))
    counts = torch.bincount(at[:, 0] * rows + at[:, 1], minlength=batch * rows).reshape(batch, rows)
    starts = torch.nn.functional.pad(counts.cumsum(1), (1, 0))
    pointers = torch.nn.functional.pad(counts.sum(1).cumsum(0), (1, 0))
    kind = dense_shape.dtype
    return Matrix(dense_shape, pointers.to(kind), starts.reshape(-1).to(kind), at[:, 2].to(kind), values)


def _sorted(at: T, values: T, dense_shape: T) -> Matrix:
    order = torch.argsort(flat_indices(at, dense_shape), stable=True)
    return _in_rows(at[order], values[order], dense_shape)


def _of_dense(dense: T, pattern: T, dense_shape: T) -> Matrix:
    """Return the values of (batch, rows, columns) where `pattern` is not 0, as CSR matrices."""
    at = torch.nonzero(pattern)
    return _in_rows(at if dense_shape.numel() == 3 else at[:, 1:], dense[tuple(at.unbind(-1))], dense_shape)


def _counted(matrix: Matrix) -> T:
    """Return how often each position of (batch, rows, columns) is stored in a matrix."""
    return Matrix(*matrix[:4], torch.ones_like(matrix.values, dtype=torch.float32)).dense()


@op(primitive="SparseTensorToCSRSparseMatrix")
def _coo_to_csr(x_indices: T, x_values: T, x_dense_shape: T) -> Any:
    """Convert a sparse Tensor of rank 2 or 3 to CSR matrices."""
    return tuple(_sorted(x_indices, x_values, x_dense_shape))


@op(primitive="DenseToCSRSparseMatrix")
def _dense_to_csr(dense_input: T, indices: T) -> Any:
    """Convert the values of a dense Tensor at `indices` (n, 2) or (n, 3) to CSR matrices."""
    shape = torch.tensor(dense_input.shape, dtype=indices.dtype, device=indices.device)
    at = flat_indices(indices, shape)
    return tuple(_sorted(indices, dense_input.reshape(-1)[at], shape))


@op(primitive="CSRSparseMatrixToDense")
def _csr_to_dense(x_dense_shape: T, x_batch_pointers: T, x_row_pointers: T, x_col_indices: T, x_values: T) -> T:
    """Convert CSR matrices to a dense Tensor."""
    return Matrix(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values).dense().reshape(sizes(x_dense_shape))


@op(primitive="CSRSparseMatrixToSparseTensor")
def _csr_to_coo(x_dense_shape: T, x_batch_pointers: T, x_row_pointers: T, x_col_indices: T, x_values: T) -> Any:
    """Convert CSR matrices to a sparse Tensor: indexes (n, 2) or (n, 3), values, shape."""
    at = Matrix(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values).at()
    return at[:, 3 - x_dense_shape.numel() :].to(x_dense_shape.dtype), x_values.clone(), x_dense_shape.clone()


@op(primitive="SparseMatrixNNZ")
def _csr_count(x_dense_shape: T, x_batch_pointers: T, x_row_pointers: T, x_col_indices: T, x_values: T) -> T:
    """Return the number of values of each matrix: int32, (batch,)."""
    matrix = Matrix(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values)
    return torch.bincount(matrix.at()[:, 0], minlength=matrix.lengths[0]).to(torch.int32)


@op(primitive="SparseMatrixAdd")
def _csr_add(
    x1_dense_shape: T, x1_batch_pointers: T, x1_row_pointers: T, x1_col_indices: T, x1_values: T, x2_dense_shape: T, x2_batch_pointers: T,
    x2_row_pointers: T, x2_col_indices: T, x2_values: T, alpha: T, beta: T,
) -> Any:
    """alpha * x1 + beta * x2, with a value at each position that either of them has."""
    first = Matrix(x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values)
    second = Matrix(x2_dense_shape, x2_batch_pointers, x2_row_pointers, x2_col_indices, x2_values)
    if first.lengths != second.lengths:
        raise RuntimeError(
            f"The inputs dense shape should be same, got {tuple(sizes(x1_dense_shape))} and {tuple(sizes(x2_dense_shape))}."
        )
    total = alpha.reshape(()) * first.dense() + beta.reshape(()) * second.dense()
    return tuple(_of_dense(total, _counted(first) + _counted(second), x1_dense_shape))


@op(
    primitive="SparseMatrixMatMul",
    init=("transpose_x1", "transpose_x2", "adjoint_x1", "adjoint_x2", "transpose_output", "conjugate_output"),
)
def _csr_matmul(
    x1_dense_shape: T, x1_batch_pointers: T, x1_row_pointers: T, x1_col_indices: T, x1_values: T, x2_dense: T, transpose_x1: bool = False,
    transpose_x2: bool = False, adjoint_x1: bool = False, adjoint_x2: bool = False, transpose_output: bool = False,
    conjugate_output: bool = False,
) -> T:
    """Multiply CSR matrices by dense ones, after the requested transpositions."""
    first = Matrix(x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values).dense()
    first, second = _turned(first, transpose_x1, adjoint_x1, "x1"), _turned(x2_dense, transpose_x2, adjoint_x2, "x2")
    if first.shape[-1] != second.shape[-2]:
        raise ValueError(f"expected x2_dense of {first.shape[-1]} rows, got shape {tuple(second.shape)}.")
    out = first.reshape(*first.shape[-x2_dense.ndim :]) @ second
    out = out.mT if transpose_output else out
    return (out.conj().resolve_conj() if conjugate_output else out).contiguous()


def _turned(x: T, transpose: bool, adjoint: bool, name: str) -> T:
    if transpose and adjoint:
        raise ValueError(f"transpose_{name}=True, adjoint_{name}=True: expected one of them False.")
    return x.mT if transpose else x.mH if adjoint else x


@op(primitive="SparseMatrixSparseMatMul", init=("transpose_a", "transpose_b", "adjoint_a", "adjoint_b"))
def _csr_sparse_matmul(
    x1_dense_shape: T, x1_batch_pointers: T, x1_row_pointers: T, x1_col_indices: T, x1_values: T, x2_dense_shape: T, x2_batch_pointers: T,
    x2_row_pointers: T, x2_col_indices: T, x2_values: T, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Any:
    """Multiply two batches of CSR matrices. The result has a value wherever a row and a column share a stored position."""
    first = Matrix(x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values)
    second = Matrix(x2_dense_shape, x2_batch_pointers, x2_row_pointers, x2_col_indices, x2_values)
    first_dense, second_dense = _turned(first.dense(), transpose_a, adjoint_a, "a"), _turned(second.dense(), transpose_b, adjoint_b, "b")
    if first_dense.shape[-1] != second_dense.shape[-2] or first_dense.shape[0] != second_dense.shape[0]:
        shapes = f"{tuple(first_dense.shape)} and {tuple(second_dense.shape)}"
        raise ValueError(f"expected matrices that can be multiplied, got shapes {shapes}.")
    met = _turned(_counted(first), transpose_a or adjoint_a, False, "a") @ _turned(_counted(second), transpose_b or adjoint_b, False, "b")
    shape = torch.tensor([*sizes(x1_dense_shape)[:-2], first_dense.shape[-2], second_dense.shape[-1]], dtype=x1_dense_shape.dtype)
    return tuple(_of_dense(first_dense @ second_dense, met, shape.to(x1_dense_shape.device)))


@op(primitive="SparseMatrixSoftmax", init=("dtype",))
def _csr_softmax(x_dense_shape: T, x_batch_pointers: T, x_row_pointers: T, x_col_indices: T, x_values: T, dtype: Any = None) -> Any:
    """The softmax over the values of `dtype` in each row."""
    if dtype is not None and FROM_TORCH[x_values.dtype] != dtype:
        raise TypeError(f"expected x_values of {dtype}, got {FROM_TORCH[x_values.dtype]}.")
    matrix = Matrix(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values)
    at = matrix.at()
    stored = torch.where(_counted(matrix) > 0, matrix.dense(), -torch.inf)
    return (*(part.clone() for part in matrix[:4]), torch.softmax(stored, -1)[tuple(at.unbind(-1))])


@op(primitive="SparseMatrixTranspose", init=("conjugate",))
def _csr_transpose(
    x_dense_shape: T, x_batch_pointers: T, x_row_pointers: T, x_col_indices: T, x_values: T, conjugate: bool = False,
) -> Any:
    """Transpose each matrix, and conjugate it if requested."""
    at = Matrix(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values).at()[:, 3 - x_dense_shape.numel() :]
    turned = torch.cat([at[:, :-2], at[:, -1:], at[:, -2:-1]], -1)
    shape = torch.cat([x_dense_shape[:-2], x_dense_shape[-1:], x_dense_shape[-2:-1]])
    return tuple(_sorted(turned, x_values.conj().resolve_conj() if conjugate else x_values, shape))
