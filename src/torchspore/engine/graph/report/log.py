"""Tells what graph mode does while it does it: `TORCHSPORE_LOG=graph` prints one line for each event to stderr."""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = "TORCHSPORE_PATIENCE"
"""Names the seconds after which a user is told what the program waits for; 2 where it says nothing."""
QUIET = "3"
"""From this value of GLOG_v on only errors are shown."""


def is_on() -> bool:
    """Whether someone wants to read along."""
    return "graph" in os.environ.get("TORCHSPORE_LOG", "").split(",")


def event(kind: str, text: str) -> None:
    """Prints `[torchspore graph] kind: text` where TORCHSPORE_LOG asks for it. Kinds: capture, again, refused, break, compile, cache."""
    if is_on():
        print(f"[torchspore graph] {kind}: {text}", file=sys.stderr, flush=True)


def _patience() -> float:
    try:
        return float(os.environ.get(PATIENCE, ""))
    except ValueError:
        return 2.0


@contextmanager
def waiting(text: str, patience: float | None = None) -> Iterator[None]:
    """Prints `torchspore: text` to stderr, once, where the block takes more than `patience` seconds; never where GLOG_v hides it."""
    if patience is None:
        patience = _patience()
    if os.environ.get("GLOG_v", "2") >= QUIET:  # noqa: SIM112
        yield
        return
    timer = threading.Timer(patience, print, (f"torchspore: {text}",), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
