"""Messages that are reported only once in a process."""
from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class _Reports:
    """The warnings that the program has received."""

    def __init__(self) -> None:
        self.keys: set[Hashable] = set()


_REPORTS = _Reports()


def first_time(key: Hashable) -> bool:
    """Return whether this is the first call with `key`."""
    if key in _REPORTS.keys:
        return False
    _REPORTS.keys.add(key)
    return True


@contextmanager
def anew() -> Iterator[None]:
    """Report all messages again inside the block, without an effect on later reports."""
    previous, _REPORTS.keys = _REPORTS.keys, set()
    try:
        yield
    finally:
        _REPORTS.keys = previous
