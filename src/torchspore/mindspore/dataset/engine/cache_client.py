"""`DatasetCache`: rows of a source, cached in this process, so that later epochs do not read them again."""
from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int
from torchspore.mindspore.dataset.engine.rows import Row

_LARGEST = 2**32 - 1


@dataclass(frozen=True)
class CacheStatistics:
    """The average size of a row in bytes, and the numbers of rows cached in memory and on disk."""

    avg_cache_sz: int
    num_mem_cached: int
    num_disk_cached: int


class DatasetCache:
    """Caches the rows of the sources that use it, up to `size` MiB (0: all).

    MindSpore caches them in a separate server; here they are in this process and end with it. So `session_id` (an int from 1) only names
    the cache, and `hostname`, `port`, `num_connections` and `prefetch_size` have no effect. With `spilling`, rows beyond `size` are read
    again instead of written to disk; `explain` reports it. Raises TypeError and ValueError for arguments that MindSpore refuses.
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
        if spilling:
            effects.note("data", f"DatasetCache({session_id}, spilling=True): rows beyond {size} MiB are read again, not spilled")
        self.session_id, self.size, self.spilling = session_id, size, spilling
        self._rows: dict[Hashable, Row] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def row(self, key: Hashable, read: Callable[[], Row]) -> Row:
        """Return the row with this key, from `read` if it is not cached."""
        cached_row = self._rows.get(key)
        if cached_row is not None:
            return cached_row
        row = read()
        taken = sum(_bytes(value) for value in row)
        with self._lock:
            if key not in self._rows and (not self.size or self._bytes + taken <= self.size << 20):
                self._rows[key] = row
                self._bytes += taken
        return row

    def get_stat(self) -> CacheStatistics:
        """Returns the statistics of the cache."""
        with self._lock:
            count = len(self._rows)
            return CacheStatistics(self._bytes // count if count else 0, count, 0)

    def __deepcopy__(self, memory: dict[int, Any]) -> DatasetCache:
        return self  # pipelines that share a source share its cached rows


def _bytes(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return value.nbytes if isinstance(value, np.ndarray) else 64
