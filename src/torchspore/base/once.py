"""Messages that are reported only once in a process."""
from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

_reported: set[Hashable] = set()


def first_time(key: Hashable) -> bool:
    """Return whether this is the first call with `key`."""
    if key in _reported:
        return False
    _reported.add(key)
    return True


@contextmanager
def anew() -> Iterator[None]:
    """Report all messages again inside the block, without an effect on later reports."""
    global _reported
    previous, _reported = _reported, set()
    try:
        yield
    finally:
        _reported = previous
