"""The recently used rows of a table on a worker.

Servers apply every update, so a cached row is never newer than the server's: nothing is written back. A row is valid until any worker
pushes a gradient for it. The least recently used rows make room for new ones.
"""
from __future__ import annotations

from collections.abc import Callable

import torch

from torchspore.base.text import message


class RowCache:
    """`size` rows of a table of `rows` rows of shape `shape`; `size` 0 stores the rows of one lookup only, however many.

    `is_cleared_by_steps`: an update changes all rows of the table, so that the cache is empty after each step.
    """

    def __init__(
        self, name: str, rows: int, shape: tuple[int, ...], dtype: torch.dtype, size: int, is_cleared_by_steps: bool = False,
    ) -> None:
        self._name, self._size, self._shape, self.row_count = name, size, shape, rows
        self._is_cleared_by_steps = is_cleared_by_steps
        self._slot_plus_1 = torch.zeros(rows, dtype=torch.int32)
        """By row 1 + the slot that contains it; 0 for none, because the system gives zeros memory only where they are written."""
        capacity = size or 1024
        self._values = torch.empty((capacity, *shape), dtype=dtype)
        self._row = torch.full((capacity,), -1, dtype=torch.int64)
        self._used = torch.zeros(capacity, dtype=torch.int64)
        self._clock = 0
        self.generation = 0
        """The number of times that all rows were forgotten."""
        self.hits = self.misses = 0

    def lookup(self, ids: torch.Tensor, fetch: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Return the rows at `ids` (n,) int64; `fetch` returns the values of the rows that are not cached, (m,) sorted and different.

        Raises ValueError if the lookup needs more different rows than the cache has.
        """
        different, position = torch.unique(ids, return_inverse=True)
        if self._size and len(different) > self._size:
            raise ValueError(message(
                f"{self._name}: a batch with {len(different)} different rows and vocab_cache_size={self._size}",
                f"vocab_cache_size of at least {len(different)}",
            ))
        self._clock += 1
        absent, fetched = self._absent(different), 0
        while len(absent):
            generation = self.generation
            values = fetch(absent)
            fetched += len(absent)
            if generation == self.generation:
                self._store(absent, values)
            absent = self._absent(different)               # all rows, if a server was lost during the fetch and the cache was emptied
        self.hits, self.misses = self.hits + max(0, len(different) - fetched), self.misses + fetched
        return self._values[self._slots(different)][position]

    def absent_after_step(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows (n,) that a lookup after the next step has to fetch, provided that nothing else changes the cache."""
        return rows if self._is_cleared_by_steps else rows[self._slot_plus_1[rows] == 0]

    def clear_after_step(self) -> None:
        """Forget all rows if a step changes them."""
        if self._is_cleared_by_steps:
            self.clear()

    def _slots(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the slots of rows; -1 for rows that are not cached."""
        return self._slot_plus_1[rows].long() - 1

    def _absent(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows that are not cached; mark the others as used."""
        slots = self._slots(rows)
        is_absent = slots < 0
        self._used[slots[~is_absent]] = self._clock
        return rows[is_absent]

    def _store(self, rows: torch.Tensor, values: torch.Tensor) -> None:
        slots = self._free_slots(len(rows))
        evicted = self._row[slots]
        self._slot_plus_1[evicted[evicted >= 0]] = 0
        self._row[slots], self._used[slots], self._values[slots] = rows, self._clock, values
        self._slot_plus_1[rows] = slots.to(torch.int32) + 1

    def _free_slots(self, count: int) -> torch.Tensor:
        """Return the slots of the least recently used rows; empty slots first. Those of this lookup are never among them."""
        order = torch.where(self._row < 0, torch.full_like(self._used, -1), self._used)
        usable = int((order < self._clock).sum())
        if usable < count and not self._size:
            self._grow(count - usable)
            return self._free_slots(count)
        return torch.topk(order, count, largest=False, sorted=False).indices

    def _grow(self, count: int) -> None:
        extra = max(count, len(self._row))
        self._values = torch.cat([self._values, self._values.new_empty((extra, *self._shape))])
        self._row = torch.cat([self._row, torch.full((extra,), -1, dtype=torch.int64)])
        self._used = torch.cat([self._used, torch.zeros(extra, dtype=torch.int64)])

    def invalidate(self, rows: torch.Tensor) -> None:
        """Forget these rows, whose values changed on the servers."""
        slots = self._slots(rows)
        slots = slots[slots >= 0]
        self._slot_plus_1[self._row[slots]] = 0
        self._row[slots] = -1

    def update(self, rows: torch.Tensor, values: torch.Tensor) -> None:
        """Replace the values of these rows where they are cached."""
        slots = self._slots(rows)
        is_cached = slots >= 0
        self._values[slots[is_cached]] = values[is_cached]

    def clear(self) -> None:
        """Forget all rows."""
        self.generation += 1
        self._slot_plus_1[self._row[self._row >= 0]] = 0
        self._row.fill_(-1)
