"""Exchanges that this process waits in, as reported to the others; and a thread that waits for those that gloo would give up."""
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
    """How many exchanges of the group came before it in this process."""
    kind: str
    sent: Any
    """The (dtype, shape) of the tensor that it sends; None if the kind describes it completely."""
    ranks: tuple[int, ...]
    since: float = field(default_factory=time.monotonic)
    others: tuple[int, ...] = ()
    """The ranks it waits for, where these are not the whole group."""
    lengths: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """How much of axis 0 it sends to each of the group, and receives."""
    pairs: dict[str, str] = field(default_factory=dict)
    """The messages between two processes, by a name that both use."""
    departed: list[int] = field(default_factory=list)
    """Who had left when this process looked last."""
    claims: list[tuple[str, int]] | None = None
    """The texts about it that this process sends for the first time, and how many processes send the same; see `handshake`."""
    terms: str = ""
    """The settings that its numbers depend on; see `reduction_terms`."""

    @property
    def fact(self) -> str:
        """Its kind, and what it sends: the same in every rank, where all ranks wait in it."""
        return self.kind if self.sent is None else f"{self.kind} of {shown(*self.sent)}"

    @property
    def claim(self) -> str:
        """The same, with what its numbers are made with: what is compared."""
        return f"{self.fact} {self.terms}" if self.terms else self.fact

    @property
    def what(self) -> str:
        """The same, with what is of this rank alone."""
        if self.lengths is None:
            return self.fact
        return f"{self.fact} that sends {short(list(self.lengths[0]))} and receives {short(list(self.lengths[1]))}"

    @property
    def group(self) -> str:
        """The name of its group."""
        return name_of(self.key)

    def facts(self, rank: int) -> dict[str, str]:
        """What is said of it in `rank`, by names that the others have for the same."""
        if self.others:
            return self.pairs
        claim_key = f"{self.key} {self.number}"
        facts = {claim_key: self.claim}
        if self.lengths is not None:
            for way, length in zip(ways(self.ranks, rank), (*self.lengths[0], *self.lengths[1])):
                facts[f"{claim_key}:{way}"] = str(length)
        return facts


PAIRS = "/pairs"
"""The end of a group's key that stands for exchanges between two of its processes."""


def name_of(key: str) -> str:
    """The name of the group that has this key."""
    return key.removesuffix(PAIRS).partition(":")[0]


def ways(ranks: tuple[int, ...], rank: int) -> list[str]:
    """Names for what `rank` sends to each of the ranks, and then for what it receives from each."""
    return [f"{rank}>{other}" for other in ranks] + [f"{other}>{rank}" for other in ranks]


def shown(dtype: Any, shape: Any) -> str:
    """A tensor's dtype and shape, as messages have them."""
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}"


class Done:
    """How a wait in another thread ended."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.error: Exception | None = None


class Waiter:
    """A thread that waits for what it is given."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[list[Any], Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="torchspore pairs", daemon=True)
        self._thread.start()

    def give(self, works: list[Any]) -> Done:
        """Begins to wait for these."""
        done = Done()
        self._jobs.put((works, done))
        return done

    def end(self) -> None:
        """Ends the thread: one that comes back from gloo while Python ends would take the process with it."""
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
