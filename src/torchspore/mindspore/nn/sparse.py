"""Sparse matrices as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, with_type
from torchspore.mindspore.common.sparse_tensor import COOTensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.layers import layer_math


class SparseToDense(Cell):
    """Converts a COOTensor to a dense Tensor. Raises TypeError for other values."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, sparse_tensor: Any) -> Any:
        """The dense Tensor."""
        if not isinstance(sparse_tensor, COOTensor):
            raise TypeError(f"SparseToDense: expected a COOTensor, got {type(sparse_tensor).__name__}.")
        return sparse_tensor.to_dense()


class SparseTensorDenseMatmul(Cell):
    """The product of a sparse matrix, as indexes (count, 2), values (count,) and shape, and a dense one.

    `adjoint_st` and `adjoint_dt` conjugate-transpose the first and the second.
    """

    def __init__(self, adjoint_st: bool = False, adjoint_dt: bool = False) -> None:
        super().__init__()
        for name, value in (("adjoint_st", adjoint_st), ("adjoint_dt", adjoint_dt)):
            if not isinstance(value, bool):
                raise TypeError(message(f"SparseTensorDenseMatmul({name}={value!r:.40})", with_type("a bool", value)))
        self.adjoint_st, self.adjoint_dt = adjoint_st, adjoint_dt

    def construct(self, indices: Any, values: Any, sparse_shape: Any, dense: Any) -> Any:
        """The product."""
        return layer_math._sparse_times_dense(indices, values, tuple(sparse_shape), dense, self.adjoint_st, self.adjoint_dt)


__all__ = ["SparseTensorDenseMatmul", "SparseToDense"]
