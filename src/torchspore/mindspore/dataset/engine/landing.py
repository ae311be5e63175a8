"""Where the rows of a `map` land: in the arrays of their batches, as soon as they are made.

Joining large rows afterwards reads all of them again from memory, in one thread while the workers wait. So the thread that made a row
copies it to its place, once the rows before have shown its shape and dtype. What a batch is made of decides in the end: a batch whose
rows are not all in their places is joined as any other.
"""
from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

_LARGE = 16_384
"""Bytes of a value from which another copy costs more than this does."""


class Landing:
    """The arrays of the batches that one epoch's rows are on their way to; threads share it."""

    def __init__(self, size: int, seen: dict[Hashable, Any]) -> None:
        """`size` rows make a batch; `seen` has the shape and dtype of each column's rows so far, and is kept over epochs."""
        self._size, self._seen = size, seen
        self._arrays: dict[int, dict[Hashable, np.ndarray]] = {}
        self._lock = threading.Lock()

    def slot(self, column: Hashable, number: int) -> np.ndarray | None:
        """The place of row `number`, for who wants to make the row there; None while it is not known what rows look like."""
        kind = self._seen.get(column)
        return None if kind is None else self._slot(column, number, *kind)

    def _slot(self, column: Hashable, number: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        batch, place = divmod(number, self._size)
        with self._lock:
            arrays = self._arrays.setdefault(batch, {})
            array = arrays.get(column)
            if array is None:
                try:
                    array = arrays[column] = np.empty((self._size, *shape), dtype)
                except MemoryError:                # a size that only means "all rows": what there are of them is joined afterwards
                    return None
        return array[place] if array.shape[1:] == shape and array.dtype == dtype else None

    def place(self, column: Hashable, number: int, value: Any) -> Any:
        """The value of row `number`, in its batch's array where it fits there; the value itself where not."""
        if type(value) is not np.ndarray or value.nbytes < _LARGE:
            return value
        kind = (value.shape, value.dtype)
        if self._seen.get(column) != kind:
            self._seen[column] = kind
            return value
        landed = self._slot(column, number, *kind)
        if landed is None or _are_one(value, landed):
            return value
        landed[...] = value
        return landed

    def taken(self, batch: int, values: Sequence[Sequence[Any]]) -> list[np.ndarray | None]:
        """For each column of a batch, the array in which all of its rows have landed; None where they have not. Asked once."""
        with self._lock:
            arrays = list(self._arrays.pop(batch, {}).values())
        return [next((array for array in arrays if self._is_whole(array, column)), None) for column in values]

    def _is_whole(self, array: np.ndarray, column: Sequence[Any]) -> bool:
        if len(column) != self._size or getattr(column[0], "base", None) is not array:
            return False
        first, step = array.__array_interface__["data"][0], array.strides[0]
        return all(
            type(value) is np.ndarray and value.base is array and value.shape == array.shape[1:] and value.strides == array.strides[1:]
            and value.dtype == array.dtype and value.__array_interface__["data"][0] == first + place * step
            for place, value in enumerate(column)
        )


def _are_one(a: np.ndarray, b: np.ndarray) -> bool:
    return a.base is b.base and a.strides == b.strides and a.__array_interface__["data"] == b.__array_interface__["data"]
