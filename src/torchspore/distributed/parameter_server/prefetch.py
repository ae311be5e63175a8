"""Requests the rows of the next batch from the servers while they apply a step.

A lookup that reads row numbers from a column of the data pipeline is recognized by their values. When the gradients of a step are sent, the
row numbers of the same column in the next row of the pipeline are requested too, if that row is in memory. A server answers after it has
applied the step, so the values are those that the next lookup would fetch. The requests are hints: if the next lookup needs other rows, or
a server is lost, the lookup fetches them itself.
"""
from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchspore.distributed.parameter_server.messages import MalformedMessage
from torchspore.distributed.parameter_server.row_cache import RowCache
from torchspore.distributed.parameter_server.transport import CallRefused, ConnectionLost
from torchspore.errors import CommunicationError

Key = tuple[str, int]
"""A plan and the index of a table."""
Row = tuple[Any, ...]
Rows = dict[int, torch.Tensor]
"""By the index of a table row numbers (n,) int64, sorted and different."""
Values = dict[int, list[torch.Tensor]]
"""By the index of a table the values of rows, a part for each server that stores some of them."""


@dataclass
class _Requested:
    """Rows of a plan's tables, and the servers' answers."""

    rows: Rows
    answers: list[Future[Values]]
    generations: dict[int, int] | None = None
    """The generations of the row caches after the step; values are valid while the cache of their table has the same one."""


class Prefetcher:
    """The requests of a worker. `caches` are the row caches of its tables; `request` requests rows of a plan after a step from the servers.
    """

    def __init__(self, caches: dict[Key, RowCache], request: Callable[[str, Rows, int], list[Future[Values]]]) -> None:
        self._caches, self._request = caches, request
        self._row: Row = ()
        self._peek: Callable[[], Row | None] | None = None
        self._columns: dict[Key, int] = {}
        """By table the column of the present row that its last lookup read; absent if the lookup read other numbers."""
        self._requested: dict[str, _Requested] = {}
        self.count = 0
        """The number of rows that lookups took from requests."""

    def receive_row(self, row: Row, peek: Callable[[], Row | None]) -> None:
        """Take the row that the data pipeline gives to the program; `peek` returns the next row if it is in memory."""
        self._row, self._peek = row, peek

    def record_lookup(self, key: Key, ids: torch.Tensor) -> None:
        """Record which column of the present row a lookup of `ids` (n,) int64 read."""
        last = self._columns.pop(key, 0)
        order = sorted(range(len(self._row)), key=lambda column: column != last)
        matching = next((column for column in order if _has_numbers(self._row[column], ids)), None)
        if matching is not None:
            self._columns[key] = matching

    def start(self, plan: str, step: int) -> None:
        """Request the rows that the next batch needs of a plan's tables, with their values after `step`."""
        columns = {key: column for key, column in self._columns.items() if key[0] == plan}
        next_row = self._peek() if self._peek is not None and columns else None
        if next_row is None:
            return
        rows = {
            key[1]: numbers for key, column in columns.items()
            if column < len(next_row) and _has_integers(next_row[column]) and len(numbers := self._absent_rows(key, next_row[column]))
        }
        if rows:
            self._requested[plan] = _Requested(rows, self._request(plan, rows, step))

    def _absent_rows(self, key: Key, column: np.ndarray[Any, Any]) -> torch.Tensor:
        """Return the rows in a column of the data pipeline that the table's cache will not have after the step."""
        cache = self._caches[key]
        ids = torch.unique(torch.from_numpy(column.astype(np.int64, copy=False)))
        return cache.absent_after_step(ids[(ids >= 0) & (ids < cache.row_count)])

    def finish_step(self, plan: str) -> None:
        """Record that the step is applied: from now on, the requested values are those on the servers."""
        requested = self._requested.get(plan)
        if requested is not None:
            requested.generations = {index: self._caches[plan, index].generation for index in requested.rows}

    def take(self, key: Key, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return which of `rows` (n,) were requested, as bools, and the values of these rows; None if none are valid."""
        requested = self._requested.get(key[0])
        if requested is None or key[1] not in requested.rows:
            return None
        numbers = requested.rows.pop(key[1])
        try:
            values = torch.cat([part for answer in requested.answers for part in answer.result().pop(key[1], [])])
        except (ConnectionLost, CallRefused, MalformedMessage, CommunicationError):
            return None
        if len(values) != len(numbers) or (requested.generations or {}).get(key[1]) != self._caches[key].generation:
            return None
        position = torch.searchsorted(numbers, rows).clamp(max=len(numbers) - 1)
        is_requested = numbers[position] == rows
        self.count += int(is_requested.sum())
        return is_requested, values[position[is_requested]]

    def drop(self, plan: str) -> None:
        """Forget the requests of a plan: the next step changes the values."""
        self._requested.pop(plan, None)


def _has_numbers(column: Any, ids: torch.Tensor) -> bool:
    """Return whether a column of the data pipeline's row has the numbers `ids`, in any shape."""
    return _has_integers(column) and column.size == ids.numel() and np.array_equal(column.reshape(-1), ids.numpy())


def _has_integers(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iu"
