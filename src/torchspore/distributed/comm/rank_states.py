"""The states that ranks publish in the store: process ids, the exchange that each rank is in, signs of life.

The number of calls of a rank does not depend on the number of ranks: the states of a group are one call. In a job of many ranks, rank 0
collects the process ids in one list for each machine.
"""
from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from typing import Any

SMALL = 64
"""The most ranks of a job in which each rank stores the process ids and addresses of all others."""
State = dict[str, Any]


def slowed(seconds: float, size: int) -> float:
    """Return the interval between two calls of a rank to the store: longer in a large job, so that the store gets no more calls."""
    return seconds * max(1.0, size / SMALL)


class RankStates:
    """The states of this rank and of others. Its methods raise RuntimeError if the process with the store has ended."""

    def __init__(self, store: Any, rank: int, size: int, address: tuple[str, int]) -> None:
        self._store, self._rank, self._size = store, rank, size
        self.processes: dict[int, tuple[str, int]] = {}
        """By rank the machine and the process id: of all ranks in a small job, else at least of those on this machine."""
        self._addresses: dict[int, tuple[str, int]] = {}
        facts = json.dumps([socket.gethostname(), os.getpid(), *address])
        names = [f"{kind}/{rank}" for kind in ("process", "where", "sign", "left")]
        store.multi_set(names, [facts, "null", "", ""])

    def collect_processes(self) -> None:
        """Store the process ids of other ranks. They identify a rank that has ended even if the store has ended with it."""
        if self._size <= SMALL:
            self._add_processes(dict(enumerate(self._get("process", range(self._size)))))
            return
        if self._rank == 0:
            by_machine: dict[str, dict[int, str]] = {}
            for rank, text in enumerate(self._get("process", range(self._size))):
                by_machine.setdefault(json.loads(text)[0], {})[rank] = text
            for machine, texts in by_machine.items():
                self._store.set(f"processes/{machine}", json.dumps(texts))
        self._add_processes({0: self._get("process", [0])[0], **json.loads(self._store.get(f"processes/{socket.gethostname()}"))})

    def _add_processes(self, texts: dict[Any, str]) -> None:
        for rank, text in texts.items():
            machine, process, address, port = json.loads(text)
            self.processes[int(rank)], self._addresses[int(rank)] = (machine, process), (address, port)

    def address_of(self, rank: int) -> tuple[str, int]:
        """Return the address at which the machine of a rank refuses connections; the port is 0 if it has none, or if it is unknown."""
        if rank not in self._addresses:
            self._add_processes({rank: self._get("process", [rank])[0]})
        return self._addresses[rank]

    def publish(self, state: State | None) -> None:
        """Set the state of this rank."""
        self._store.set(f"where/{self._rank}", json.dumps(state))

    def publish_sign(self, number: int) -> None:
        """Set a sign of life of this rank: the number of its answers."""
        self._store.set(f"sign/{self._rank}", str(number))

    def of(self, ranks: Iterable[int]) -> dict[int, State]:
        """Return the states of ranks that have published one, have given a sign, or have left."""
        members = [rank for rank in ranks if rank != self._rank]
        names = [f"{kind}/{rank}" for kind in ("where", "sign", "left") for rank in members]
        texts = [value.decode() for value in self._store.multi_get(names)] if members else []
        states: dict[int, State] = {}
        for at, rank in enumerate(members):
            state, sign, left = json.loads(texts[at]), texts[at + len(members)], texts[at + 2 * len(members)]
            if state or sign or left:
                states[rank] = {**(state or {}), "left": bool(left), "sign": sign or None}
        return states

    def _get(self, kind: str, ranks: Iterable[int]) -> list[str]:
        return [value.decode() for value in self._store.multi_get([f"{kind}/{rank}" for rank in ranks])]
