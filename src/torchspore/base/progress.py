"""Reports on a program that seems to stand still: lines on stderr while a call is compiled, or a graph runs for the first time.

The first line comes after `TORCHSPORE_PATIENCE` seconds, further lines after 10, 30 and 60 seconds and then every minute. `GLOG_v=3` hides
all of them.
"""
from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torchspore.base.context_values import during
from torchspore.translations import translate

PATIENCE = "TORCHSPORE_PATIENCE"
"""The variable with the number of seconds until the first line; by default 2."""
QUIET = "3"
"""From this value of GLOG_v on only errors are shown."""
SECONDS = (10.0, 30.0, 60.0)
"""When the further lines come. After the last, a line comes each time that this many seconds have passed again."""


class _Activity:
    """The present activity of the block, which another thread reads."""

    def __init__(self) -> None:
        self.describe: Callable[[], str] | None = None

    def __str__(self) -> str:
        try:
            return self.describe() if self.describe is not None else ""
        except RuntimeError:                # a graph that changes while its nodes are counted
            return ""


_current: ContextVar[_Activity | None] = ContextVar("torchspore_activity", default=None)


def note(activity: str | Callable[[], str]) -> None:
    """Note what the compilation around this call is doing now, such as "traces the program: 120 operators so far"."""
    current = _current.get()
    if current is not None:
        current.describe = activity if callable(activity) else lambda: activity


@contextmanager
def waiting(subject: str, text: str | Callable[[], str], patience: float | None = None) -> Iterator[None]:
    """Print `torchspore: subject text` to stderr if the block takes more than `patience` seconds, and its activity if it takes far longer.

    `subject` names the line of the program and what runs there: "train.py:12: Net". A function `text` is called when the line is due.
    """
    if os.environ.get("GLOG_v", "2") >= QUIET:  # noqa: SIM112
        yield
        return
    activity, is_over = _Activity(), threading.Event()
    times = _times(_patience() if patience is None else patience)
    arguments = (f"torchspore: {subject}", text, activity, times, is_over)
    threading.Thread(target=_print_lines, args=arguments, name="torchspore-progress", daemon=True).start()
    try:
        with during(_current, activity):
            yield
    finally:
        is_over.set()


def _patience() -> float:
    try:
        return float(os.environ.get(PATIENCE, ""))
    except ValueError:
        return 2.0


def _times(patience: float) -> Iterator[float]:
    """The seconds after which a line is due."""
    yield patience
    yield from (seconds for seconds in SECONDS if seconds > 2 * patience)
    yield from (patience + SECONDS[-1] * count for count in itertools.count(2))


def _print_lines(
    subject: str, text: str | Callable[[], str], activity: _Activity, times: Iterator[float], is_over: threading.Event,
) -> None:
    started, is_first = time.monotonic(), True
    for due in times:
        if is_over.wait(max(0.0, started + due - time.monotonic())):
            return
        said = text if isinstance(text, str) else text()
        later = translate("{subject}, after {seconds:.0f} s: {activity}")
        line = f"{subject} {said}" if is_first else later.format(subject=subject, seconds=due, activity=str(activity) or said)
        print(line, file=sys.stderr, flush=True)
        is_first = False
