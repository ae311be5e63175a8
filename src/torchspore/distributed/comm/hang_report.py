"""Reports of an exchange that takes long, on the rank that waits and on each rank that it waits for, while the job still runs."""
from __future__ import annotations

import sys
from typing import Any

from torchspore.distributed.comm.pending_collectives import Waiting

LIMITS = (5.0, 60.0, 600.0)
"""The waiting times in seconds at which a rank reports an exchange."""


class HangReports:
    """Prints each report of a process once, as one line on stderr."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._exchange: tuple[str, int] | None = None
        """The group and the number of the exchange that `passes_limit` was asked about last."""
        self._count = 0
        """The number of limits that this exchange has passed."""
        self._notice: dict[str, Any] | None = None

    def passes_limit(self, waiting: Waiting, seconds: float) -> bool:
        """Return whether a wait has passed a limit since the last call for it."""
        exchange, count = (waiting.key, waiting.number), sum(seconds >= limit for limit in LIMITS)
        reported = self._count if self._exchange == exchange else 0
        self._exchange, self._count = exchange, count
        return count > reported

    def report_wait(self, waiting: Waiting, line: str | None, seconds: float, description: str, limit: float) -> None:
        """Report that this rank has waited `seconds` at `line`. `description` names the ranks that the exchange lacks."""
        _print(
            f"{line}: rank {self._rank} has waited {seconds:.0f} s in {waiting.what} over {waiting.group} (its number {waiting.number}); "
            f"{description}. The wait fails after {limit:g} s (MS_TOPO_TIMEOUT), "
            "or at the limit that set_context(op_timeout=SECONDS) sets."
        )

    def report_absence(self, notice: dict[str, Any], line: str | None) -> None:
        """Report that another rank waits for this one, which executes `line`."""
        if notice == self._notice:
            return
        self._notice = notice
        _print(
            f"{line or 'outside the program'}: rank {self._rank} is here, while rank {notice['rank']} has waited {notice['waited']} s "
            f"for it in {notice['what']} over {notice['group']} at {notice['line']}."
        )


def _print(text: str) -> None:
    print(f"torchspore: {text}", file=sys.stderr, flush=True)
