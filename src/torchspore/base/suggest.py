"""The nearest name to one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NEAR = 0.6
VERY_NEAR = 0.75
"""The similarity required of a name that is suggested in place of an operator: that of `Print` and `randint` is 0.67."""


def closest(word: str, words: Iterable[str], likeness: float = NEAR) -> str | None:
    """Return the word most similar to `word`, or None if none is similar enough.

    Case is ignored, and so is a prefix that only one of the two has (`sparse` matches `enable_sparse`).
    """
    by_lower = {candidate.lower(): candidate for candidate in words}
    target = word.lower()
    if target in by_lower:
        return by_lower[target]
    near = difflib.get_close_matches(target, by_lower, n=1, cutoff=likeness)
    if near:
        return by_lower[near[0]]
    if likeness > NEAR:
        return None
    parts = sorted((lower for lower in by_lower if len(target) > 3 and target in lower), key=len)
    return by_lower[parts[0]] if parts else None
