"""Waiting times: of the program for its pipeline's rows, and of the pipeline for the program."""
from __future__ import annotations

from time import perf_counter

_TIMED = 16


class Waits:
    """Rows and seconds of one iterator. The program's thread writes one half of the fields and the reader the other; rows need no lock.

    `seconds` is the duration of epochs (from their start to their end, or to the last row that was taken), `waited` the program's waiting
    time in them, and `busy` the pipeline's working time. The remaining time the pipeline waited for the program.
    """

    def __init__(self) -> None:
        self.rows, self.waited = 0, 0.0
        self._seconds, self._busy = 0.0, 0.0
        self._began: float | None = None
        self._last = 0.0
        self._working: float | None = None

    # The program's half ----------------------------------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """The program requests the first row."""
        self.end_epoch()
        self._began = self._last = perf_counter()

    def give(self, rows: int) -> None:
        """The program received a batch of `rows`."""
        self.rows += rows
        self._last = perf_counter()

    def record_row(self) -> None:
        """The program received a row. Not every light one is timed, because timing would cost too much."""
        self.rows += 1
        if not self.rows % _TIMED:
            self._last = perf_counter()

    def end_epoch(self, is_complete: bool = False) -> None:
        """The program requests no more rows; a complete epoch lasts until now, an abandoned one until its last row."""
        if self._began is not None:
            self._seconds += (perf_counter() if is_complete else self._last) - self._began
            self._began = None

    # The reader's half -----------------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """The pipeline starts making rows."""
        self._working = perf_counter()

    def rest(self) -> None:
        """The pipeline starts waiting for the program, or has nothing to do."""
        if self._working is not None:
            self._busy += perf_counter() - self._working
            self._working = None

    @property
    def is_working(self) -> bool:
        """Return whether rows are being made."""
        return self._working is not None

    # Results ---------------------------------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Return the seconds of epochs."""
        began = self._began
        return self._seconds + (self._last - began if began is not None else 0.0)

    @property
    def busy(self) -> float:
        """Return the seconds of these during which rows were being made."""
        working = self._working
        return min(self.seconds, self._busy + (perf_counter() - working if working is not None else 0.0))
