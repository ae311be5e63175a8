"""Sparse values: rows of a table with their indexes, and elements with their coordinates."""
from __future__ import annotations

from typing import Any

from torchspore.engine import rows
from torchspore.engine.front import FRONT
from torchspore.engine.tensor import Composite, TensorBase, raw, wrap
from torchspore.mindspore.common.tensor import Tensor


class RowTensorInner(rows.RowsBase):
    """Rows of a larger value of which all others are zero, such as the gradient of a table: `values[i]` is added to row `indices[i]`.

    `indices` has shape (n,), `values` (n, ...), `shape` is that of the larger value. Raises TypeError for what is no Tensor.
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
        """Which rows, shape (n,); a row may come several times."""
        return self._indices

    @property
    def values(self) -> Any:
        """What the rows hold, shape (n, ...)."""
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
        """The same rows in another dtype."""
        return type(self)(self._indices, self.values.astype(dtype), self._shape)

    def __mul__(self, other: Any) -> RowTensorInner:
        return type(self)(self._indices, self.values * other, self._shape)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> RowTensorInner:
        return type(self)(self._indices, self.values / other, self._shape)

    def asnumpy(self) -> Any:
        """The larger value as an array."""
        return wrap(self._t).asnumpy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={list(self._shape)}, indices={self._indices!r}, values={self._values!r})"


class RowTensor(RowTensorInner):
    """The public name of RowTensorInner."""


class COOTensor(Composite):
    """Single elements of a larger value of which all others are zero: `values[i]` stands at the coordinates `indices[i]`.

    `indices` has shape (n, axes), `values` (n,), `shape` is that of the larger value.

    Raises TypeError and ValueError for what does not fit.
    """

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: Any = None) -> None:
        if coo_tensor is not None:
            if not isinstance(coo_tensor, COOTensor):
                raise TypeError(f"COOTensor(coo_tensor=...): expected a COOTensor, got {type(coo_tensor).__name__}.")
            indices, values, shape = coo_tensor.indices, coo_tensor.values, coo_tensor.shape
        if isinstance(indices, TensorBase) and isinstance(values, TensorBase):
            at, own = tuple(indices._t.shape), tuple(values._t.shape)
            if len(at) != 2 or len(own) != 1 or at[0] != own[0] or at[1] != len(shape):
                raise ValueError(
                    f"COOTensor(): expected indices of shape (n, {len(shape)}) and values of shape (n,), got {at} and {own}."
                )
        elif indices is None or values is None or shape is None:
            raise TypeError("COOTensor(): expected indices, values and shape.\n\nhint: write COOTensor(indices, values, (rows, columns)).")
        self._indices, self._values, self._shape = indices, values, tuple(shape)

    def parts(self) -> tuple[Any, ...]:
        """The Tensors that it is made of."""
        return self._indices, self._values

    def rebuilt(self, parts: tuple[Any, ...]) -> COOTensor:
        """The same of other Tensors."""
        return type(self)(*parts, self._shape)

    def fixed(self) -> tuple[int, ...]:
        """What a graph depends on beside the Tensors."""
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
        """How many elements are kept."""
        return int(self.values.size)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.values.itemsize)

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self._shape)

    @property
    def _t(self) -> Any:
        return rows.scattered(raw(self._indices), raw(self._values), self._shape)

    def to_dense(self) -> Tensor:
        """The larger value; elements at the same place are summed."""
        return wrap(self._t)  # type: ignore[no-any-return]

    def to_tuple(self) -> tuple[Any, Any, tuple[int, ...]]:
        """(indices, values, shape)."""
        return self._indices, self._values, self._shape

    def rows(self) -> RowTensorInner | None:
        """The same as rows, for a matrix; None for other shapes."""
        if len(self._shape) != 2:
            return None
        at, values = rows.of_elements(raw(self._indices), raw(self._values), self._shape[1])
        return RowTensorInner(wrap(at), wrap(values), self._shape)

    def astype(self, dtype: Any) -> COOTensor:
        """The same elements in another dtype."""
        return COOTensor(self._indices, self.values.astype(dtype), self._shape)

    def abs(self) -> COOTensor:
        """The absolute values."""
        return COOTensor(self._indices, self.values.abs(), self._shape)

    def __neg__(self) -> COOTensor:
        return COOTensor(self._indices, -self.values, self._shape)

    def asnumpy(self) -> Any:
        """The larger value as an array."""
        return wrap(self._t).asnumpy()

    def __repr__(self) -> str:
        return f"COOTensor(shape={list(self._shape)}, dtype={self.dtype}, indices={self._indices!r}, values={self._values!r})"


FRONT.row_gradient = RowTensorInner
