"""Exchanges whose facts are new (kind, dtype, shape, root, or what came before): they begin when all ranks that take part say the same.

gloo adds sums to maxima and floats to integers, and fills what is too long with what lay there. Whoever has new facts counts itself in the
store, under a name made of them; the last one says that all agree, and the exchange begins. One that disagrees never begins, so that no
number comes out of it in any rank, and `watch` names both sides. What is known already costs a look into a set.
"""
from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch

from torchspore.distributed.comm.pending_collectives import Waiting, ways

BITS = 12
MASK = (1 << 4 * BITS) - 1
"""The history of an exchange: the numbers of it and of the three before it, in one."""
MOST = 1024
"""So many orders of known facts are compared in a group; programs whose exchanges are random have more."""
SOON, AT_LAST = 0.0001, 0.02
"""Seconds between two looks whether all agree."""


class Stream:
    """The exchanges of one group, or between two processes of one: all who take part see the same ones in the same order."""

    def __init__(self) -> None:
        self.number = 0
        self._known_claims: dict[Any, int] = {}
        self._orders: set[int] = set()
        self._order = 0

    def is_new(self, fact: Any) -> bool:
        """Return whether nothing was known of such an exchange, or of one that comes after these."""
        self.number += 1
        known_claims = self._known_claims
        at = known_claims.get(fact)
        is_new = at is None
        if at is None:
            at = known_claims[fact] = len(known_claims) + 1
        self._order = (self._order << BITS | at & 0xFFF) & MASK
        if self._order not in self._orders and len(self._orders) < MOST:
            self._orders.add(self._order)
            return True
        return is_new


class PendingExchange:
    """An exchange that begins later; waited for as one of torch's."""

    def __init__(self, start: Callable[[], Any], claims: list[tuple[str, int]]) -> None:
        self._start, self.claims = start, claims
        self.open: list[str] = []
        """Texts that other processes have not sent yet."""
        self.is_free = False
        self._work: Any = None
        self._error: Exception | None = None
        self._has_begun = threading.Event()

    def begin(self) -> None:
        """Begins it."""
        try:
            self._work = self._start()
        except Exception as error:                        # in a thread of its own: who waits is to hear of it, whatever it is
            self._error = error if isinstance(error, RuntimeError) else RuntimeError(str(error))
        self._start = _nothing
        self._has_begun.set()

    def give_up(self, error: Exception) -> None:
        """Lets those who wait for it know that it will not begin."""
        self._error = self._error or error
        self._has_begun.set()

    def begin_anyway(self) -> None:
        """Lets it begin whatever others say."""
        self.is_free = True

    @property
    def has_begun(self) -> bool:
        """True if all who take part agree."""
        return self._has_begun.is_set()

    def wait(self, patience: timedelta | None = None) -> None:
        """Waits until it is over. Raises RuntimeError."""
        begun = time.monotonic()
        if not self._has_begun.wait(None if patience is None else patience.total_seconds()):
            raise RuntimeError("Timed out: not all ranks have begun it")
        if self._error is not None:
            raise self._error
        if self._work is None:
            return
        if patience is None:
            self._work.wait()
        else:
            self._work.wait(max(patience - timedelta(seconds=time.monotonic() - begun), timedelta(milliseconds=1)))

    def is_completed(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        return self._error is not None or (self.has_begun and (self._work is None or bool(self._work.is_completed())))


def _nothing() -> None:
    return None


class Handshake:
    """The exchanges that this process has seen, and those that have not begun yet."""

    def __init__(self, store: Any, rank: int) -> None:
        self._store, self._rank = store, rank
        self._streams: dict[Any, Stream] = {}
        self._lengths: set[Any] = set()
        self._lock = threading.Lock()
        self._lines: dict[str, collections.deque[PendingExchange]] = {}
        """Those that have not begun, by what they must keep their order in."""
        self._claims: queue.SimpleQueue[PendingExchange | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    # ---- what is new

    def stream(self, name: Any) -> Stream:
        """The exchanges that have this name."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream()
        return stream

    def look(self, waiting: Waiting) -> None:
        """Notes what is new about an exchange of a whole group."""
        is_new = self.stream(waiting.key).is_new((waiting.kind, waiting.sent, waiting.terms))
        lengths = (waiting.key, waiting.lengths)
        if not is_new and (waiting.lengths is None or lengths in self._lengths):
            return
        claim_key = f"{waiting.key} {waiting.number}"
        if is_new:
            waiting.claims = [(f"{claim_key}/{waiting.claim}", len(waiting.ranks))]
        if waiting.lengths is not None:
            self._lengths.add(lengths)
            claims = waiting.claims = waiting.claims or []
            for way, length in zip(ways(waiting.ranks, self._rank), (*waiting.lengths[0], *waiting.lengths[1])):
                pending = (waiting.key, way, length)
                if pending not in self._lengths and way != f"{self._rank}>{self._rank}":
                    self._lengths.add(pending)
                    claims.append((f"{claim_key}:{way}/{length}", 2))

    def look_at_pair(self, waiting: Waiting, way: str, fact: str) -> list[tuple[str, int]]:
        """Notes what goes between two processes; gives what is new about it."""
        stream = self.stream((waiting.key, way))
        is_new = stream.is_new(fact)
        name = f"{waiting.key} {way} {stream.number}"
        waiting.pairs[name] = fact
        return [(f"{name}/{fact}", 2)] if is_new else []

    def ways(self) -> dict[str, int]:
        """How often something went from one process to another so far, by the names of the ways."""
        return {f"{name[0]} {name[1]}": stream.number for name, stream in list(self._streams.items()) if isinstance(name, tuple)}

    # ---- what begins later

    def start(self, line: str, claims: list[tuple[str, int]] | None, start: Callable[[], Any]) -> Any:
        """Begins an exchange now, where nothing is new about it and none of its line waits; gives what it is waited for by."""
        if not claims and line not in self._lines:
            return start()
        pending = PendingExchange(start, claims or [])
        with self._lock:
            if not claims and line not in self._lines:
                return start()
            self._lines.setdefault(line, collections.deque()).append(pending)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="torchspore firsts", daemon=True)
            self._thread.start()
        self._claims.put(pending)
        return pending

    @torch.no_grad()
    def _run(self) -> None:
        pause = SOON
        while True:
            try:
                received = self._claims.get(timeout=pause if self._lines else None)
            except queue.Empty:
                received, pause = _NONE, min(2 * pause, AT_LAST)
            if received is None:
                return
            if received is not _NONE:
                self._claim(received)
                pause = SOON
            for line in list(self._lines):
                self._begin(line)

    def _claim(self, pending: PendingExchange) -> None:
        """Says what is new here; what all have said by then is agreed."""
        try:
            for name, count in pending.claims:
                if int(self._store.add(f"first/{name}", 1)) == count:
                    self._store.set(f"agreed/{name}", "")
                else:
                    pending.open.append(f"agreed/{name}")
        except RuntimeError:
            pending.open = []                                 # who served the store is gone; the exchange itself will say so
        pending.claims = []

    def _begin(self, line: str) -> None:
        """Begins those of a line that all agree about."""
        while True:
            pending = self._lines[line][0]
            if pending.claims or not self._is_agreed(pending):
                return
            with self._lock:                              # whoever finds the line gone may begin the next one
                pending.begin()
                self._lines[line].popleft()
                if not self._lines[line]:
                    del self._lines[line]
                    return

    def _is_agreed(self, pending: PendingExchange) -> bool:
        try:
            while pending.open and self._store.check([pending.open[-1]]):
                pending.open.pop()
        except RuntimeError:
            pending.open = []
        return pending.is_free or not pending.open

    def end(self) -> None:
        """Ends the thread, and what has not begun."""
        if self._thread is None:
            return
        self._claims.put(None)
        self._thread.join(1.0)
        for line in self._lines.values():
            for pending in line:
                pending.give_up(RuntimeError("not all ranks have begun it"))


_NONE = PendingExchange(_nothing, [])
