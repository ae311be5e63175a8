"""`config.set_error_samples_mode`: rows whose functions raise are left out, or replaced by others, instead of ending the iteration."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchspore.base.text import message
from torchspore.mindspore import log
from torchspore.mindspore.dataset.core.config import ErrorSamplesMode
from torchspore.mindspore.dataset.engine.failures import PipelineError
from torchspore.mindspore.dataset.engine.rows import Row, own

_KEPT_ROWS = 64
"""Good rows that stand in for broken ones."""


class Kept:
    """The good rows of an iterator that stand in for broken ones, and which of them is next: both go on from epoch to epoch, as in 2.10."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.place = 0

    def next(self) -> Row:
        """The next one, with arrays of its own."""
        row = self.rows[self.place % len(self.rows)]
        self.place += 1
        return tuple(own(value) for value in row)


class Broken:
    """Stands where a row would."""

    def __init__(self, error: PipelineError) -> None:
        self.error = error


def marking(apply: Callable[[Any], Row]) -> Callable[[Any], Any]:
    """`apply`, which gives a Broken where it raised."""

    def marked(item: Any) -> Any:
        try:
            return apply(item)
        except PipelineError as error:
            return Broken(error)

    return marked


def mended(rows: Iterator[Any], mode: ErrorSamplesMode, where: str, kept: Kept) -> Iterator[Row]:
    """The good rows; with REPLACE, as many of the `kept` ones at the end as there were broken rows, as in MindSpore.

    Raises RuntimeError where all rows are broken and were to be replaced.
    """
    broken, last = 0, None
    for row in rows:
        if isinstance(row, Broken):
            broken, last = broken + 1, row.error
            if broken == 1:
                log.warning(f"{where}: a row is {'left out' if mode is ErrorSamplesMode.SKIP else 'replaced'}: {row.error}")
            continue
        if mode is ErrorSamplesMode.REPLACE and len(kept.rows) < _KEPT_ROWS:
            kept.rows.append(tuple(own(value) for value in row))
        yield row
    if broken > 1:
        log.warning(f"{where}: {broken} rows were {'left out' if mode is ErrorSamplesMode.SKIP else 'replaced'}")
    if broken and mode is ErrorSamplesMode.REPLACE:
        if not kept.rows:
            raise PipelineError(message(f"{where}: all {broken} rows failed", "a good row to replace them")) from last
        for _ in range(broken):
            yield kept.next()
