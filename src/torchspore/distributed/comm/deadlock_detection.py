"""Finds ranks that wait for one another in a ring: each is in an exchange that the next rank has not started and never will."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.distributed.comm.pending_collectives import PAIRS, name_of

State = dict[str, Any]
"""The published state of a rank; see `Watchdog._local_state`."""


def ring(rank: int, ask: Callable[[int], State | None]) -> list[tuple[int, State]]:
    """Return the shortest ring with `rank`, starting with it; empty if there is none. `ask` returns the published state of a rank."""
    states: dict[int, State | None] = {}

    def state_of(of: int) -> State | None:
        if of not in states:
            states[of] = ask(of)
        return states[of]

    paths = [[rank]]
    seen = {rank}
    for path in paths:
        for other in _awaited(path[-1], state_of):
            if other == rank:
                return [(rank, states[rank] or {}) for rank in path]
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])
    return []


def _awaited(rank: int, state_of: Callable[[int], State | None]) -> list[int]:
    """Return the ranks that this rank waits for and that wait in another exchange."""
    local_state = state_of(rank)
    if not local_state or "what" not in local_state:
        return []
    return [
        other
        for other in local_state["ranks"]
        if other != rank and (other_state := state_of(other)) and "what" in other_state and not _has_begun(local_state, other_state)
    ]


def _has_begun(state: State, other: State) -> bool:
    """Return whether a rank has started the exchange that another rank waits in."""
    if not state["key"].endswith(PAIRS):
        return bool(other["numbers"].get(state["key"], 0) >= state["number"])
    return any(other["ways"].get(way, 0) >= int(number) for way, _, number in (name.rpartition(" ") for name in state["names"]))


def words(ring: list[tuple[int, State]]) -> tuple[str, str]:
    """Return the description of a ring by its first rank, and the hint."""
    rank, other = ring[1]
    where = f"rank {rank} is in {other['what']} over {name_of(other['key'])} (its number {other['number']}) at {other['line']}"
    hint = "every rank of a group must call the same exchanges in the same order, of equal shapes and dtypes"
    if all(state["key"].endswith(PAIRS) for _, state in ring):
        hint = "let one of them send while the next one receives, or use isend and irecv"
    return f"{where}; ranks {', '.join(str(rank) for rank, _ in ring)} wait for one another", hint
