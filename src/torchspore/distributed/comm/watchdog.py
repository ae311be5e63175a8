"""Exchanges that do not end: who waits where, who is somewhere else, who is gone. Nothing is sent before one of them is late.

A rank that has waited LATE seconds writes its position into the store, and reads the positions of its group. Two ranks in
different exchanges, or say different things of one, will wait for ever: both say so. A rank that is in no exchange is asked for its line; a
thread answers for it. What is new about an exchange is compared before it begins (`firsts`).
"""
from __future__ import annotations

import collections
import contextlib
import json
import os
import socket
import sys
import threading
import time
from datetime import timedelta
from typing import Any

from torchspore.base.frames import is_users, user_line
from torchspore.base.text import with_hint
from torchspore.distributed.comm import deadlock_detection, peer_liveness, reduction_terms
from torchspore.distributed.comm.handshake import Handshake, PendingExchange
from torchspore.distributed.comm.pending_collectives import PAIRS, Waiter, Waiting, name_of, shown
from torchspore.errors import CommunicationError

__all__ = ["PAIRS", "Waiting", "Watchdog", "shown", "watch"]
LATE = 2.0
"""Seconds after which a rank looks where the others are."""
RETRY_SECONDS = 0.5
"""Seconds between two looks."""
HEARS = 0.5
"""Seconds after which a wait in C is looked up from: Python hears Ctrl-C then."""
BEGUN = 64
"""So many exchanges of a group are remembered."""
LOST = 20.0
"""Seconds without a sign of life after which a process that can't be reached counts as lost."""


class Watchdog:
    """Observes the other processes on behalf of this one."""

    def __init__(self, store: Any, rank: int, size: int, seconds: float, host: str = "127.0.0.1") -> None:
        self.store, self.rank, self.seconds = store, rank, seconds
        self._shared_store = store.clone()
        self.firsts = Handshake(store.clone(), rank)
        self._door = peer_liveness.Door(host)
        self._shared_store.set(f"process/{rank}", json.dumps([socket.gethostname(), os.getpid(), *self._door.address]))
        self._states: dict[int, tuple[str, int]] = {}
        self._doors: dict[int, tuple[str, int]] = {}
        self._signs: dict[int, tuple[str, float]] = {}
        self._errand: peer_liveness.Errand[dict[int, dict[str, Any]]] | None = None
        self._answered = time.monotonic()
        """When the store has last answered."""
        self._size = size
        self.terms = reduction_terms.Terms()
        self._numbers: dict[str, int] = {}
        self._begun: dict[str, collections.deque[Waiting]] = {}
        """By group the last exchanges that have begun: several may be on their way when one is waited for."""
        self._published: dict[str, Any] | None = None
        self._suspect: Any = None
        self._ring: list[tuple[int, dict[str, Any]]] = []
        """The ranks that wait for one another, as this process found them when it looked last."""
        self._suspected_ring: Any = None
        self._main = threading.get_ident()
        self.is_broken = False
        """True if an exchange has failed: what still runs of it can't be ended."""
        self._waiter: Waiter | None = None
        self._over = threading.Event()
        self._answering = threading.Thread(target=self._answer, name="torchspore ranks", daemon=True)
        self._answering.start()

    def know(self) -> None:
        """Keeps which processes the others are, to tell later which of them is gone: the store may be gone with it."""
        if self._size <= 64:
            for rank, state in enumerate(self._shared_store.multi_get([f"process/{rank}" for rank in range(self._size)])):
                host, process, address, port = json.loads(state)
                self._states[rank], self._doors[rank] = (host, process), (address, port)

    def begin(self, key: str, kind: str, sent: Any, ranks: tuple[int, ...], others: tuple[int, ...] = (), lengths: Any = None) -> Waiting:
        """Notes that an exchange begins."""
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        waiting = Waiting(key, number, kind, sent, ranks, others=others, lengths=lengths)
        if sent is not None or lengths is not None:
            waiting.terms = self.terms.of(key)
        begun = self._begun.get(key)
        if begun is None:
            begun = self._begun[key] = collections.deque(maxlen=BEGUN)
        begun.append(waiting)
        return waiting

    def finish(self, work: Any, waiting: Waiting) -> None:
        """Waits for an exchange. Raises CommunicationError where it can't end."""
        step, was_over = _patience(work), False
        while True:
            try:
                work.wait(timedelta(seconds=min(step, HEARS)))
                break
            except RuntimeError as error:
                if was_over:
                    raise self.lost(waiting, error) from None
                was_over = work.is_completed()            # it may have ended well just after the wait, which the next one says
            step -= HEARS
            if not was_over and step <= 0:
                self._late(waiting, work)
                step = RETRY_SECONDS
        self._done()

    def finish_pairs(self, works: list[Any], waiting: Waiting) -> None:
        """Waits for sendings and receivings. gloo gives one up where its wait is cut short, so a thread of its own waits for them."""
        if self._waiter is None:
            self._waiter = Waiter()
        done = self._waiter.give(works)
        step = _patience(*works)
        while not done.over.wait(step):
            self._late(waiting, *works)
            step = RETRY_SECONDS
        if done.error is not None:
            raise self.lost(waiting, done.error) from None
        self._done()

    # ---- late

    def _done(self) -> None:
        """Takes back what was said about an exchange that is over now."""
        if self._published is not None and (self._errand is None or self._errand.is_over):
            with contextlib.suppress(RuntimeError):
                peer_liveness.Errand(lambda: self._tell(None)).result()

    def _late(self, waiting: Waiting, *works: Any) -> None:
        """Looks where the others are. Raises CommunicationError where they will not come."""
        waited, where = time.monotonic() - waiting.since, self._answers_of(self._here(waiting), waiting)
        for rank, other in where.items():
            contradiction = self._contradicted(waiting, other)
            if contradiction is not None:
                raise self._mismatch(contradiction[0], rank, {**other, **contradiction[1]})
            if other["left"] and rank in waiting.departed:    # what it sent before may be on its way at the first look
                raise self._error(waiting, f"rank {rank} has left: its program has ended, or has called release()")
        waiting.departed = [rank for rank, other in where.items() if other["left"]]
        seen = [(rank, other["key"], other["number"]) for rank, other in where.items() if self._is_stuck(waiting, other)]
        if seen and seen == self._suspect:
            raise self._mismatch(waiting, seen[0][0], where[seen[0][0]])
        self._suspect = seen
        ring = [(rank, other["key"], other["number"]) for rank, other in self._ring]
        if ring and ring == self._suspected_ring:
            time.sleep(2 * RETRY_SECONDS)                         # the others shall find the same, and not that this one is gone
            raise self._error(waiting, *deadlock_detection.words(self._ring))
        self._suspected_ring = ring
        if not _have_begun(works) and self._dead(waiting):
            raise self._parted(waiting)                   # it runs in nobody's sockets yet, which would say so
        if waited > self.seconds:
            raise self._error(waiting, f"that is more than {self.seconds:g} s. {self._absent(waiting, where)}")
        if waited > LOST and self._reach(waiting, where):
            for work in works:
                if isinstance(work, PendingExchange):
                    work.begin_anyway()                   # who gives no sign may be gone, which its sockets know

    def _here(self, waiting: Waiting) -> dict[str, Any]:
        """Where this rank is, for the others to read."""
        return {
            "key": waiting.key, "number": waiting.number, "what": waiting.what, "line": user_line(), "numbers": dict(self._numbers),
            "ranks": sorted({self.rank, *(waiting.others or waiting.ranks)}), "names": list(waiting.facts(self.rank)),
            "facts": {name: (fact, owner.number, owner.what) for name, (fact, owner) in self._facts(waiting).items()},
            "ways": self.firsts.ways(), "terms": self.terms.statements,
        }

    def _facts(self, waiting: Waiting) -> dict[str, tuple[str, Waiting]]:
        """Return the reports of this rank about the exchanges that it has begun."""
        begun = [waits for of_group in list(self._begun.values()) for waits in list(of_group)]
        return {name: (fact, owner) for owner in [*begun, waiting] for name, fact in owner.facts(self.rank).items()}

    def _contradicted(self, waiting: Waiting, other: dict[str, Any]) -> tuple[Waiting, dict[str, Any]] | None:
        """The first exchange that another rank has begun as a different one, and which; None where there is none.

        In graphs exchanges begin early, so that what is waited for may be another than the one that differs.
        """
        theirs = other.get("facts") or {}
        for name, (fact, local_waiting) in self._facts(waiting).items():
            if theirs.get(name, (fact,))[0] != fact:
                return local_waiting, {"key": local_waiting.key, "number": theirs[name][1], "what": theirs[name][2]}
        return None

    def _is_stuck(self, waiting: Waiting, other: dict[str, Any]) -> bool:
        """Return whether another rank waits for this one in an exchange that has not begun here, and has not begun this one's."""
        if not other.get("what") or other["key"] == waiting.key or self.rank not in other["ranks"] or self._has_come(waiting, other):
            return False
        if other["key"].endswith(PAIRS):
            return not self._facts(waiting).keys() & set(other["names"])
        return self._numbers.get(other["key"], 0) < other["number"]

    def _has_come(self, waiting: Waiting, other: dict[str, Any]) -> bool:
        """Return whether another rank has begun this exchange too."""
        if waiting.key.endswith(PAIRS):
            return bool(waiting.facts(self.rank).keys() & other.get("facts", {}).keys())
        return other.get("numbers", {}).get(waiting.key, 0) >= waiting.number

    def _answers_of(self, local_state: dict[str, Any], waiting: Waiting) -> dict[int, dict[str, Any]]:
        """Says where this rank is, and gives where the others are: nothing where the store does not answer."""
        def ask() -> dict[int, dict[str, Any]]:
            self._tell(local_state)
            self._shared_store.set("asked", "1")
            self._ring = deadlock_detection.ring(self.rank, lambda rank: local_state if rank == self.rank else self._state_of(rank))
            return self._where(waiting)

        try:
            if self._errand is None or self._errand.is_over:
                self._errand = peer_liveness.Errand(ask)
            answer = self._errand.result()
        except RuntimeError:
            return {}                                     # who served the store is gone; the exchange itself will say so
        if answer is None:
            return {}
        self._errand, self._answered = None, time.monotonic()
        return answer

    def _reach(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> bool:
        """Return whether a rank has given no sign of life for long. Raises CommunicationError where its machine does not answer."""
        is_silent, now = False, time.monotonic()
        store_is_silent = now - self._answered > LOST
        for rank in waiting.others or waiting.ranks:
            sign = where.get(rank, {}).get("sign")
            if sign is not None and self._signs.get(rank, ("", 0.0))[0] != sign:
                self._signs[rank] = sign, now
            since = max(self._signs.get(rank, ("", 0.0))[1], waiting.since)
            door = self._doors.get(rank, ("", 0))
            if rank == self.rank or not door[1] or now - since < LOST or (where.get(rank, {}).get("what") and not store_is_silent):
                continue
            if not peer_liveness.answers(door):
                raise self._error(
                    waiting, f"rank {rank} can't be reached: its machine ({door[0]}) does not answer",
                    "look whether that machine is up, and at the network between the two",
                )
            is_silent = True
        return is_silent

    def _tell(self, local_state: dict[str, Any] | None) -> None:
        if local_state != self._published:
            self._shared_store.set(f"where/{self.rank}", json.dumps(local_state))
            self._published = local_state

    def _where(self, waiting: Waiting) -> dict[int, dict[str, Any]]:
        """Where the others of the group are, those that have said so."""
        answers: dict[int, dict[str, Any]] = {}
        for rank in waiting.others or waiting.ranks:
            if rank == self.rank:
                continue
            state = self._state_of(rank)
            has_departed = self._shared_store.check([f"left/{rank}"])
            sign = self._shared_store.get(f"sign/{rank}").decode() if self._shared_store.check([f"sign/{rank}"]) else None
            if state is not None or has_departed or sign is not None:
                answers[rank] = {**(state or {}), "left": has_departed, "sign": sign}
        return answers

    def _state_of(self, rank: int) -> dict[str, Any] | None:
        """Where a rank says that it is; None where it has said nothing."""
        state = json.loads(self._shared_store.get(f"where/{rank}")) if self._shared_store.check([f"where/{rank}"]) else None
        return state or None

    def _absent(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> str:
        parts = []
        for rank in waiting.others or waiting.ranks:
            other = where.get(rank, {})
            if rank == self.rank or self._has_come(waiting, other):
                continue
            parts.append(f"rank {rank} has not come to it" + (f": it is at {other['line']}" if other.get("line") else ""))
        return "; ".join(parts) or "All ranks are in it: the network does not carry it"

    def _mismatch(self, waiting: Waiting, rank: int, other: dict[str, Any]) -> CommunicationError:
        time.sleep(2 * RETRY_SECONDS)                             # the other one shall find the same, and not that this one is gone
        if (other["key"], other["number"]) == (waiting.key, waiting.number) and other["what"].startswith(waiting.fact):
            difference = reduction_terms.words(waiting.key, self.terms.statements, rank, other.get("terms") or {})
            if difference:
                return self._error(waiting, difference, reduction_terms.HINT)
        return self._error(
            waiting, f"rank {rank} is in {other['what']} over {name_of(other['key'])} (its number {other['number']}) at {other['line']}",
            "every rank of a group must call the same exchanges in the same order, of equal shapes and dtypes",
        )

    def _error(self, waiting: Waiting, text: str, hint: str | None = None) -> CommunicationError:
        self.is_broken, waited = True, time.monotonic() - waiting.since
        texts = (
            f"{user_line()}: rank {self.rank} waits in {waiting.what} over {waiting.group} (its number {waiting.number}) "
            f"for {waited:.1f} s; {text}."
        )
        return CommunicationError(texts if hint is None else with_hint(texts, hint))

    # ---- gone

    def unmet(self, error: Exception, call: str, key: str, ranks: tuple[int, ...]) -> CommunicationError:
        """The error for `call`, in which connections to some ranks were made and one of them left."""
        with contextlib.suppress(RuntimeError):
            peer_liveness.Errand(self.know).result()               # in `init()` it is not known yet who the others are
        return self.lost(Waiting(key, 1, call, None, ranks), error)

    def lost(self, waiting: Waiting, error: Exception) -> CommunicationError:
        """The error for an exchange that failed with `error`."""
        self.is_broken, error_text = True, str(error)
        if any(word in error_text for word in ("onnection", "Connect timeout", "closed", "reset", "pipe")):
            return self._parted(waiting)
        if "imed out" in error_text:
            where = self._answers_of(self._published or {}, waiting)
            return self._error(waiting, f"that is more than {self.seconds:g} s. {self._absent(waiting, where)}")
        first = error_text.strip().splitlines()[0] if error_text.strip() else type(error).__name__
        return CommunicationError(f"{_at(waiting, self.rank)}, which failed: {first}.")

    def _parted(self, waiting: Waiting) -> CommunicationError:
        """The error for an exchange in which another rank is gone."""
        self.is_broken = True
        who, other = peer_liveness.Errand(lambda: self._who(waiting)).result(2 * peer_liveness.PATIENCE) or ("another rank is gone", None)
        if other is not None:
            return self._mismatch(*other)
        hint = "what ended it stands in its own output, worker_N.log under the launcher"
        return CommunicationError(with_hint(f"{_at(waiting, self.rank)} when {who}.", hint))

    def _who(self, waiting: Waiting) -> tuple[str, tuple[Waiting, int, dict[str, Any]] | None]:
        """Who is gone, in words; and a rank that was in another exchange when it went, and in which."""
        gone = self._gone(waiting)
        other = self._last_words(waiting)
        who = f"rank {gone} is gone" if gone is not None else self._leaver(waiting)
        if other is None:
            self._tell_lost(gone)
        return who, other

    def _leaver(self, waiting: Waiting) -> str:
        try:
            departed = [rank for rank, other in self._where(waiting).items() if other["left"]]
        except RuntimeError:
            departed = []
        return f"rank {departed[0]} left: its program has ended" if departed else "another rank is gone"

    def _last_words(self, waiting: Waiting) -> tuple[Waiting, int, dict[str, Any]] | None:
        """A rank that was in another exchange when it went, and in which."""
        try:
            where = self._where(waiting)
        except RuntimeError:
            return None
        for rank, other in where.items():
            contradiction = self._contradicted(waiting, other)
            if contradiction is not None:
                return contradiction[0], rank, {**other, **contradiction[1]}
            if self._is_stuck(waiting, other):
                return waiting, rank, other
        return None

    def _gone(self, waiting: Waiting) -> int | None:
        until = time.monotonic() + 0.5
        while True:
            dead = self._dead(waiting)
            if dead:
                return self._first_of(dead)
            if time.monotonic() > until:
                return None
            time.sleep(0.02)                              # a process closes its connections before it is gone

    def _dead(self, waiting: Waiting) -> list[int]:
        """The ranks of an exchange whose processes ran on this machine, and do no more."""
        here = socket.gethostname()
        return [
            rank for rank, (host, process) in self._states.items()
            if rank in waiting.ranks and rank != self.rank and host == here and not _is_alive(process)
        ]

    def _tell_lost(self, gone: int | None) -> None:
        """Leaves word that this rank ends because another one is gone: who finds it gone looks for the other."""
        try:
            self._shared_store.set(f"lost/{self.rank}", str(gone))
        except RuntimeError:
            pass                                          # who served the store is gone

    def _first_of(self, dead: list[int]) -> int:
        """Who of them was gone first: the one that has left no word, or whom the others name."""
        try:
            reasons = {rank: self._shared_store.get(f"lost/{rank}").decode() for rank in dead if self._shared_store.check([f"lost/{rank}"])}
        except RuntimeError:
            return dead[0]
        silent = [rank for rank in dead if rank not in reasons]
        named = [int(gone) for gone in reasons.values() if gone != "None"]
        return (silent or named or dead)[0]

    # ---- answering

    def _answer(self) -> None:
        """Says where this process is, once somebody asks, while it is in no exchange."""
        answered, signs = False, 0
        while not self._over.wait(1.0):
            try:
                if not self._shared_store.check(["asked"]):
                    continue
                signs += 1
                self._shared_store.set(f"sign/{self.rank}", str(signs))
                if self._published is None or (answered and "what" not in self._published):
                    line = self._line()
                    if line is not None and self._published is None:
                        self._shared_store.set(f"where/{self.rank}", json.dumps({"line": line}))
                        answered = True
            except RuntimeError:
                return

    def _line(self) -> str | None:
        frame = sys._current_frames().get(self._main)
        while frame is not None:
            if is_users(frame.f_code.co_filename):
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return None

    def end(self) -> None:
        """Ends the threads."""
        self._over.set()
        self.firsts.end()
        self._door.close()
        if self._waiter is not None:
            self._waiter.end()
        if threading.current_thread() is not self._answering:
            self._answering.join(2.0)


def _at(waiting: Waiting, rank: int) -> str:
    return f"{user_line()}: rank {rank} was in {waiting.what} over {waiting.group} (its number {waiting.number})"


def _have_begun(works: Any) -> bool:
    return all(not isinstance(work, PendingExchange) or work.has_begun for work in works)


def _patience(*works: Any) -> float:
    """After how long to look where the others are: sooner where nothing runs yet that would say who is gone."""
    return LATE if _have_begun(works) else min(RETRY_SECONDS, LATE)


_EXITING = 0x4
"""The kernel's flag of a process that is on its way out: it has it before its connections are closed."""


def _is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            state, *_, flags = file.read().rpartition(")")[2].split()[:7]
            return state not in ("Z", "X") and not int(flags) & _EXITING
    except FileNotFoundError:
        return False
    except OSError:
        return True


watch: Watchdog | None = None
"""That of this process, while it is one of several."""
