"""`DatasetCache`: rows of a source or of a map, cached in this process, so that later epochs do not compute them again."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.spilled_rows import SpilledRows, StoredRow

_LARGEST = 2**32 - 1


@dataclass(frozen=True)
class CacheStatistics:
    """The average size of a row in bytes, and the numbers of rows cached in memory and on disk."""

    avg_cache_sz: int
    num_mem_cached: int
    num_disk_cached: int


class DatasetCache:
    """Caches the rows of the sources and maps that use it, up to `size` MiB in memory (0: all).

    With `spilling`, rows beyond `size` are written to a temporary file; without it, and if the disk is full, they are computed again.
    MindSpore caches rows in a separate server; here they are in this process and end with it. So `session_id` (an int from 1) only names
    the cache, and `hostname`, `port`, `num_connections` and `prefetch_size` have no effect. `explain` reports both. Raises TypeError and
    ValueError for arguments that MindSpore refuses.
    """

    def __init__(
        self, session_id: int, size: int = 0, spilling: bool = False, hostname: str | None = None, port: int | None = None,
        num_connections: int | None = None, prefetch_size: int | None = None,
    ) -> None:
        check_int("DatasetCache", "session_id", session_id, 1, _LARGEST)
        check_int("DatasetCache", "size", size, 0, _LARGEST)
        check_bool("DatasetCache", "spilling", spilling)
        if hostname is not None and not isinstance(hostname, str):
            raise TypeError(message(f"DatasetCache(hostname={short(hostname)})", f"a str, got {type(hostname).__name__}"))
        for name, value, minimum, maximum in (
            ("port", port, 1025, 65535), ("num_connections", num_connections, 1, _LARGEST), ("prefetch_size", prefetch_size, 1, _LARGEST),
        ):
            if value is not None:
                check_int("DatasetCache", name, value, minimum, maximum)
        effects.note("data", f"DatasetCache({session_id}): rows are cached in this process, without a server")
        self.session_id, self.size, self.spilling = session_id, size, spilling
        self._rows: dict[Hashable, Row] = {}
        self._stored: dict[Hashable, StoredRow] = {}
        self._spilled: SpilledRows | None = None
        self._can_spill = spilling
        self._bytes = self._bytes_on_disk = 0
        self._lock, self._process = threading.Lock(), os.getpid()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._rows or key in self._stored

    def get(self, key: Hashable) -> Row:
        """Return the row with this key, which is in the cache."""
        cached_row = self._rows.get(key)
        if cached_row is not None:
            return cached_row
        assert self._spilled is not None
        return self._spilled.read(self._stored[key])

    def put(self, key: Hashable, row: Row) -> None:
        """Store a copy of a row if it has room in memory, or else on disk if the cache may spill."""
        size = sum(_bytes(value) for value in row)
        if self._process != os.getpid():           # in a forked child the lock may be held by a thread that does not exist there
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            if key in self:
                return
            if not self.size or self._bytes + size <= self.size << 20:
                self._rows[key] = tuple(np.array(value) if isinstance(value, np.ndarray) else value for value in row)
                self._bytes += size
            elif self._can_spill:
                self._spill(key, row, size)

    def row(self, key: Hashable, read: Callable[[], Row]) -> Row:
        """Return the row with this key, from `read` if it is not cached."""
        if key in self:
            return self.get(key)
        row = read()
        self.put(key, row)
        return row

    def _spill(self, key: Hashable, row: Row, size: int) -> None:
        call = f"DatasetCache({self.session_id}, spilling=True)"
        try:
            if self._spilled is None:
                self._spilled = SpilledRows()
                effects.note("data", f"{call}: rows beyond {self.size} MiB are in a temporary file in {self._spilled.folder}")
            stored = self._spilled.write(row)
        except OSError as error:
            self._can_spill = False
            effects.note("data", f"{call}: the next rows are computed again in each epoch, because the disk refused one ({error})")
            return
        if stored is not None:
            self._stored[key] = stored
            self._bytes_on_disk += size

    def get_stat(self) -> CacheStatistics:
        """Returns the statistics of the cache."""
        with self._lock:
            in_memory, on_disk = len(self._rows), len(self._stored)
            average = (self._bytes + self._bytes_on_disk) // (in_memory + on_disk) if in_memory + on_disk else 0
            return CacheStatistics(average, in_memory, on_disk)

    def __deepcopy__(self, memory: dict[int, Any]) -> DatasetCache:
        return self  # pipelines that share a source share its cached rows


def _bytes(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return value.nbytes if isinstance(value, np.ndarray) else 64
