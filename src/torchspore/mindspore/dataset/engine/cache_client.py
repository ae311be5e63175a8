"""`DatasetCache`: rows of a source that are kept in this process, so that later epochs do not read them again."""
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
    """Bytes of an average row, and how many rows are kept in memory and on the disk."""

    avg_cache_sz: int
    num_mem_cached: int
    num_disk_cached: int


class DatasetCache:
    """Keeps the rows of the sources that it is given to, up to `size` MiB of them (0: all).

    MindSpore keeps them in a server of its own; here they are in this process and end with it, so that `session_id` (an int from 1) only
    names the cache, `hostname`, `port`, `num_connections` and `prefetch_size` reach nothing, and with `spilling` rows beyond `size` are
    read again instead of written to a disk; `explain` says so. Raises TypeError and ValueError for what MindSpore does not take.
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
        for name, value, least, most in (
            ("port", port, 1025, 65535), ("num_connections", num_connections, 1, _LARGEST), ("prefetch_size", prefetch_size, 1, _LARGEST),
        ):
            if value is not None:
                check_int("DatasetCache", name, value, least, most)
        effects.note("data", f"DatasetCache({session_id}): rows are kept in this process; no server is asked")
        if spilling:
            effects.note("data", f"DatasetCache({session_id}, spilling=True): rows beyond {size} MiB are read again, not spilled")
        self.session_id, self.size, self.spilling = session_id, size, spilling
        self._rows: dict[Hashable, Row] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def row(self, key: Hashable, read: Callable[[], Row]) -> Row:
        """The row with this key, which `read` gives where it is not kept."""
        kept = self._rows.get(key)
        if kept is not None:
            return kept
        row = read()
        taken = sum(_bytes(value) for value in row)
        with self._lock:
            if key not in self._rows and (not self.size or self._bytes + taken <= self.size << 20):
                self._rows[key] = row
                self._bytes += taken
        return row

    def get_stat(self) -> CacheStatistics:
        """What is kept."""
        with self._lock:
            count = len(self._rows)
            return CacheStatistics(self._bytes // count if count else 0, count, 0)

    def __deepcopy__(self, memory: dict[int, Any]) -> DatasetCache:
        return self  # pipelines made from one source share what it read


def _bytes(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return value.nbytes if isinstance(value, np.ndarray) else 64
