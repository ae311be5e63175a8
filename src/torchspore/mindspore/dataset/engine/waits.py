"""Who waits for whom: the program for its pipeline's rows, or the pipeline for the program to take them."""
from __future__ import annotations

from time import perf_counter

_TIMED = 16


class Waits:
    """Rows and seconds of one iterator. The program's thread writes one half of it and the reader the other; a row costs no lock.

    `seconds` of epochs (from their start to their end, or to the last row that was taken), those that the program `waited` in them, and
    those that the pipeline was `busy`. What is not busy waited for the program.
    """

    def __init__(self) -> None:
        self.rows, self.waited = 0, 0.0
        self._seconds, self._busy = 0.0, 0.0
        self._began: float | None = None
        self._last = 0.0
        self._working: float | None = None

    # The program's half ----------------------------------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """The program asks for the first row."""
        self.end_epoch()
        self._began = self._last = perf_counter()

    def give(self, rows: int) -> None:
        """The program has a batch of `rows`."""
        self.rows += rows
        self._last = perf_counter()

    def give_one(self) -> None:
        """The program has a row. A light one costs so little that not every one is timed."""
        self.rows += 1
        if not self.rows % _TIMED:
            self._last = perf_counter()

    def end_epoch(self, is_whole: bool = False) -> None:
        """The program asks for no more rows; a whole epoch lasts until now, one that was left until its last row."""
        if self._began is not None:
            self._seconds += (perf_counter() if is_whole else self._last) - self._began
            self._began = None

    # The reader's half -----------------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """The pipeline makes rows from now on."""
        self._working = perf_counter()

    def rest(self) -> None:
        """The pipeline waits for the program, or has nothing to do."""
        if self._working is not None:
            self._busy += perf_counter() - self._working
            self._working = None

    @property
    def is_working(self) -> bool:
        """Whether rows are being made."""
        return self._working is not None

    # What came of it -------------------------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Of epochs."""
        began = self._began
        return self._seconds + (self._last - began if began is not None else 0.0)

    @property
    def busy(self) -> float:
        """Seconds that rows were being made, of those."""
        working = self._working
        return min(self.seconds, self._busy + (perf_counter() - working if working is not None else 0.0))
