"""`config.set_error_samples_mode`: rows whose functions raise are skipped or replaced instead of ending the iteration."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchspore.base.text import message
from torchspore.mindspore import log
from torchspore.mindspore.dataset.core.config import ErrorSamplesMode
from torchspore.mindspore.dataset.engine.failures import PipelineError
from torchspore.mindspore.dataset.engine.rows import Row, writable_copy

_MAX_REPLACEMENTS = 64
"""The maximum number of good rows that replace broken ones."""


class ReplacementRows:
    """The good rows of an iterator that replace broken ones, and the next one: both persist from epoch to epoch, as in 2.10."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.position = 0

    def next(self) -> Row:
        """Return the next row, with copied arrays."""
        row = self.rows[self.position % len(self.rows)]
        self.position += 1
        return tuple(writable_copy(value) for value in row)


class Broken:
    """Placeholder for a row that failed."""

    def __init__(self, error: PipelineError) -> None:
        self.error = error


def marking(apply: Callable[[Any], Row]) -> Callable[[Any], Any]:
    """Wrap `apply` so that it returns a Broken if it raised."""

    def marked(item: Any) -> Any:
        try:
            return apply(item)
        except PipelineError as error:
            return Broken(error)

    return marked


def skip_or_replace(rows: Iterator[Any], mode: ErrorSamplesMode, where: str, replacements: ReplacementRows) -> Iterator[Row]:
    """Yield the good rows; with REPLACE also, at the end, as many of the `replacements` as there were broken rows, as in MindSpore.

    Raises RuntimeError if all rows are broken and should be replaced.
    """
    broken, last = 0, None
    for row in rows:
        if isinstance(row, Broken):
            broken, last = broken + 1, row.error
            if broken == 1:
                log.warning(f"{where}: a row is {'left out' if mode is ErrorSamplesMode.SKIP else 'replaced'}: {row.error}")
            continue
        if mode is ErrorSamplesMode.REPLACE and len(replacements.rows) < _MAX_REPLACEMENTS:
            replacements.rows.append(tuple(writable_copy(value) for value in row))
        yield row
    if broken > 1:
        log.warning(f"{where}: {broken} rows were {'left out' if mode is ErrorSamplesMode.SKIP else 'replaced'}")
    if broken and mode is ErrorSamplesMode.REPLACE:
        if not replacements.rows:
            raise PipelineError(message(f"{where}: all {broken} rows failed", "a good row to replace them")) from last
        for _ in range(broken):
            yield replacements.next()
