"""Destination arrays of a `map`'s rows: the arrays of their batches.

Joining large rows afterwards reads all of them from memory a second time, in one thread while the workers wait. So the thread that made a
row copies it into the batch's array, once earlier rows have shown its shape and dtype. If any row of a batch is not in the array, the batch
is joined as usual.
"""
from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

_LARGE = 16_384
"""Minimum bytes of a value for which another copy costs more than this mechanism."""


class BatchArrays:
    """The arrays of the batches of one epoch's rows; threads share it."""

    def __init__(self, size: int, seen: dict[Hashable, Any]) -> None:
        """`size` rows make a batch; `seen` has the shape and dtype of each column's rows so far, and persists over epochs."""
        self._size, self._seen = size, seen
        self._arrays: dict[int, dict[Hashable, np.ndarray]] = {}
        self._lock = threading.Lock()

    def slot(self, column: Hashable, number: int) -> np.ndarray | None:
        """Return the array slice for row `number`, to create the row in it; None until the rows' shape and dtype are known."""
        kind = self._seen.get(column)
        return None if kind is None else self._slot(column, number, *kind)

    def _slot(self, column: Hashable, number: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        batch, offset = divmod(number, self._size)
        with self._lock:
            arrays = self._arrays.setdefault(batch, {})
            array = arrays.get(column)
            if array is None:
                try:
                    array = arrays[column] = np.empty((self._size, *shape), dtype)
                except MemoryError:                # a size that only means "all rows": the existing rows are joined afterwards
                    return None
        return array[offset] if array.shape[1:] == shape and array.dtype == dtype else None

    def put(self, column: Hashable, number: int, value: Any) -> Any:
        """Return the value of row `number`, in its batch's array if it fits there; otherwise the value itself."""
        if type(value) is not np.ndarray or value.nbytes < _LARGE:
            return value
        kind = (value.shape, value.dtype)
        if self._seen.get(column) != kind:
            self._seen[column] = kind
            return value
        slot = self._slot(column, number, *kind)
        if slot is None or _share_memory(value, slot):
            return value
        slot[...] = value
        return slot

    def taken(self, batch: int, values: Sequence[Sequence[Any]]) -> list[np.ndarray | None]:
        """Return, for each column of a batch, the array with all of its rows; None if rows are missing. Call it once."""
        with self._lock:
            arrays = list(self._arrays.pop(batch, {}).values())
        return [next((array for array in arrays if self._is_complete(array, column)), None) for column in values]

    def _is_complete(self, array: np.ndarray, column: Sequence[Any]) -> bool:
        if len(column) != self._size or getattr(column[0], "base", None) is not array:
            return False
        first, step = array.__array_interface__["data"][0], array.strides[0]
        return all(
            type(value) is np.ndarray and value.base is array and value.shape == array.shape[1:] and value.strides == array.strides[1:]
            and value.dtype == array.dtype and value.__array_interface__["data"][0] == first + index * step
            for index, value in enumerate(column)
        )


def _share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    return a.base is b.base and a.strides == b.strides and a.__array_interface__["data"] == b.__array_interface__["data"]
