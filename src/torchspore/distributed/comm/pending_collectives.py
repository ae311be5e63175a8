"""The record of an exchange that this process waits in, and a thread that waits for messages that gloo would cancel after a time limit."""
from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from torchspore.base.text import short


@dataclass
class Waiting:
    """One exchange that this process waits in."""

    key: str
    number: int
    """The number of the exchange among those of the group in this process."""
    kind: str
    sent: Any
    """The (dtype, shape) of the tensor that it sends; None if the kind describes it completely."""
    ranks: tuple[int, ...]
    since: float = field(default_factory=time.monotonic)
    others: tuple[int, ...] = ()
    """The ranks that it waits for, if they are not the entire group."""
    lengths: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """The lengths of axis 0 that it sends to each rank of the group, and those that it receives."""
    pairs: dict[str, str] = field(default_factory=dict)
    """The messages between two processes, by a name that both use."""
    departed: list[int] = field(default_factory=list)
    """The ranks that had left at the last read of the states."""
    claims: list[tuple[str, int]] | None = None
    """The texts about it that this process sends for the first time, and how many processes send the same; see `handshake`."""
    terms: str = ""
    """The settings that its numbers depend on; see `reduction_terms`."""

    @property
    def fact(self) -> str:
        """The kind of the exchange and the tensor that it sends: equal in all ranks of a correct program."""
        return self.kind if self.sent is None else f"{self.kind} of {shown(*self.sent)}"

    @property
    def claim(self) -> str:
        """The fact with the settings that the numbers depend on; the handshake compares it."""
        return f"{self.fact} {self.terms}" if self.terms else self.fact

    @property
    def what(self) -> str:
        """The fact with the lengths, which belong to this rank."""
        if self.lengths is None:
            return self.fact
        return f"{self.fact} that sends {short(list(self.lengths[0]))} and receives {short(list(self.lengths[1]))}"

    @property
    def group(self) -> str:
        """The name of the group."""
        return name_of(self.key)

    def facts(self, rank: int) -> dict[str, str]:
        """Return the facts about the exchange in `rank`, by keys that all ranks use for it."""
        if self.others:
            return self.pairs
        claim_key = f"{self.key} {self.number}"
        facts = {claim_key: self.claim}
        if self.lengths is not None:
            for way, length in zip(ways(self.ranks, rank), (*self.lengths[0], *self.lengths[1])):
                facts[f"{claim_key}:{way}"] = str(length)
        return facts


PAIRS = "/pairs"
"""The suffix of a group's key for messages between two of its processes."""


def name_of(key: str) -> str:
    """Return the name of the group with this key."""
    return key.removesuffix(PAIRS).partition(":")[0]


def ways(ranks: tuple[int, ...], rank: int) -> list[str]:
    """Return the names of the directions from `rank` to each of the ranks, and then from each to `rank`."""
    return [f"{rank}>{other}" for other in ranks] + [f"{other}>{rank}" for other in ranks]


def shown(dtype: Any, shape: Any) -> str:
    """Return a tensor's dtype and shape as messages show them."""
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}"


class Done:
    """The result of a wait in another thread."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.error: Exception | None = None


class Waiter:
    """A thread that waits for handles."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[list[Any], Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="torchspore pairs", daemon=True)
        self._thread.start()

    def give(self, works: list[Any]) -> Done:
        """Start to wait for these handles."""
        done = Done()
        self._jobs.put((works, done))
        return done

    def end(self) -> None:
        """End the thread. A thread that returns from gloo while Python ends would crash the process."""
        self._jobs.put(None)
        self._thread.join(1.0)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            works, done = job
            try:
                for work in works:
                    work.wait()
            except RuntimeError as error:
                done.error = error
            done.over.set()
            del works, done, job                           # they hold tensors
