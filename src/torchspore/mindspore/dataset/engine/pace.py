"""Work on rows shared between workers, as long as that pays.

Handing a row to a thread and back costs more than a light row; and a thread that holds Python's lock helps nobody. So the first rows are
worked on here and timed, the next ones by the workers, who time them too: where theirs take as much longer as there are workers, and these
wait for each other, nothing is gained, and the next stretch of rows is done here. After each stretch it is looked at again. The rows and
their order are the same.
"""
from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any

from torchspore.mindspore.dataset.engine.workers import Workers, ordered_map

_TRIED_ROWS = 8
_LIGHT = 150e-6
"""Seconds a row. Twice what it costs to hand one to a thread and back: rows of 130e-6 (a spectrogram) lost a third by two threads."""
_CHUNK_SECONDS, _CHUNK_ROWS = 2e-3, 16
_SEEN_CHUNKS, _SEEN_SECONDS = 12, 40e-3
_GAIN, _BUSY_GAIN, _NO_LOSS = 1.1, 1.25, 0.85
"""From how much more in the same time it pays: by the clock; or by the share of it that workers compute, beside this thread's, where the
clock shows no loss beyond a machine's noise. Four threads of spectrograms were busy on two cores, and gave half the rows."""
_STRETCH_SECONDS, _STRETCH_ROWS = 2.0, 256
"""How long what was found counts, and for how many rows at least."""


class Pace:
    """What was seen so far of one step: seconds a row in this thread, and whether workers do more in the same time."""

    def __init__(self, workers: int, light: float = _LIGHT) -> None:
        self.workers, self._light = workers, light
        self.each: float | None = None
        self.busy = 1.0
        """The share of that time in which this thread computed."""
        self._lock = threading.Lock()
        self._chunks: list[float] = []                          # seconds a row
        self._busy: list[float] = []                            # the share of them in which the worker computed
        self._rows = 0
        self.pays: bool | None = None
        self.had_workers = False
        """Whether the last rows were the workers'."""

    @property
    def is_light(self) -> bool:
        """Whether a row takes too little for handing it over."""
        return self.each is not None and self.each < self._light

    @property
    def shares(self) -> bool:
        """Whether the workers should have the next rows."""
        return self.each is not None and not self.is_light and self.pays is not False

    def left(self) -> int:
        """For how many more rows what was found counts, also in the next epochs."""
        return max(_STRETCH_ROWS, int(_STRETCH_SECONDS / max(self.each or 0.0, 1e-6))) - self._rows

    def count(self, rows: int) -> None:
        """Tells of rows that were worked on; at the end of a stretch the next ones are timed again."""
        self.had_workers = self.shares
        self._rows += rows
        if self.left() <= 0:
            with self._lock:
                self.each, self.pays, self._rows = None, None, 0
                self._chunks.clear()
                self._busy.clear()

    def chunk(self) -> int:
        """How many rows to hand over at a time."""
        return max(1, min(_CHUNK_ROWS, int(_CHUNK_SECONDS / max(self.each or 0.0, 1e-6))))

    def note(self, rows: int, seconds: float, computed: float) -> None:
        """Tells that a worker took `seconds` for `rows`, `computed` of them on a core.

        Rows that were timed here may have been lucky, or the machine busy since: workers that compute as much of their time as this thread
        did do not wait for each other.
        """
        if self.pays is not None:
            return
        with self._lock:
            each = self.each
            if each is None:                                    # forgotten while the worker was at it
                return
            self._chunks.append(seconds / rows)
            self._busy.append(computed / max(seconds, 1e-9))
            if len(self._chunks) >= _SEEN_CHUNKS and sum(self._chunks) * self.chunk() >= _SEEN_SECONDS:
                gain, busy = self.workers * each / statistics.median(self._chunks), self.workers * statistics.median(self._busy) / self.busy
                self.pays = gain >= _GAIN or (busy >= _BUSY_GAIN and gain >= _NO_LOSS)


def paced_map(
    function: Callable[[Any], Any], items: Iterable[Any], workers: Workers, pace: Pace,
    here: Callable[[Iterator[Any]], Iterator[Any]] | None = None,
) -> Iterator[Any]:
    """Gives `function(item)` for each item in order: in this thread by `here`, or by the workers, as the pace says.

    What `function` raises comes out where the item's result would have.
    """
    rows = iter(items)
    do_here = here if here is not None else lambda rest: map(function, rest)
    while True:
        if (yield from tried(function, rows, pace)) < _TRIED_ROWS and pace.each is None:
            return                                              # there were no more
        if pace.is_light:
            yield from do_here(rows)
            return
        wanted = pace.left()
        count = 0
        for row in _stretch(function, islice(rows, wanted), workers, pace, do_here):
            count += 1
            yield row
        pace.count(count)
        if count < wanted:
            return


def _stretch(
    function: Callable[[Any], Any], rows: Iterator[Any], workers: Workers, pace: Pace, do_here: Callable[[Iterator[Any]], Iterator[Any]],
) -> Iterator[Any]:
    """The results of some rows, by the workers while that pays."""
    if pace.shares:
        chunks = _chunks(rows, pace.chunk())
        for chunk in ordered_map(lambda chunk: _timed(function, chunk, pace), chunks, workers, 2 * workers.count + 2, lambda: pace.shares):
            for row in chunk:
                if isinstance(row, Late):
                    raise row.error
                yield row
    yield from do_here(rows)


def tried(function: Callable[[Any], Any], rows: Iterator[Any], pace: Pace) -> Generator[Any, None, int]:
    """The first rows, where none were timed yet; the very first one, which loads what the others find loaded, does not count.

    Says how many there were.
    """
    spent: list[tuple[float, float]] = []
    if pace.each is not None:
        return 0
    for item in islice(rows, _TRIED_ROWS):
        start, used = time.perf_counter(), time.thread_time()
        row = function(item)
        spent.append((time.perf_counter() - start, time.thread_time() - used))
        yield row
    if len(spent) == _TRIED_ROWS:
        pace.busy = max(0.01, min(1.0, sum(used for _, used in spent[1:]) / max(sum(took for took, _ in spent[1:]), 1e-9)))
        pace.each = statistics.median(took for took, _ in spent[1:])
    return len(spent)


def _timed(function: Callable[[Any], Any], chunk: list[Any], pace: Pace) -> list[Any]:
    start, used = time.perf_counter(), time.thread_time()
    found = apply_all(function, chunk)
    pace.note(len(chunk), time.perf_counter() - start, time.thread_time() - used)
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
