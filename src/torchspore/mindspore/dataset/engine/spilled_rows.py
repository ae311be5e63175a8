"""Rows on disk: the part of a `DatasetCache` that is beyond its size in memory, if `spilling` is True."""
from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.engine.rows import Row

StoredRow = tuple[tuple[int, np.dtype[Any], tuple[int, ...]], ...]
"""For each value of a row: its offset in the file, dtype and shape."""


class SpilledRows:
    """Rows in a temporary file without a name: its space is free again when the process ends, however it ends.

    `write` must not be called by two threads at once. A process that was forked from the owner reads rows but writes none.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="torchspore-cache-")      # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._owner = os.getpid()
        self._size = 0
        self.folder = tempfile.gettempdir()

    def write(self, row: Row) -> StoredRow | None:
        """Write a row; return where its values are.

        Return None for a row with values that are not arrays, and in a forked process. Raises OSError if the disk is full.
        """
        if self._owner != os.getpid() or not all(isinstance(value, np.ndarray) and not value.dtype.hasobject for value in row):
            return None
        values, end = [], self._size
        for value in row:
            _transfer(os.pwritev, self._file.fileno(), _bytes_of(value), end)
            values.append((end, value.dtype, value.shape))
            end += value.nbytes
        self._size = end
        return tuple(values)

    def read(self, stored: StoredRow) -> Row:
        """Return the arrays of a row. Raises OSError if the disk fails."""
        row = []
        for offset, dtype, shape in stored:
            value = np.empty(shape, dtype)
            _transfer(os.preadv, self._file.fileno(), _bytes_of(value), offset)
            row.append(value)
        return tuple(row)


def _bytes_of(value: np.ndarray) -> memoryview:
    """Return the bytes of an array; of a copy if the array is not contiguous."""
    return memoryview(np.ascontiguousarray(value).reshape(-1).view(np.uint8)) if value.size else memoryview(b"")


def _transfer(call: Any, descriptor: int, view: memoryview, offset: int) -> None:
    """Write or read all bytes of `view`; the system may transfer fewer at a time."""
    while view:
        count = call(descriptor, [view], offset)
        if not count:
            raise OSError("DatasetCache: the temporary file ends before the row does")
        view, offset = view[count:], offset + count
