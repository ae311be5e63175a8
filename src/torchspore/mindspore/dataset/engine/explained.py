"""What `torchspore explain` says of each pipeline: its steps, workers, rows a second, who waits for whom, and which step takes the time.

Rows and waits are counted always, which costs a row a fraction of a microsecond. Which step takes the time is sampled, and only where
`explain` is going to be printed: a thread looks every few milliseconds where the reader is. A step's time is what the reader spends in it
or waits for its workers.
"""
from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any

from torchspore.base.frames import near, user_line
from torchspore.context import effects
from torchspore.mindspore.dataset.engine import described
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.pace import Pace
from torchspore.mindspore.dataset.engine.processes import Processes
from torchspore.mindspore.dataset.engine.rows import Run
from torchspore.mindspore.dataset.engine.waits import Waits
from torchspore.mindspore.dataset.engine.whereabouts import step_of

SECTION = "data pipelines"
_EVERY = 10e-3
_FEWEST_SAMPLES = 10
_MOST_LINES = 100
_JOIN_SECONDS = 1.0

_lines: dict[tuple[str, str], _Line] = {}


class Reading:
    """One iterator's way through a pipeline, and what is seen of it."""

    def __init__(self, dataset: Dataset, run: Run, is_inline: bool) -> None:
        self.waits, self.samples = Waits(), Counter[str]()
        self._dataset, self._run, self.is_inline = dataset, run, is_inline
        self._line = _line(user_line() or "", described.chain(dataset))
        if self._line is not None:
            self._line.open.append(self)

    def watch(self, reader: Any) -> None:
        """Looks from now on where the thread of a ReadAhead is, if that is asked for."""
        if self._line is not None and effects.is_explaining() and not self.is_inline:
            sampler = _Sampler(self, reader)
            self._run.on_close(sampler.close)

    def close(self) -> None:
        """The iterator has ended: adds its figures to its line, which forgets the pipeline."""
        self.waits.end_epoch()
        if self._line is not None and self in self._line.open:
            self._line.close(self)

    def chain(self) -> str:
        """The pipeline in words, with the workers that its steps have."""
        return described.chain(self._dataset, self._workers)

    def _workers(self, step: Dataset) -> str:
        kept = self._run.kept(step)
        processes = next((one for one in kept if isinstance(one, Processes)), None)
        if processes is not None:
            return f" x{processes.count} processes"
        pace = next((one for one in kept if isinstance(one, Pace)), None)
        if pace is None:
            return ""
        return f" x{pace.workers}" if pace.had_workers else f" x1 of {pace.workers}"      # more did not pay


class _Line:
    """One pipeline read at one line of the user's, as often as it was."""

    def __init__(self, where: str, chain: str) -> None:
        self._where, self._chain = where, chain
        self._rows, self._seconds, self._waited, self._busy = 0, 0.0, 0.0, 0.0
        self._samples: Counter[str] = Counter()
        self.open: list[Reading] = []
        self._is_inline = False

    def close(self, reading: Reading) -> None:
        self.open.remove(reading)
        self._chain = reading.chain()
        self._is_inline = reading.is_inline
        self._rows, self._seconds, self._waited, self._busy = self._sums([reading])
        self._samples.update(reading.samples)

    def _sums(self, readings: list[Reading]) -> tuple[int, float, float, float]:
        waits = [reading.waits for reading in readings]
        return (
            self._rows + sum(one.rows for one in waits), self._seconds + sum(one.seconds for one in waits),
            self._waited + sum(one.waited for one in waits), self._busy + sum(one.busy for one in waits),
        )

    def text(self) -> str:
        """The line; empty where no row was read."""
        rows, seconds, waited, busy = self._sums(list(self.open))
        if not rows or seconds <= 0:
            return ""
        chain = self.open[-1].chain() if self.open else self._chain
        head = f"{near(self._where)}: {chain}: {rows / seconds:,.0f} rows/s"
        if self._is_inline or any(reading.is_inline for reading in self.open):
            return f"{head}; debug mode reads in the program's own thread"
        programs, datas = waited / seconds, 1 - busy / seconds
        told = (
            f"the program waited for data {programs:.0%} of the time, the data for the program {datas:.0%}" if programs >= datas else
            f"the data waited for the program {datas:.0%} of the time, the program for data {programs:.0%}"
        )
        return f"{head}; {told}{self._slowest()}"

    def _slowest(self) -> str:
        samples = sum((reading.samples for reading in self.open), self._samples)
        if samples.total() < _FEWEST_SAMPLES:
            return ""
        step, count = samples.most_common(1)[0]
        return f"; {step} takes {count / samples.total():.0%} of the pipeline's own"


class _Sampler:
    """A thread that notes where a reader is."""

    def __init__(self, reading: Reading, reader: Any) -> None:
        self._waits, self._samples, self._reader = reading.waits, reading.samples, reader
        self._labels: dict[int, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="torchspore-sampler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            thread = self._reader.thread
            if thread is not None and self._waits.is_working:
                step = step_of(sys._current_frames().get(thread.ident))
                if step is not None:
                    self._samples[self._label(step)] += 1

    def _label(self, step: Dataset) -> str:
        if id(step) not in self._labels:
            self._labels[id(step)] = described.label(step)
        return self._labels[id(step)]

    def close(self) -> None:
        self._ended.set()
        self._thread.join(_JOIN_SECONDS)


def _line(where: str, chain: str) -> _Line | None:
    """The line of `explain` for a pipeline; None where there are enough."""
    line = _lines.get((where, chain))
    if line is None and len(_lines) < _MOST_LINES:
        line = _lines[where, chain] = _Line(where, chain)
        effects.note(SECTION, line.text)
    return line
