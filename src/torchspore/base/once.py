"""What is said only once in a process."""
from __future__ import annotations

import sys
from collections.abc import Hashable

_told: set[Hashable] = set()


def first_time(key: Hashable) -> bool:
    """Whether this is the first call with `key`."""
    if key in _told:
        return False
    _told.add(key)
    return True


def say(text: str, key: Hashable = None) -> None:
    """Writes `torchspore: text` to stderr, once for each `key`, which is the text itself where none is given."""
    if first_time(("say", text if key is None else key)):
        print(f"torchspore: {text}", file=sys.stderr, flush=True)
