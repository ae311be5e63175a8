"""Work on rows shared between workers, as long as that pays.

Handing a row to a thread and back costs more than a light row; and a thread that holds Python's lock helps nobody. So the first rows are
worked on here and timed, the next ones by the workers, who time them too: where theirs take as much longer as there are workers, nothing
is gained, and the rest is done here. The rows and their order are the same.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from torchspore.mindspore.dataset.engine.workers import Workers, ordered_map

_TRIED_ROWS = 8
_LIGHT = 60e-6
"""Seconds a row. About what it costs to hand one to a thread and back."""
_CHUNK_SECONDS, _CHUNK_ROWS = 2e-3, 16
_SEEN_CHUNKS, _SEEN_SECONDS = 12, 40e-3
_GAIN = 1.1
"""From how much more in the same time it pays."""


class Pace:
    """What was seen so far of one step: seconds a row in this thread, and whether workers do more in the same time."""

    def __init__(self, workers: int, light: float = _LIGHT) -> None:
        self.workers, self._light = workers, light
        self.each: float | None = None
        self._lock = threading.Lock()
        self._chunks, self._rows, self._seconds = 0, 0, 0.0
        self.pays: bool | None = None

    @property
    def shares(self) -> bool:
        """Whether the workers should have the next rows."""
        return self.each is not None and self.each >= self._light and self.pays is not False

    def chunk(self) -> int:
        """How many rows to hand over at a time."""
        return max(1, min(_CHUNK_ROWS, int(_CHUNK_SECONDS / max(self.each or 0.0, 1e-6))))

    def note(self, rows: int, seconds: float) -> None:
        """Tells that a worker took `seconds` for `rows`."""
        if self.pays is not None or self.each is None:
            return
        with self._lock:
            self._chunks, self._rows, self._seconds = self._chunks + 1, self._rows + rows, self._seconds + seconds
            if self._chunks >= _SEEN_CHUNKS and self._seconds >= _SEEN_SECONDS:
                self.pays = self.workers * self.each * self._rows / self._seconds >= _GAIN


def paced_map(
    function: Callable[[Any], Any], items: Iterable[Any], workers: Workers, pace: Pace,
    here: Callable[[Iterator[Any]], Iterator[Any]] | None = None,
) -> Iterator[Any]:
    """Gives `function(item)` for each item in order: in this thread by `here`, or by the workers, as the pace says.

    What `function` raises comes out where the item's result would have.
    """
    rows = iter(items)
    yield from tried(function, rows, pace)
    if pace.shares:
        chunks = _chunks(rows, pace.chunk())
        for chunk in ordered_map(lambda chunk: _timed(function, chunk, pace), chunks, workers, 2 * workers.count + 2, lambda: pace.shares):
            for row in chunk:
                if isinstance(row, Late):
                    raise row.error
                yield row
    yield from here(rows) if here is not None else map(function, rows)


def tried(function: Callable[[Any], Any], rows: Iterator[Any], pace: Pace) -> Iterator[Any]:
    """The first rows, where none were timed yet; the very first one, which loads what the others find loaded, does not count."""
    spent, count = 0.0, 0
    if pace.each is not None:
        return
    for item in islice(rows, _TRIED_ROWS):
        start = time.perf_counter()
        row = function(item)
        spent += time.perf_counter() - start if count else 0.0
        count += 1
        yield row
    if count == _TRIED_ROWS:
        pace.each = spent / (_TRIED_ROWS - 1)


def _timed(function: Callable[[Any], Any], chunk: list[Any], pace: Pace) -> list[Any]:
    start = time.perf_counter()
    found = apply_all(function, chunk)
    pace.note(len(chunk), time.perf_counter() - start)
    return found


class Late:
    """An error that comes out after the rows before it."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def apply_all(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """`function(item)` for each item; where it raises, the error as Late, and nothing after it."""
    rows: list[Any] = []
    for item in items:
        try:
            rows.append(function(item))
        except Exception as error:
            rows.append(Late(error))
            break
    return rows


def _chunks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(islice(items, size)):
        yield chunk
