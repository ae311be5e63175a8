"""Sparse values: rows of a table with their indexes, and elements with their coordinates."""
from __future__ import annotations

from typing import Any

from torchspore.engine.autograd.integer_gradients import without_gradient
from torchspore.engine.formulas import row_gradients
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.tensor import Composite, TensorBase, raw, wrap
from torchspore.mindspore.common.tensor import Tensor


class RowTensorInner(row_gradients.RowsBase):
    """Rows of a larger value that is zero elsewhere, such as the gradient of a table: `values[i]` is added to row `indices[i]`.

    `indices` has shape (n,), `values` (n, ...), `shape` is that of the larger value. Raises TypeError for a value that is not a Tensor.
    """

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: Any = None) -> None:
        if row_tensor is not None:
            if not isinstance(row_tensor, RowTensorInner):
                raise TypeError(f"RowTensor(row_tensor=...): expected a RowTensor, got {type(row_tensor).__name__}.")
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.dense_shape
        if indices is None or values is None or shape is None:
            raise TypeError("RowTensor(): expected indices, values and shape.\n\nhint: write RowTensor(indices, values, (rows, columns)).")
        super().__init__(indices, values, tuple(shape))

    @property
    def indices(self) -> Any:
        """The row indexes, shape (n,); a row may repeat."""
        return self._indices

    @property
    def values(self) -> Any:
        """The values of the rows, shape (n, ...)."""
        return self._values

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The shape of the larger value."""
        return self._shape

    shape = dense_shape

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._values.dtype  # type: ignore[attr-defined]

    def astype(self, dtype: Any) -> RowTensorInner:
        """Return the same rows in another dtype."""
        return type(self)(self._indices, self.values.astype(dtype), self._shape)

    def __mul__(self, other: Any) -> RowTensorInner:
        return type(self)(self._indices, self.values * other, self._shape)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> RowTensorInner:
        return type(self)(self._indices, self.values / other, self._shape)

    def asnumpy(self) -> Any:
        """Return the larger value as an array."""
        return wrap(self._t).asnumpy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={list(self._shape)}, indices={self._indices!r}, values={self._values!r})"


class RowTensor(RowTensorInner):
    """The public name of RowTensorInner."""


class COOTensor(Composite):
    """Single elements of a larger value that is zero elsewhere: `values[i]` is at the coordinates `indices[i]`.

    `indices` has shape (n, axes), `values` (n,), `shape` is that of the larger value.

    Raises TypeError and ValueError for arguments that do not fit.
    """

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: Any = None) -> None:
        if coo_tensor is not None:
            if not isinstance(coo_tensor, COOTensor):
                raise TypeError(f"COOTensor(coo_tensor=...): expected a COOTensor, got {type(coo_tensor).__name__}.")
            indices, values, shape = coo_tensor.indices, coo_tensor.values, coo_tensor.shape
        if isinstance(indices, TensorBase) and isinstance(values, TensorBase):
            at, values_shape = tuple(indices._t.shape), tuple(values._t.shape)
            if len(at) != 2 or len(values_shape) != 1 or at[0] != values_shape[0] or at[1] != len(shape):
                raise ValueError(
                    f"COOTensor(): expected indices of shape (n, {len(shape)}) and values of shape (n,), got {at} and {values_shape}."
                )
        elif indices is None or values is None or shape is None:
            raise TypeError("COOTensor(): expected indices, values and shape.\n\nhint: write COOTensor(indices, values, (rows, columns)).")
        self._indices, self._values, self._shape = without_gradient(indices), values, tuple(shape)

    def parts(self) -> tuple[Any, ...]:
        """The Tensors that it consists of."""
        return self._indices, self._values

    def rebuilt(self, parts: tuple[Any, ...]) -> COOTensor:
        """Return a copy with other Tensors."""
        return type(self)(*parts, self._shape)

    def fixed(self) -> tuple[int, ...]:
        """The data other than Tensors on which a graph depends."""
        return self._shape

    @property
    def indices(self) -> Any:
        """The coordinates, shape (n, axes)."""
        return self._indices

    @property
    def values(self) -> Any:
        """The elements, shape (n,)."""
        return self._values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the larger value."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """The number of stored elements."""
        return int(self.values.size)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.values.itemsize)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    def to_dense(self) -> Tensor:
        """Return the larger value; elements with equal coordinates are summed."""
        return wrap(row_gradients.scattered(raw(self._indices), raw(self._values), self._shape))  # type: ignore[no-any-return]

    def to_tuple(self) -> tuple[Any, Any, tuple[int, ...]]:
        """(indices, values, shape)."""
        return self._indices, self._values, self._shape

    def rows(self) -> RowTensorInner | None:
        """Return the rows of a matrix as a RowTensor, or None for other shapes."""
        if len(self._shape) != 2:
            return None
        at, values = row_gradients.of_elements(raw(self._indices), raw(self._values), self._shape[1])
        return RowTensorInner(wrap(at), wrap(values), self._shape)

    def astype(self, dtype: Any) -> COOTensor:
        """Return the same elements in another dtype."""
        return COOTensor(self._indices, self.values.astype(dtype), self._shape)

    def abs(self) -> COOTensor:
        """The absolute values."""
        return COOTensor(self._indices, self.values.abs(), self._shape)

    def __neg__(self) -> COOTensor:
        return COOTensor(self._indices, -self.values, self._shape)

    def to_csr(self) -> CSRTensor:
        """Return the same matrix as a CSRTensor, sorted. Raises ValueError for other shapes."""
        return FRONT.sparse_operators.coo_to_csr(self)

    def coalesce(self) -> COOTensor:
        """Sum elements with equal coordinates, and sort them."""
        return FRONT.sparse_operators.coo_coalesced(self)

    def add(self, other: COOTensor, thresh: Any) -> COOTensor:
        """Return the sum, without elements with an absolute value below `thresh`."""
        return FRONT.sparse_operators.coo_add(self, other, thresh)

    def __add__(self, other: Any) -> Any:
        return FRONT.sparse_operators.coo_plus(self, other)

    def __sub__(self, other: Any) -> Any:
        return FRONT.sparse_operators.coo_plus(self, -other)

    def __mul__(self, other: Any) -> COOTensor:
        return COOTensor(self._indices, self.values * FRONT.sparse_operators.at_stored_positions(other, self), self._shape)

    def __truediv__(self, other: Any) -> COOTensor:
        return COOTensor(self._indices, self.values / FRONT.sparse_operators.at_stored_positions(other, self), self._shape)

    def asnumpy(self) -> Any:
        """Return the larger value as an array."""
        return self.to_dense().asnumpy()

    def __repr__(self) -> str:
        return f"COOTensor(shape={list(self._shape)}, dtype={self.dtype}, indices={self._indices!r}, values={self._values!r})"


class CSRTensor(Composite):
    """A sparse matrix in CSR form: row i has `values[indptr[i]:indptr[i + 1]]` in the columns `indices` at these positions.

    `indptr` has shape (rows + 1,), `indices` (n,), `values` (n, ...), `shape` is that of the larger value.

    Raises TypeError and ValueError for arguments that do not fit.
    """

    def __init__(self, indptr: Any = None, indices: Any = None, values: Any = None, shape: Any = None, csr_tensor: Any = None) -> None:
        if csr_tensor is not None:
            if not isinstance(csr_tensor, CSRTensor):
                raise TypeError(f"CSRTensor(csr_tensor=...): expected a CSRTensor, got {type(csr_tensor).__name__}.")
            indptr, indices, values, shape = csr_tensor.to_tuple()
        parts = (indptr, indices, values)
        if any(part is None for part in parts) or shape is None:
            raise TypeError(
                "CSRTensor(): expected indptr, indices, values and shape."
                "\n\nhint: write CSRTensor(indptr, indices, values, (rows, columns))."
            )
        if all(isinstance(part, TensorBase) for part in parts):
            starts, columns, values_shape = (tuple(part._t.shape) for part in parts)
            if len(starts) != 1 or len(columns) != 1 or values_shape[:1] != columns or starts[0] != shape[0] + 1:
                raise ValueError(
                    f"CSRTensor(): expected indptr of shape ({shape[0] + 1},) and as many values as indices, "
                    f"got shapes {starts}, {columns} and {values_shape}."
                )
        self._indptr, self._indices = without_gradient(indptr), without_gradient(indices)
        self._values, self._shape = values, tuple(shape)

    def parts(self) -> tuple[Any, ...]:
        """The Tensors that it consists of."""
        return self._indptr, self._indices, self._values

    def rebuilt(self, parts: tuple[Any, ...]) -> CSRTensor:
        """Return a copy with other Tensors."""
        return type(self)(*parts, self._shape)

    def fixed(self) -> tuple[int, ...]:
        """The data other than Tensors on which a graph depends."""
        return self._shape

    @property
    def indptr(self) -> Any:
        """Where each row begins, and where the last one ends: shape (rows + 1,)."""
        return self._indptr

    @property
    def indices(self) -> Any:
        """The columns, shape (n,)."""
        return self._indices

    @property
    def values(self) -> Any:
        """The elements, shape (n, ...)."""
        return self._values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the larger value."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """The number of stored elements."""
        return int(self.values.size)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.values.itemsize)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    def to_dense(self) -> Tensor:
        """Return the larger value."""
        return FRONT.sparse_operators.csr_to_dense(self)  # type: ignore[no-any-return]

    def to_coo(self) -> COOTensor:
        """Return the same elements with their coordinates."""
        return FRONT.sparse_operators.csr_to_coo(self)  # type: ignore[no-any-return]

    def to_tuple(self) -> tuple[Any, Any, Any, tuple[int, ...]]:
        """(indptr, indices, values, shape)."""
        return self._indptr, self._indices, self._values, self._shape

    def astype(self, dtype: Any) -> CSRTensor:
        """Return the same elements in another dtype."""
        return self.with_values(self.values.astype(dtype))

    def with_values(self, values: Any) -> CSRTensor:
        """Return a matrix with the same positions and other values."""
        return CSRTensor(self._indptr, self._indices, values, self._shape)

    def abs(self) -> CSRTensor:
        """The absolute values."""
        return self.with_values(self.values.abs())

    def mv(self, dense_vector: Any) -> Tensor:
        """The product with a vector of shape (columns, 1): shape (rows, 1)."""
        return FRONT.sparse_operators.csr_mv(self, dense_vector)  # type: ignore[no-any-return]

    def mm(self, matrix: Any) -> Any:
        """The product with a matrix, or with another CSRTensor, whose product is a CSRTensor."""
        return FRONT.sparse_operators.csr_mm(self, matrix)

    def sum(self, axis: int) -> Tensor:
        """The sums of the rows (axis 1): shape (rows, 1)."""
        return FRONT.sparse_operators.csr_reduce_sum(self, axis)  # type: ignore[no-any-return]

    def add(self, b: CSRTensor, alpha: Any, beta: Any) -> CSRTensor:
        """alpha * self + beta * b."""
        return FRONT.sparse_operators.csr_add(self, b, alpha, beta)  # type: ignore[no-any-return]

    def __neg__(self) -> CSRTensor:
        return self.with_values(-self.values)

    def __add__(self, other: Any) -> CSRTensor:
        return FRONT.sparse_operators.csr_plus(self, other)  # type: ignore[no-any-return]

    def __sub__(self, other: Any) -> CSRTensor:
        return FRONT.sparse_operators.csr_plus(self, -other)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> CSRTensor:
        return FRONT.sparse_operators.csr_mul(self, other)  # type: ignore[no-any-return]

    def __truediv__(self, other: Any) -> CSRTensor:
        return FRONT.sparse_operators.csr_div(self, other)  # type: ignore[no-any-return]

    def asnumpy(self) -> Any:
        """Return the larger value as an array."""
        return self.to_dense().asnumpy()

    def __repr__(self) -> str:
        return (
            f"CSRTensor(shape={list(self._shape)}, dtype={self.dtype}, indptr={self._indptr!r}, indices={self._indices!r}, "
            f"values={self._values!r})"
        )


FRONT.row_gradient = RowTensorInner
