"""Events of graph mode, as they happen: `TORCHSPORE_LOG=graph` prints one line for each to stderr."""
from __future__ import annotations

import os
import sys


def is_on() -> bool:
    """Return whether events are printed."""
    return "graph" in os.environ.get("TORCHSPORE_LOG", "").split(",")


def event(kind: str, text: str) -> None:
    """Print `[torchspore graph] kind: text` if TORCHSPORE_LOG requests it. Kinds: capture, again, refused, break, compile, cache."""
    if is_on():
        print(f"[torchspore graph] {kind}: {text}", file=sys.stderr, flush=True)
