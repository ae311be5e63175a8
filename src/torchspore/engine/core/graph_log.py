"""Tells what graph mode does while it does it: `TORCHSPORE_LOG=graph` prints one line for each event to stderr."""
from __future__ import annotations

import os
import sys


def is_on() -> bool:
    """Return whether someone wants to read along."""
    return "graph" in os.environ.get("TORCHSPORE_LOG", "").split(",")


def event(kind: str, text: str) -> None:
    """Prints `[torchspore graph] kind: text` where TORCHSPORE_LOG asks for it. Kinds: capture, again, refused, break, compile, cache."""
    if is_on():
        print(f"[torchspore graph] {kind}: {text}", file=sys.stderr, flush=True)
