"""The report of `torchspore explain` on each pipeline: its steps, workers, rows per second, waiting times, and the slowest step.

Rows and waits are always counted, at a cost of a fraction of a microsecond per row. The time of each step is sampled, only if `explain`
will be printed: a thread looks up the reader's position every few milliseconds. A step's time includes the reader's wait for its workers.
"""
from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any

from torchspore.base.frames import relative_line, user_line
from torchspore.context import effects
from torchspore.mindspore.dataset.engine import descriptions
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.pace import Pace
from torchspore.mindspore.dataset.engine.processes import Processes
from torchspore.mindspore.dataset.engine.rows import Run
from torchspore.mindspore.dataset.engine.waits import Waits
from torchspore.mindspore.dataset.engine.watchdog import step_of
from torchspore.translations import translatable, translate

SECTION = translatable("data pipelines")
_EVERY = 10e-3
_FEWEST_SAMPLES = 10
_MOST_LINES = 100
_JOIN_SECONDS = 1.0

_lines: dict[tuple[str, str], _Line] = {}


class Reading:
    """One iterator's run through a pipeline, and its measurements."""

    def __init__(self, dataset: Dataset, run: Run, is_inline: bool) -> None:
        self.waits, self.samples = Waits(), Counter[str]()
        self._dataset, self._run, self.is_inline = dataset, run, is_inline
        self._line = _line(user_line() or "", descriptions.chain(dataset))
        if self._line is not None:
            self._line.open.append(self)

    def watch(self, reader: Any) -> None:
        """Start sampling the position of a ReadAhead's thread, if `explain` needs it."""
        if self._line is not None and effects.is_explaining() and not self.is_inline:
            sampler = _Sampler(self, reader)
            self._run.on_close(sampler.close)

    def close(self) -> None:
        """End the measurement: add the figures to the report line, which drops its reference to the pipeline."""
        self.waits.end_epoch()
        if self._line is not None and self in self._line.open:
            self._line.close(self)

    def chain(self) -> str:
        """Describe the pipeline, with the workers of its steps."""
        return descriptions.chain(self._dataset, self._workers)

    def _workers(self, step: Dataset) -> str:
        states = self._run.states_of(step)
        processes = next((state for state in states if isinstance(state, Processes)), None)
        if processes is not None:
            return f" x{processes.count} processes"
        pace = next((state for state in states if isinstance(state, Pace)), None)
        if pace is None:
            return ""
        return f" x{pace.workers}" if pace.had_workers else f" x1 of {pace.workers}"      # more workers were not faster


class _Line:
    """All readings of one pipeline at one line of the user's program."""

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
            self._rows + sum(wait.rows for wait in waits), self._seconds + sum(wait.seconds for wait in waits),
            self._waited + sum(wait.waited for wait in waits), self._busy + sum(wait.busy for wait in waits),
        )

    def text(self) -> str:
        """Return the line; empty if no row was read."""
        rows, seconds, waited, busy = self._sums(list(self.open))
        if not rows or seconds <= 0:
            return ""
        chain = self.open[-1].chain() if self.open else self._chain
        head = translate("{line}: {chain}: {rate:,.0f} rows/s").format(line=relative_line(self._where), chain=chain, rate=rows / seconds)
        if self._is_inline or any(reading.is_inline for reading in self.open):
            return head + translate("; debug mode reads in the program's own thread")
        programs, datas = waited / seconds, 1 - busy / seconds
        waiting = (
            translate("; the program waited for data {program:.0%} of the time, the data for the program {data:.0%}")
            if programs >= datas else
            translate("; the data waited for the program {data:.0%} of the time, the program for data {program:.0%}")
        )
        return head + waiting.format(program=programs, data=datas) + self._slowest()

    def _slowest(self) -> str:
        samples = sum((reading.samples for reading in self.open), self._samples)
        if samples.total() < _FEWEST_SAMPLES:
            return ""
        step, count = samples.most_common(1)[0]
        text = translate("; {step} takes {share:.0%} of the pipeline's own")
        return text.format(step=step, share=count / samples.total())


class _Sampler:
    """A thread that records the position of a reader."""

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
            self._labels[id(step)] = descriptions.label(step)
        return self._labels[id(step)]

    def close(self) -> None:
        self._ended.set()
        self._thread.join(_JOIN_SECONDS)


def _line(where: str, chain: str) -> _Line | None:
    """Return the line of `explain` for a pipeline; None beyond the limit."""
    line = _lines.get((where, chain))
    if line is None and len(_lines) < _MOST_LINES:
        line = _lines[where, chain] = _Line(where, chain)
        effects.note(SECTION, line.text)
    return line
