"""Diagnosis of an exchange that does not end: it names the ranks that wait, that execute another exchange, or that have ended.

No rank sends anything before an exchange is late. A rank that has waited LATE seconds writes its state into the store and reads the states
of its group. If two ranks are in different exchanges, or describe the same exchange differently, both raise an error, because they would
wait forever. A thread of each rank publishes the rank's source line while the rank is in no exchange. `handshake` compares new exchanges
before they start.
"""
from __future__ import annotations

import collections
import contextlib
import functools
import json
import socket
import sys
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import Any

from torchspore.base.frames import is_user_file, user_line
from torchspore.base.text import with_hint
from torchspore.distributed.comm import deadlock_detection, peer_liveness, reduction_terms, torch_diagnosis
from torchspore.distributed.comm.handshake import Handshake, PendingExchange
from torchspore.distributed.comm.hang_report import HangReports
from torchspore.distributed.comm.pending_collectives import PAIRS, Waiter, Waiting, name_of, shown
from torchspore.distributed.comm.rank_states import RankStates, slowed
from torchspore.errors import CommunicationError

__all__ = ["PAIRS", "Waiting", "Watchdog", "shown", "watch"]
LATE = 2.0
"""The seconds after which a waiting rank reads the states of the others."""
RETRY_SECONDS = 0.5
"""The seconds between two reads of the states."""
HEARS = 0.5
"""The seconds after which a wait in C returns, so that Python can handle Ctrl-C."""
BEGUN = 64
"""The number of exchanges that each group remembers."""
LOST = 20.0
"""The seconds without a sign of life after which an unreachable process of a small job counts as lost."""


class Watchdog:
    """Observes the exchanges of this process and the states of the other processes."""

    def __init__(self, store: Any, rank: int, size: int, seconds: float, host: str = "127.0.0.1") -> None:
        self.store, self.rank, self.seconds = store, rank, seconds
        self._shared_store = store.clone()
        self.handshake = Handshake(store.clone(), rank, size)
        self._probe_port = peer_liveness.ProbePort(host)
        self._ranks = RankStates(self._shared_store, rank, size, self._probe_port.address)
        self._signs: dict[int, tuple[str, float]] = {}
        self._query: peer_liveness.BackgroundCall[dict[int, dict[str, Any]]] | None = None
        self._answered = time.monotonic()
        """The time of the store's last answer."""
        self._size = size
        self.terms = reduction_terms.Terms()
        self._numbers: dict[str, int] = {}
        self._begun: dict[str, collections.deque[Waiting]] = {}
        """By group, the last exchanges that have started: several may run while the process waits for one."""
        self._published: dict[str, Any] | None = None
        self._suspect: Any = None
        self._ring: list[tuple[int, dict[str, Any]]] = []
        """The ranks that wait for one another, from the last read of the states."""
        self._suspected_ring: Any = None
        self._main = threading.get_ident()
        self.is_broken = False
        """True if an exchange has failed: its running parts cannot be ended."""
        self._reports = HangReports(rank)
        self._waiter: Waiter | None = None
        self._over = threading.Event()
        self._answering = threading.Thread(target=self._answer, name="torchspore ranks", daemon=True)
        self._answering.start()

    def store_process_ids(self) -> None:
        """Store the process ids of other ranks."""
        self._ranks.collect_processes()

    def begin(self, key: str, kind: str, sent: Any, ranks: tuple[int, ...], others: tuple[int, ...] = (), lengths: Any = None) -> Waiting:
        """Record the start of an exchange."""
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
        """Wait for an exchange. Raise CommunicationError if it cannot end."""
        step, was_over = _patience(work), False
        while True:
            try:
                work.wait(timedelta(seconds=min(step, HEARS)))
                break
            except RuntimeError as error:
                if was_over:
                    raise self.lost(waiting, error) from None
                was_over = work.is_completed()            # it may have ended without an error just after the wait; the next wait decides
            step -= HEARS
            if not was_over and step <= 0:
                self._diagnose(waiting, work)
                step = slowed(RETRY_SECONDS, len(waiting.ranks))
        self._done()

    def finish_pairs(self, works: list[Any], waiting: Waiting) -> None:
        """Wait for messages between two processes. gloo cancels a message whose wait times out, so another thread waits without a limit."""
        if self._waiter is None:
            self._waiter = Waiter()
        done = self._waiter.give(works)
        step = _patience(*works)
        while not done.over.wait(step):
            self._diagnose(waiting, *works)
            step = slowed(RETRY_SECONDS, len(waiting.others))
        if done.error is not None:
            raise self.lost(waiting, done.error) from None
        self._done()

    # ---- late exchanges

    def _done(self) -> None:
        """Remove the published state of an exchange that has ended."""
        if self._published is not None and (self._query is None or self._query.is_over):
            with contextlib.suppress(RuntimeError):
                peer_liveness.BackgroundCall(lambda: self._publish(None)).result()

    def _diagnose(self, waiting: Waiting, *works: Any) -> None:
        """Read the states of the others. Raise CommunicationError if they will not join the exchange."""
        waited, where = time.monotonic() - waiting.since, self._exchange_states(self._local_state(waiting, works), waiting)
        for rank, other in where.items():
            contradiction = self._contradicted(waiting, other)
            if contradiction is not None:
                raise self._mismatch(contradiction[0], rank, {**other, **contradiction[1]})
            if other["left"] and rank in waiting.departed:    # at the first read, its last messages may still be in transit
                raise self._error(waiting, f"rank {rank} has left: its program has ended, or has called release()")
        waiting.departed = [rank for rank, other in where.items() if other["left"]]
        seen = [(rank, other["key"], other["number"]) for rank, other in where.items() if self._is_stuck(waiting, other)]
        if seen and seen == self._suspect:
            raise self._mismatch(waiting, seen[0][0], where[seen[0][0]])
        self._suspect = seen
        ring = [(rank, other["key"], other["number"]) for rank, other in self._ring]
        if ring and ring == self._suspected_ring:
            time.sleep(2 * RETRY_SECONDS)                         # the others need time to find the same ring before this rank ends
            raise self._error(waiting, *deadlock_detection.words(self._ring))
        self._suspected_ring = ring
        if not _have_begun(works) and self._dead(waiting):
            raise self._lost_rank_error(waiting)                   # it has not started, so no socket would report the lost rank
        if waited > self.seconds:
            raise self._error(waiting, f"that is more than {self.seconds:g} s. {self._describe_absent(waiting, where)}")
        self._report_wait(waiting, waited, where)
        if waited > self._longest_silence and self._has_silent_rank(waiting, where):
            for work in works:
                if isinstance(work, PendingExchange):
                    work.begin_anyway()                   # a silent rank may have ended; its sockets will report that

    def _report_wait(self, waiting: Waiting, waited: float, where: dict[int, dict[str, Any]]) -> None:
        """Report a long wait on this rank, and let each rank that is not in the exchange report it too."""
        if not self._reports.passes_limit(waiting, waited):
            return
        line, absences = user_line(), self._absences(waiting, where)
        description = "; ".join(absences.values()) or "all ranks are in it" + self._describe_unstarted(waiting, where)
        self._reports.report_wait(waiting, line, waited, description, self.seconds)
        notice = json.dumps({"rank": self.rank, "what": waiting.what, "group": waiting.group, "line": line, "waited": round(waited)})

        def notify() -> None:
            for rank in absences:
                self._shared_store.set(f"awaited/{rank}", notice)
            self._shared_store.add("asked", 1)

        with contextlib.suppress(RuntimeError):
            peer_liveness.BackgroundCall(notify).result()         # the network may be lost, and a call of the store would block

    def _local_state(self, waiting: Waiting, works: tuple[Any, ...]) -> dict[str, Any]:
        """Return the state of this rank for the others."""
        return {
            "key": waiting.key, "number": waiting.number, "what": waiting.what, "line": user_line(), "numbers": dict(self._numbers),
            "ranks": sorted({self.rank, *(waiting.others or waiting.ranks)}), "names": list(waiting.facts(self.rank)),
            "facts": {name: (fact, owner.number, owner.what) for name, (fact, owner) in self._facts(waiting).items()},
            "ways": self.handshake.ways(), "terms": self.terms.statements, "has_begun": _have_begun(works),
        }

    def _facts(self, waiting: Waiting) -> dict[str, tuple[str, Waiting]]:
        """Return the reports of this rank about the exchanges that it has begun."""
        begun = [waits for of_group in list(self._begun.values()) for waits in list(of_group)]
        return {name: (fact, owner) for owner in [*begun, waiting] for name, fact in owner.facts(self.rank).items()}

    def _contradicted(self, waiting: Waiting, other: dict[str, Any]) -> tuple[Waiting, dict[str, Any]] | None:
        """Return the first exchange that another rank describes differently, with that description; None if there is none.

        Graphs start exchanges early, so the exchange that differs may not be the one that this rank waits for.
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

    def _exchange_states(self, local_state: dict[str, Any], waiting: Waiting) -> dict[int, dict[str, Any]]:
        """Publish the state of this rank and return the states of the others; an empty dictionary if the store does not answer."""
        def ask() -> dict[int, dict[str, Any]]:
            self._publish(local_state)
            self._shared_store.add("asked", 1)
            states = self._states_of_others(waiting)

            def state_of(rank: int) -> dict[str, Any] | None:
                return local_state if rank == self.rank else states.get(rank) or self._ranks.of([rank]).get(rank)

            self._ring = deadlock_detection.ring(self.rank, state_of)
            return states

        try:
            if self._query is None or self._query.is_over:
                self._query = peer_liveness.BackgroundCall(ask)
            answer = self._query.result()
        except RuntimeError:
            return {}                                     # the process with the store has ended; the exchange itself will fail
        if answer is None:
            return {}
        self._query, self._answered = None, time.monotonic()
        return answer

    @property
    def _longest_silence(self) -> float:
        """The seconds without a sign of life after which a rank is silent; in a large job the signs are less frequent."""
        return LOST + slowed(1.0, self._size) - 1.0

    def _has_silent_rank(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> bool:
        """Return whether a rank has given no sign of life for long. Raises CommunicationError where its machine does not answer."""
        is_silent, now = False, time.monotonic()
        store_is_silent = now - self._answered > LOST
        for rank in waiting.others or waiting.ranks:
            sign = where.get(rank, {}).get("sign")
            if sign is not None and self._signs.get(rank, ("", 0.0))[0] != sign:
                self._signs[rank] = sign, now
            since = max(self._signs.get(rank, ("", 0.0))[1], waiting.since)
            if rank == self.rank or now - since < self._longest_silence or (where.get(rank, {}).get("what") and not store_is_silent):
                continue
            address = self._address_of(rank)
            if not address[1]:
                continue
            if not peer_liveness.is_reachable(address):
                raise self._error(
                    waiting, f"rank {rank} can't be reached: its machine ({address[0]}) does not answer",
                    "look whether that machine is up, and at the network between the two",
                )
            is_silent = True
        return is_silent

    def _address_of(self, rank: int) -> tuple[str, int]:
        """Return the address of a rank's machine; the port is 0 if the store does not answer."""
        with contextlib.suppress(RuntimeError):
            return peer_liveness.BackgroundCall(functools.partial(self._ranks.address_of, rank)).result() or ("", 0)
        return "", 0

    def _publish(self, local_state: dict[str, Any] | None) -> None:
        if local_state != self._published:
            self._ranks.publish(local_state)
            self._published = local_state

    def _states_of_others(self, waiting: Waiting) -> dict[int, dict[str, Any]]:
        """Return the published states of the other ranks of the group."""
        return self._ranks.of(waiting.others or waiting.ranks)

    def _describe_absent(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> str:
        description = "; ".join(self._absences(waiting, where).values())
        unstarted = self._describe_unstarted(waiting, where)
        return description or f"All ranks are in it{unstarted or ': the network does not carry it'}"

    def _describe_unstarted(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> str:
        """Name the ranks that are in the exchange and still wait for the agreement of the others."""
        states = {self.rank: self._published, **where}
        ranks = [
            str(rank) for rank, state in sorted(states.items())
            if state and (state.get("key"), state.get("number")) == (waiting.key, waiting.number) and not state["has_begun"]
        ]
        return f", but rank {', '.join(ranks)} waits for the agreement of the others" if ranks else ""

    def _absences(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> dict[int, str]:
        """Describe each rank that has not begun the exchange."""
        absences = {}
        for rank in waiting.others or waiting.ranks:
            other = where.get(rank, {})
            if rank != self.rank and not self._has_come(waiting, other):
                absences[rank] = f"rank {rank} has not come to it" + (f": it is at {other['line']}" if other.get("line") else "")
        return absences

    def _mismatch(self, waiting: Waiting, rank: int, other: dict[str, Any]) -> CommunicationError:
        time.sleep(2 * RETRY_SECONDS)                             # the other rank needs time to find the difference too
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

    # ---- lost ranks

    def connection_error(self, error: Exception, call: str, key: str, ranks: tuple[int, ...]) -> CommunicationError:
        """Return the error for a `call` that connects ranks, if one of them ended meanwhile."""
        with contextlib.suppress(RuntimeError):
            peer_liveness.BackgroundCall(self.store_process_ids).result()               # `init()` has not stored the process ids yet
        return self.lost(Waiting(key, 1, call, None, ranks), error)

    def lost(self, waiting: Waiting, error: Exception) -> CommunicationError:
        """Return the error for an exchange that failed with `error`."""
        self.is_broken, error_text = True, str(error)
        if any(word in error_text for word in ("onnection", "Connect timeout", "closed", "reset", "pipe")):
            return self._lost_rank_error(waiting)
        if "imed out" in error_text:
            where = self._exchange_states(self._published or {}, waiting)
            return self._error(waiting, f"that is more than {self.seconds:g} s. {self._describe_absent(waiting, where)}")
        first = torch_diagnosis.translated(error_text) or next(iter(error_text.strip().splitlines()), type(error).__name__)
        return CommunicationError(f"{_at(waiting, self.rank)}, which failed: {first}.")

    def _lost_rank_error(self, waiting: Waiting) -> CommunicationError:
        """Return the error for an exchange in which another rank has ended."""
        self.is_broken = True
        description = peer_liveness.BackgroundCall(lambda: self._describe_lost(waiting)).result(2 * peer_liveness.PATIENCE)
        who, other = description or ("another rank is gone", None)
        if other is not None:
            return self._mismatch(*other)
        hint = "its output, worker_N.log under the launcher, shows what ended it"
        return CommunicationError(with_hint(f"{_at(waiting, self.rank)} when {who}.", hint))

    def _describe_lost(self, waiting: Waiting) -> tuple[str, tuple[Waiting, int, dict[str, Any]] | None]:
        """Describe the rank that has ended; also return a rank that ended in another exchange, with that exchange."""
        gone = self._find_lost(waiting)
        other = self._other_exchange(waiting)
        who = f"rank {gone} is gone" if gone is not None else self._describe_departed(waiting)
        if other is None:
            self._publish_lost(gone)
        return who, other

    def _describe_departed(self, waiting: Waiting) -> str:
        try:
            departed = [rank for rank, other in self._states_of_others(waiting).items() if other["left"]]
        except RuntimeError:
            departed = []
        return f"rank {departed[0]} left: its program has ended" if departed else "another rank is gone"

    def _other_exchange(self, waiting: Waiting) -> tuple[Waiting, int, dict[str, Any]] | None:
        """Return a rank that ended in another exchange, with that exchange; None if there is none."""
        try:
            where = self._states_of_others(waiting)
        except RuntimeError:
            return None
        for rank, other in where.items():
            contradiction = self._contradicted(waiting, other)
            if contradiction is not None:
                return contradiction[0], rank, {**other, **contradiction[1]}
            if self._is_stuck(waiting, other):
                return waiting, rank, other
        return None

    def _find_lost(self, waiting: Waiting) -> int | None:
        until = time.monotonic() + 0.5
        while True:
            dead = self._dead(waiting)
            if dead:
                return self._first_of(dead)
            if time.monotonic() > until:
                return None
            time.sleep(0.02)                              # a process closes its connections before it ends

    def _dead(self, waiting: Waiting) -> list[int]:
        """Return the ranks of an exchange whose processes ran on this machine and have ended."""
        here = socket.gethostname()
        return [
            rank for rank, (host, process) in self._ranks.processes.items()
            if rank in waiting.ranks and rank != self.rank and host == here and not _is_alive(process)
        ]

    def _publish_lost(self, gone: int | None) -> None:
        """Publish that this rank ends because rank `gone` has ended, so that other ranks name that rank."""
        try:
            self._shared_store.set(f"lost/{self.rank}", str(gone))
        except RuntimeError:
            pass                                          # the process with the store has ended

    def _first_of(self, dead: list[int]) -> int:
        """Return the rank that ended first: one that published no reason, or one that the others name."""
        try:
            reasons = {rank: self._shared_store.get(f"lost/{rank}").decode() for rank in dead if self._shared_store.check([f"lost/{rank}"])}
        except RuntimeError:
            return dead[0]
        silent = [rank for rank in dead if rank not in reasons]
        named = [int(gone) for gone in reasons.values() if gone != "None"]
        return (silent or named or dead)[0]

    # ---- answers to other ranks

    def _answer(self) -> None:
        """Publish the source line of this process while it is in no exchange, after another rank has asked."""
        answered, signs, requests = False, 0, 0
        while not self._over.wait(slowed(1.0, self._size)):
            try:
                count = self._shared_store.add("asked", 0)
                if not count:
                    continue
                if count != requests and self._shared_store.check([f"awaited/{self.rank}"]):
                    self._reports.report_absence(json.loads(self._shared_store.get(f"awaited/{self.rank}")), self._line())
                requests, signs = count, signs + 1
                self._ranks.publish_sign(signs)
                if self._published is None or (answered and "what" not in self._published):
                    line = self._line()
                    if line is not None and self._published is None:
                        self._ranks.publish({"line": line})
                        answered = True
            except RuntimeError:
                return

    def _line(self) -> str | None:
        frame = sys._current_frames().get(self._main)
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return None

    def end(self) -> None:
        """End the threads."""
        self._over.set()
        self.handshake.end()
        self._probe_port.close()
        if self._waiter is not None:
            self._waiter.end()
        if threading.current_thread() is not self._answering:
            self._answering.join(2.0)


def _at(waiting: Waiting, rank: int) -> str:
    return f"{user_line()}: rank {rank} was in {waiting.what} over {waiting.group} (its number {waiting.number})"


def _have_begun(works: Any) -> bool:
    return all(not isinstance(work, PendingExchange) or work.has_begun for work in works)


def _patience(*works: Any) -> float:
    """Return the seconds before the first read of the states: fewer before the exchange starts, when no socket reports a lost rank."""
    return LATE if _have_begun(works) else min(RETRY_SECONDS, LATE)


_EXITING = 0x4
"""The kernel's flag of an exiting process. The kernel sets it before it closes the connections."""


def _is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            state, *_, flags = file.read().rpartition(")")[2].split()[:7]
            return state not in ("Z", "X") and not int(flags) & _EXITING
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_waiting(frame: FrameType | None) -> bool:
    """Return whether a thread that executes `frame` waits for an exchange."""
    waits = (Watchdog.finish.__code__, Watchdog.finish_pairs.__code__)
    while frame is not None:
        if frame.f_code in waits:
            return True
        frame = frame.f_back
    return False


watch: Watchdog | None = None
"""The watchdog of this process; None in a run of one process."""
