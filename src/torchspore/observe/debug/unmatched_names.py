"""The names that a dump asked for and never met: a misspelled name would otherwise leave an empty folder without an explanation."""
from __future__ import annotations

import os
from collections.abc import Iterator

from torchspore.base.suggest import closest
from torchspore.engine.execution.current_operator import Position
from torchspore.observe.debug.dump_settings import Settings, matches

_MOST = 1_000
"""The number of operator names that are stored for suggestions when a requested name never ran."""
_MOST_NAMES = 8


class Missing:
    """The `kernels` of one dump that have not run yet."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kernels = set(settings.kernels or ())
        self._names: set[str] = set()
        self._last = -1
        self._process = os.getpid()

    def see(self, at: Position) -> None:
        """An operator has run."""
        self._last = max(self._last, at.iteration)
        if self._kernels:
            self._kernels = {kernel for kernel in self._kernels if not matches(kernel, at.name, at.operator)}
            if len(self._names) < _MOST:
                self._names.add(at.name)

    def messages(self, has_records: bool) -> Iterator[str]:
        """Yield the messages at the end; none if no operator ran, and in a forked child."""
        if self._last < 0 or os.getpid() != self._process:
            return
        for kernel in sorted(self._kernels)[:_MOST_NAMES]:
            near = closest(kernel, self._names)
            yield f"dump: no operator that ran matches {kernel!r} of kernels" + (f"; {near} did." if near else ".")
        if len(self._kernels) > _MOST_NAMES:
            yield f"dump: {len(self._kernels) - _MOST_NAMES} more of kernels match no operator that ran."
        if self._settings.everything and not has_records and not self._kernels:
            yield (f"dump: nothing is written to {self._settings.path}: no operator of the iterations 0 to {self._last}, which the program "
                   "had, is asked for.")
