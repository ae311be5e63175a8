"""Distribution of rows to workers, as long as that is faster.

Passing a row to a thread and back costs more than processing a light row, and a thread that holds Python's lock saves no time. So this
thread processes and times the first rows. If they are not light, workers and this thread take timed turns of a few rows; the faster side
processes the next stretch of rows, and then they take turns again. A machine's speed varies by more than the gain of a second thread: only
consecutive turns are compared, and the median of several such pairs decides. The rows and their order are the same.
"""
from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from torchspore.mindspore.dataset.engine.workers import Workers, ordered_map

_TRIED_ROWS = 8
_LIGHT = 150e-6
"""Seconds per row. Twice the cost of passing one to a thread and back: rows of 130e-6 (a spectrogram) lost a third by two threads."""
_CHUNK_SECONDS, _CHUNK_ROWS = 4e-3, 16
_TURN_SECONDS, _TURN_ROWS, _WORKER_ROWS = 60e-3, 64, 8
"""Length of a timed turn: the maximum number of rows, and the minimum for each worker."""
_STRETCH_SECONDS, _STRETCH_ROWS = 2.0, 256
"""The validity of a decision in seconds, and its minimum number of rows."""
_FIRST_PAIRS, _MAX_PAIRS = 3, 9
_GAIN = 1.05


@dataclass
class _Turn:
    """The number of a step's next rows, and whether workers process them."""

    by_workers: bool
    rows: int
    is_timed: bool


class Pace:
    """The measurements of one step: seconds per row in this thread, and the speed-up of the workers."""

    def __init__(self, workers: int, light: float = _LIGHT) -> None:
        self.workers, self._light = workers, light
        self.each: float | None = None
        self.had_workers = False
        """True if workers processed the last stretch."""
        self._turns: deque[_Turn] = deque()
        self._pair: dict[bool, float] = {}                      # seconds per row of the last turns, keyed by whether workers processed them
        self._gains: deque[float] = deque(maxlen=_MAX_PAIRS)

    @property
    def is_light(self) -> bool:
        """Return whether a row is too light for handing it over."""
        return self.each is not None and self.each < self._light

    @property
    def is_heavy(self) -> bool:
        """Return whether rows were timed and are slow enough for handing them over."""
        return self.each is not None and not self.is_light

    @property
    def pays(self) -> bool:
        """Return whether the workers were faster so far."""
        return not self._gains or statistics.median(self._gains) >= _GAIN

    def chunk(self) -> int:
        """Return the number of rows to hand over at a time."""
        return max(1, min(_CHUNK_ROWS, int(_CHUNK_SECONDS / max(self.each or 0.0, 1e-6))))

    def turn(self) -> _Turn:
        """Return the next turn, also across the end of an epoch."""
        if not self._turns:
            each, fewest = max(self.each or 0.0, 1e-6), _WORKER_ROWS * self.workers
            rows = max(fewest, min(_TURN_ROWS, int(_TURN_SECONDS / each)))
            first = len(self._gains) < _FIRST_PAIRS
            if first:                                           # a warm-up turn of each, while threads start and files are cached
                self._turns += [_Turn(True, fewest, False), _Turn(False, fewest, False)] if not self._gains else []
            else:
                self._turns.append(_Turn(self.pays, max(_STRETCH_ROWS, int(_STRETCH_SECONDS / each)), False))
            self._turns += [_Turn(True, rows, True), _Turn(False, rows, True)]
        return self._turns[0]

    def record(self, turn: _Turn, rows: int, timed: int, seconds: float) -> None:
        """Record the number of processed rows of the turn, and the seconds of `timed` rows. Too short turns are ignored."""
        if not turn.is_timed:
            self.had_workers = turn.by_workers
            turn.rows -= rows
            if turn.rows <= 0:
                self._end(turn)
        elif timed >= _WORKER_ROWS * self.workers // 2:
            self._end(turn)
            self._pair[turn.by_workers] = seconds / timed
            if len(self._pair) == 2:
                self._gains.append(self._pair[False] / max(self._pair[True], 1e-9))
                self._pair.clear()

    def _end(self, turn: _Turn) -> None:
        """Advance to the next turn, unless another path through the step has done so: both inputs of a `zip` may contain the step."""
        if self._turns and self._turns[0] is turn:
            self._turns.popleft()


def paced_map(
    function: Callable[[Any], Any], items: Iterable[Any], workers: Workers, pace: Pace,
    in_this_thread: Callable[[Iterator[Any]], Iterator[Any]] | None = None,
) -> Iterator[Any]:
    """Yield `function(item)` for each item in order: by `in_this_thread`, or by the workers, as the pace decides.

    An exception of `function` is raised at the position of the item's result.
    """
    rows = iter(items)
    run_in_this_thread = in_this_thread if in_this_thread is not None else lambda remaining: map(function, remaining)
    if (yield from tried(function, rows, pace)) < _TRIED_ROWS and pace.each is None:
        return                                                  # no more items
    if pace.is_light:
        yield from run_in_this_thread(rows)
        return
    requested, count = 1, 1
    while count >= requested:
        turn = pace.turn()
        requested = turn.rows
        items_of_turn = islice(rows, requested)
        if turn.by_workers:
            done, first = _by_workers(function, items_of_turn, workers, pace), pace.chunk()
        else:
            done, first = run_in_this_thread(items_of_turn), 0
        count, start = 0, time.perf_counter()
        for row in done:
            if not count and first:                             # all workers are busy from here on: only later rows are timed
                start = time.perf_counter()
            count += 1
            yield row
        pace.record(turn, count, count - first, time.perf_counter() - start)


def _by_workers(function: Callable[[Any], Any], rows: Iterator[Any], workers: Workers, pace: Pace) -> Iterator[Any]:
    chunks = _chunks(rows, pace.chunk())
    for chunk in ordered_map(lambda chunk: apply_all(function, chunk), chunks, workers, 2 * workers.count + 2):
        for row in chunk:
            if isinstance(row, Late):
                raise row.error
            yield row


def tried(function: Callable[[Any], Any], rows: Iterator[Any], pace: Pace) -> Generator[Any, None, int]:
    """Yield the first rows, if none were timed yet; the very first one, which includes loading, does not count.

    Return their number.
    """
    spent: list[float] = []
    if pace.each is not None:
        return 0
    for item in islice(rows, _TRIED_ROWS):
        start = time.perf_counter()
        row = function(item)
        spent.append(time.perf_counter() - start)
        yield row
    if len(spent) == _TRIED_ROWS:
        pace.each = statistics.median(spent[1:])
    return len(spent)


class Late:
    """An error that is raised after the rows before it."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def apply_all(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Return `function(item)` for each item; after an exception, a Late with it and no more results."""
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
