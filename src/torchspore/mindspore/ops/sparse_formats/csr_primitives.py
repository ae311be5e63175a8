"""The primitives of MindSpore's `_csr_ops` on the parts of a CSR matrix (`indptr`, `indices`, `values`, `dense_shape`)."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.common.sparse_tensor import CSRTensor
from torchspore.mindspore.ops.declaration.declare import explaining, op
from torchspore.mindspore.ops.sparse_formats import sparse_tensors


@op(primitive="CSR2COO", raw_arguments=True)
@explaining
def _csr2coo(indptr: Any, nnz: int) -> Any:
    """Return the row of each of `nnz` elements."""
    return sparse_tensors.csr2coo(indptr, nnz)


@op(primitive="COO2CSR", raw_arguments=True)
@explaining
def _coo2csr(row_indices: Any, height: int) -> Any:
    """Return where each of `height` rows begins among elements that are sorted by row."""
    return sparse_tensors.coo2csr(row_indices, height)


@op(primitive="CSRGather", raw_arguments=True)
@explaining
def _csr_gather(indptr: Any, indices: Any, dense: Any, dense_shape: Any) -> Any:
    """The elements of a dense Tensor at the stored positions of the matrix."""
    return sparse_tensors.csr_gather(indptr, indices, dense, dense_shape)


@op(primitive="CSRMul", raw_arguments=True)
@explaining
def _csr_mul(indptr: Any, indices: Any, values: Any, dense_shape: Any, dense_tensor: Any) -> Any:
    """The values of the matrix times a Tensor that broadcasts to its shape."""
    return sparse_tensors.csr_mul(CSRTensor(indptr, indices, values, dense_shape), dense_tensor).values


@op(primitive="CSRDiv", raw_arguments=True)
@explaining
def _csr_div(indptr: Any, indices: Any, values: Any, dense_shape: Any, dense_tensor: Any) -> Any:
    """The values of the matrix divided by a Tensor that broadcasts to its shape."""
    return sparse_tensors.csr_div(CSRTensor(indptr, indices, values, dense_shape), dense_tensor).values


@op(primitive="CSRMV", raw_arguments=True)
@explaining
def _csr_mv(indptr: Any, indices: Any, values: Any, dense_shape: Any, dense_tensor: Any) -> Any:
    """The product with a vector of shape (columns, 1)."""
    return sparse_tensors.csr_mv(CSRTensor(indptr, indices, values, dense_shape), dense_tensor)


@op(primitive="CSRMM", raw_arguments=True)
@explaining
def _csr_mm(indptr: Any, indices: Any, values: Any, dense_shape: Any, dense: Any) -> Any:
    """The product with a dense matrix."""
    return sparse_tensors.csr_mm(CSRTensor(indptr, indices, values, dense_shape), dense)


@op(primitive="CSRReduceSum", raw_arguments=True)
@explaining
def _csr_reduce_sum(indptr: Any, indices: Any, values: Any, dense_shape: Any, axis: int) -> Any:
    """The sums of the rows (axis 1): shape (rows, 1)."""
    return sparse_tensors.csr_reduce_sum(CSRTensor(indptr, indices, values, dense_shape), axis)
