"""Ranks that wait for one another in a ring: each is in an exchange that the next one has not begun, and never will."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.distributed.comm.pending_collectives import PAIRS, name_of

Place = dict[str, Any]
"""Where a rank says that it is; see `Watch._here`."""


def ring(rank: int, ask: Callable[[int], Place | None]) -> list[tuple[int, Place]]:
    """The shortest ring that `rank` is in, beginning with it; empty where it is in none. `ask` gives where a rank is, if it has said so."""
    known: dict[int, Place | None] = {}

    def place(of: int) -> Place | None:
        if of not in known:
            known[of] = ask(of)
        return known[of]

    paths = [[rank]]
    seen = {rank}
    for path in paths:
        for other in _awaited(path[-1], place):
            if other == rank:
                return [(one, known[one] or {}) for one in path]
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])
    return []


def _awaited(rank: int, place: Callable[[int], Place | None]) -> list[int]:
    """The ranks which this one waits for, and which wait elsewhere."""
    own = place(rank)
    if not own or "what" not in own:
        return []
    return [other for other in own["ranks"] if other != rank and (found := place(other)) and "what" in found and not _has_begun(own, found)]


def _has_begun(own: Place, other: Place) -> bool:
    """Return whether a rank has begun what another one waits in."""
    if not own["key"].endswith(PAIRS):
        return bool(other["numbers"].get(own["key"], 0) >= own["number"])
    return any(other["ways"].get(way, 0) >= int(number) for way, _, number in (name.rpartition(" ") for name in own["names"]))


def words(found: list[tuple[int, Place]]) -> tuple[str, str]:
    """What is said of a ring by the rank that it begins with, and the hint."""
    rank, other = found[1]
    where = f"rank {rank} is in {other['what']} over {name_of(other['key'])} (its number {other['number']}) at {other['line']}"
    hint = "every rank of a group must call the same exchanges in the same order, of equal shapes and dtypes"
    if all(place["key"].endswith(PAIRS) for _, place in found):
        hint = "let one of them send while the next one receives, or use isend and irecv"
    return f"{where}; ranks {', '.join(str(one) for one, _ in found)} wait for one another", hint
