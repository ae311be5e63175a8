"""What is said only once in a process."""
from __future__ import annotations

from collections.abc import Hashable

_told: set[Hashable] = set()


def first_time(key: Hashable) -> bool:
    """Whether this is the first call with `key`."""
    if key in _told:
        return False
    _told.add(key)
    return True
