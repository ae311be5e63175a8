"""Work on rows shared between workers, as long as that pays.

Handing a row to a thread and back costs more than a light row; and a thread that holds Python's lock helps nobody. So the first rows are
worked on here and timed. Where they are not light, workers and this thread take turns of a few rows, by the clock; who is faster has the
next stretch of rows, and then they take turns again. A machine's speed changes by more than a second thread gains: only turns that follow
each other are compared, and the middle of several such pairs decides. The rows and their order are the same.
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
"""Seconds a row. Twice what it costs to hand one to a thread and back: rows of 130e-6 (a spectrogram) lost a third by two threads."""
_CHUNK_SECONDS, _CHUNK_ROWS = 4e-3, 16
_TURN_SECONDS, _TURN_ROWS, _WORKER_ROWS = 60e-3, 64, 8
"""How long a timed turn is: at most so many rows, at least so many for each worker."""
_STRETCH_SECONDS, _STRETCH_ROWS = 2.0, 256
"""How long what was found counts, and for how many rows at least."""
_FIRST_PAIRS, _KEPT_PAIRS = 3, 9
_GAIN = 1.05


@dataclass
class _Turn:
    """The next rows of a step, and whose they are."""

    by_workers: bool
    rows: int
    is_timed: bool


class Pace:
    """What was seen so far of one step: seconds a row in this thread, and how many times faster the workers were."""

    def __init__(self, workers: int, light: float = _LIGHT) -> None:
        self.workers, self._light = workers, light
        self.each: float | None = None
        self.had_workers = False
        """Whether the last stretch was the workers'."""
        self._turns: deque[_Turn] = deque()
        self._pair: dict[bool, float] = {}                      # seconds a row of the last turns, by whether workers had it
        self._gains: deque[float] = deque(maxlen=_KEPT_PAIRS)

    @property
    def is_light(self) -> bool:
        """Whether a row takes too little for handing it over."""
        return self.each is not None and self.each < self._light

    @property
    def is_heavy(self) -> bool:
        """Whether rows were timed, and take long enough for handing them over."""
        return self.each is not None and not self.is_light

    @property
    def pays(self) -> bool:
        """Whether the workers were faster, as far as was seen."""
        return not self._gains or statistics.median(self._gains) >= _GAIN

    def chunk(self) -> int:
        """How many rows to hand over at a time."""
        return max(1, min(_CHUNK_ROWS, int(_CHUNK_SECONDS / max(self.each or 0.0, 1e-6))))

    def turn(self) -> _Turn:
        """Whose the next rows are, and how many, also over the end of an epoch."""
        if not self._turns:
            each, fewest = max(self.each or 0.0, 1e-6), _WORKER_ROWS * self.workers
            rows = max(fewest, min(_TURN_ROWS, int(_TURN_SECONDS / each)))
            first = len(self._gains) < _FIRST_PAIRS
            if first:                                           # a first turn of each, while threads start and files get into memory
                self._turns += [_Turn(True, fewest, False), _Turn(False, fewest, False)] if not self._gains else []
            else:
                self._turns.append(_Turn(self.pays, max(_STRETCH_ROWS, int(_STRETCH_SECONDS / each)), False))
            self._turns += [_Turn(True, rows, True), _Turn(False, rows, True)]
        return self._turns[0]

    def took(self, turn: _Turn, rows: int, timed: int, seconds: float) -> None:
        """Tells how many rows of the turn were worked on, and how long `timed` of them took. What is too short says nothing."""
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
        """Goes on to the next turn, unless another way through the step has: both inputs of a `zip` may have it below them."""
        if self._turns and self._turns[0] is turn:
            self._turns.popleft()


def paced_map(
    function: Callable[[Any], Any], items: Iterable[Any], workers: Workers, pace: Pace,
    here: Callable[[Iterator[Any]], Iterator[Any]] | None = None,
) -> Iterator[Any]:
    """Gives `function(item)` for each item in order: in this thread by `here`, or by the workers, as the pace says.

    What `function` raises comes out where the item's result would have.
    """
    rows = iter(items)
    do_here = here if here is not None else lambda rest: map(function, rest)
    if (yield from tried(function, rows, pace)) < _TRIED_ROWS and pace.each is None:
        return                                                  # there were no more
    if pace.is_light:
        yield from do_here(rows)
        return
    wanted, count = 1, 1
    while count >= wanted:
        turn = pace.turn()
        wanted = turn.rows
        some = islice(rows, wanted)
        done, first = (_by_workers(function, some, workers, pace), pace.chunk()) if turn.by_workers else (do_here(some), 0)
        count, start = 0, time.perf_counter()
        for row in done:
            if not count and first:                             # what workers begin with all of them have: only what follows is timed
                start = time.perf_counter()
            count += 1
            yield row
        pace.took(turn, count, count - first, time.perf_counter() - start)


def _by_workers(function: Callable[[Any], Any], rows: Iterator[Any], workers: Workers, pace: Pace) -> Iterator[Any]:
    chunks = _chunks(rows, pace.chunk())
    for chunk in ordered_map(lambda chunk: apply_all(function, chunk), chunks, workers, 2 * workers.count + 2):
        for row in chunk:
            if isinstance(row, Late):
                raise row.error
            yield row


def tried(function: Callable[[Any], Any], rows: Iterator[Any], pace: Pace) -> Generator[Any, None, int]:
    """The first rows, where none were timed yet; the very first one, which loads what the others find loaded, does not count.

    Says how many there were.
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
