"""The nearest name to one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NEAR = 0.6
VERY_NEAR = 0.75
"""How like another name one must be that is suggested in the place of an operator: `Print` and `randint` are 0.67."""


def closest(word: str, words: Iterable[str], likeness: float = NEAR) -> str | None:
    """Gives the word most like `word`, or None where nothing is near.

    Capitals are passed over, and so is a shared beginning that one of the two lacks (`sparse` finds `enable_sparse`).
    """
    by_lower = {candidate.lower(): candidate for candidate in words}
    wanted = word.lower()
    if wanted in by_lower:
        return by_lower[wanted]
    near = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=likeness)
    if near:
        return by_lower[near[0]]
    if likeness > NEAR:
        return None
    parts = sorted((lower for lower in by_lower if len(wanted) > 3 and wanted in lower), key=len)
    return by_lower[parts[0]] if parts else None
