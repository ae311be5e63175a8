"""What is said only once in a process."""
from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

_told: set[Hashable] = set()


def first_time(key: Hashable) -> bool:
    """Whether this is the first call with `key`."""
    if key in _told:
        return False
    _told.add(key)
    return True


@contextmanager
def anew() -> Iterator[None]:
    """Lets the block say all of it again; what it says does not count afterwards."""
    global _told
    before, _told = _told, set()
    try:
        yield
    finally:
        _told = before
