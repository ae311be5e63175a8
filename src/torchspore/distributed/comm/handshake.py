"""The comparison of an exchange between ranks before it starts, if this process has not seen its claim before.

A claim names the kind, dtype, shape and root of an exchange and the exchanges before it. gloo does not compare them: it adds sums to maxima
and floats to integers, and returns uninitialized memory for lengths that differ. A rank with a new claim increments a counter in the store
under the claim's name. The rank that completes the counter marks the claim as agreed, and the exchange starts. An exchange on which the
ranks disagree never starts, so no rank computes a wrong number, and the watchdog names both sides. A known claim costs one set lookup.
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
from torchspore.distributed.comm.rank_states import slowed

BITS = 12
MASK = (1 << 4 * BITS) - 1
"""Selects the history of an exchange: the numbers of its claim and of the three claims before it, packed into an integer."""
MOST = 1024
"""The number of different histories that a group compares; programs with random exchanges have more."""
SOON, AT_LAST = 0.0001, 0.02
"""The shortest and the longest pause in seconds between two checks of the store, the latter in a small job."""


class Stream:
    """The exchanges of a group, or between two of its processes: all participants see the same exchanges in the same order."""

    def __init__(self) -> None:
        self.number = 0
        self._known_claims: dict[Any, int] = {}
        self._orders: set[int] = set()
        self._order = 0

    def is_new(self, fact: Any) -> bool:
        """Count an exchange; return whether its fact, or its fact after the last three, is new."""
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
    """An exchange that starts later. It has the methods of a handle of torch."""

    def __init__(self, start: Callable[[], Any], claims: list[tuple[str, int]]) -> None:
        self._start, self.claims = start, claims
        self.open: list[str] = []
        """The store's keys that other processes have not set yet."""
        self.is_free = False
        self._work: Any = None
        self._error: Exception | None = None
        self._has_begun = threading.Event()

    def begin(self) -> None:
        """Start the exchange; `wait` raises an error of the start."""
        try:
            self._work = self._start()
        except Exception as error:                        # this thread has no caller: `wait` raises the error
            self._error = error if isinstance(error, RuntimeError) else RuntimeError(str(error))
        self._start = _nothing
        self._has_begun.set()

    def give_up(self, error: Exception) -> None:
        """Let `wait` raise `error`: the exchange will not start."""
        self._error = self._error or error
        self._has_begun.set()

    def begin_anyway(self) -> None:
        """Let the exchange start without the agreement of other ranks."""
        self.is_free = True

    @property
    def has_begun(self) -> bool:
        """True if all participants agree and the exchange has started."""
        return self._has_begun.is_set()

    def wait(self, patience: timedelta | None = None) -> None:
        """Wait for the end of the exchange, at most `patience` seconds. Raises RuntimeError if it fails or time runs out."""
        begun = time.monotonic()
        if not self._has_begun.wait(None if patience is None else patience.total_seconds()):
            raise RuntimeError("Timed out: not all ranks have started it")
        if self._error is not None:
            raise self._error
        if self._work is None:
            return
        if patience is None:
            self._work.wait()
        else:
            self._work.wait(max(patience - timedelta(seconds=time.monotonic() - begun), timedelta(milliseconds=1)))

    def is_completed(self) -> bool:
        """Return whether the exchange has ended or failed."""
        return self._error is not None or (self.has_begun and (self._work is None or bool(self._work.is_completed())))


def _nothing() -> None:
    return None


class Handshake:
    """The claims that this process has seen, and the exchanges that have not started yet."""

    def __init__(self, store: Any, rank: int, size: int = 1) -> None:
        self._store, self._rank, self._longest_pause = store, rank, slowed(AT_LAST, size)
        self._streams: dict[Any, Stream] = {}
        self._lengths: set[Any] = set()
        self._lock = threading.Lock()
        self._lines: dict[str, collections.deque[PendingExchange]] = {}
        """The exchanges that have not started. Those of one line start in order."""
        self._claims: queue.Queue[PendingExchange | None] = queue.Queue()
        """New exchanges. Not a SimpleQueue, whose `get` waits forever if its time runs out just before it takes the lock (CPython)."""
        self._thread: threading.Thread | None = None
        self._failure: RuntimeError | None = None
        """The error that ended the thread."""

    # ---- new claims

    def stream(self, name: Any) -> Stream:
        """Return the stream with this name; create it if it is new."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream()
        return stream

    def collect_claims(self, waiting: Waiting) -> None:
        """Set `waiting.claims` to the new claims of an exchange of all ranks of a group."""
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

    def collect_pair_claims(self, waiting: Waiting, way: str, fact: str) -> list[tuple[str, int]]:
        """Record a message between two processes in `waiting.pairs`; return its new claims."""
        stream = self.stream((waiting.key, way))
        is_new = stream.is_new(fact)
        name = f"{waiting.key} {way} {stream.number}"
        waiting.pairs[name] = fact
        return [(f"{name}/{fact}", 2)] if is_new else []

    def ways(self) -> dict[str, int]:
        """Return the number of messages from one process to another so far, by the name of the direction."""
        return {f"{name[0]} {name[1]}": stream.number for name, stream in list(self._streams.items()) if isinstance(name, tuple)}

    # ---- exchanges that start later

    def start(self, line: str, claims: list[tuple[str, int]] | None, start: Callable[[], Any]) -> Any:
        """Start an exchange now if it has no claims and no exchange of its line waits, otherwise later. Return its handle."""
        if self._failure is not None:
            raise self._failure
        if not claims and line not in self._lines:
            return start()
        pending = PendingExchange(start, claims or [])
        with self._lock:
            if not claims and line not in self._lines:
                return start()
            queued = self._lines.get(line)
            if queued is None:
                self._lines[line] = collections.deque([pending])   # the thread reads a line without the lock, so no line is ever empty
            else:
                queued.append(pending)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="torchspore handshake", daemon=True)
            self._thread.start()
        self._claims.put(pending)
        return pending

    def _run(self) -> None:
        try:
            self._begin_agreed_exchanges()
        except BaseException as error:                        # without this, `wait` would never return
            self._failure = RuntimeError(f"the thread that starts exchanges failed: {type(error).__name__}: {error}")
            self._fail_waiting(self._failure)
            raise

    @torch.no_grad()
    def _begin_agreed_exchanges(self) -> None:
        pause = SOON
        while True:
            try:
                received = self._claims.get(timeout=pause if self._lines else None)
            except queue.Empty:
                received, pause = _NONE, min(2 * pause, self._longest_pause)
            if received is None:
                return
            if received is not _NONE:
                self._claim(received)
                pause = SOON
            for line in list(self._lines):
                self._begin(line)

    def _claim(self, pending: PendingExchange) -> None:
        """Count the claims of an exchange in the store; mark those that all participants have counted as agreed."""
        try:
            for name, count in pending.claims:
                if int(self._store.add(f"first/{name}", 1)) == count:
                    self._store.set(f"agreed/{name}", "")
                else:
                    pending.open.append(f"agreed/{name}")
        except RuntimeError:
            pending.open = []                                 # the process with the store has ended; the exchange itself will fail
        pending.claims = []

    def _begin(self, line: str) -> None:
        """Start the first exchanges of a line that all ranks agree on."""
        while True:
            pending = self._lines[line][0]
            if pending.claims or not self._is_agreed(pending):
                return
            with self._lock:                              # `start` starts an exchange at once if its line is empty
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
        """End the thread, and fail the exchanges that have not started."""
        if self._thread is None:
            return
        self._claims.put(None)
        self._thread.join(1.0)
        self._fail_waiting(RuntimeError("not all ranks have started it"))

    def _fail_waiting(self, error: RuntimeError) -> None:
        for line in list(self._lines.values()):
            for pending in list(line):
                pending.give_up(error)


_NONE = PendingExchange(_nothing, [])
