"""Exchanges that do not end: who waits where, who is somewhere else, who is gone. Nothing is sent before one of them is late.

A rank that has waited LATE seconds writes into the store where it stands, and reads where the others of its group do. Two that stand in
different exchanges will wait for ever: both say so. A rank that is in no exchange is asked for its line; a thread answers for it.
"""
from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from torchspore.base.frames import is_users, user_line
from torchspore.base.text import with_hint
from torchspore.engine.comm import reach
from torchspore.errors import CommunicationError

LATE = 2.0
"""Seconds after which a rank looks where the others are."""
AGAIN = 0.5
"""Seconds between two looks."""
BEGUN = 32
"""So many exchanges of a group are remembered."""
LOST = 20.0
"""Seconds without a sign of life after which a process that can't be reached counts as lost."""


@dataclass
class Waiting:
    """One exchange that this process waits in."""

    key: str
    number: int
    """How many exchanges of the group came before it in this process."""
    kind: str
    sent: Any
    """What it sends, a tensor's (dtype, shape); None where the kind says it all."""
    ranks: tuple[int, ...]
    since: float = field(default_factory=time.monotonic)
    others: tuple[int, ...] = ()
    """The ranks it waits for, where these are not the whole group."""

    @property
    def what(self) -> str:
        """Its kind, and what it sends: the same in every rank."""
        return self.kind if self.sent is None else f"{self.kind} of {str(self.sent[0]).removeprefix('torch.')}{list(self.sent[1])}"

    @property
    def group(self) -> str:
        """The name of its group."""
        return self.key.partition(":")[0]


class Watch:
    """What one process knows of the others."""

    def __init__(self, store: Any, rank: int, size: int, seconds: float, host: str = "127.0.0.1") -> None:
        self.store, self.rank, self.seconds = store, rank, seconds
        self._own = store.clone()
        self._door = reach.Door(host)
        self._own.set(f"process/{rank}", json.dumps([socket.gethostname(), os.getpid(), *self._door.address]))
        self._known: dict[int, tuple[str, int]] = {}
        self._doors: dict[int, tuple[str, int]] = {}
        self._signs: dict[int, tuple[str, float]] = {}
        self._errand: reach.Errand[dict[int, dict[str, Any]]] | None = None
        self._answered = time.monotonic()
        """When the store has last answered."""
        self._size = size
        self._numbers: dict[str, int] = {}
        self._begun: dict[str, collections.deque[Waiting]] = {}
        """By group the last exchanges that have begun: several may be on their way when one is waited for."""
        self._said: dict[str, Any] | None = None
        self._suspect: Any = None
        self._main = threading.get_ident()
        self.is_broken = False
        """Whether an exchange has failed: what still runs of it can't be ended."""
        self._waiter: _Waiter | None = None
        self._over = threading.Event()
        self._answering = threading.Thread(target=self._answer, name="torchspore ranks", daemon=True)
        self._answering.start()

    def know(self) -> None:
        """Keeps which processes the others are, to tell later which of them is gone: the store may be gone with it."""
        if self._size <= 64:
            for rank, found in enumerate(self._own.multi_get([f"process/{rank}" for rank in range(self._size)])):
                host, process, address, port = json.loads(found)
                self._known[rank], self._doors[rank] = (host, process), (address, port)

    def begin(self, key: str, kind: str, sent: Any, ranks: tuple[int, ...], others: tuple[int, ...] = ()) -> Waiting:
        """Notes that an exchange begins."""
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        found = Waiting(key, number, kind, sent, ranks, others=others)
        self._begun.setdefault(key, collections.deque(maxlen=BEGUN)).append(found)
        return found

    def finish(self, work: Any, waiting: Waiting) -> None:
        """Waits for an exchange. Raises CommunicationError where it can't end."""
        step = LATE
        while True:
            try:
                work.wait(timedelta(seconds=step))
                break
            except RuntimeError as error:
                if work.is_completed():
                    raise self.lost(waiting, error) from None
            self._late(waiting)
            step = AGAIN
        self._done()

    def finish_pairs(self, works: list[Any], waiting: Waiting) -> None:
        """Waits for sendings and receivings. gloo gives one up where its wait is cut short, so a thread of its own waits for them."""
        if self._waiter is None:
            self._waiter = _Waiter()
        done = self._waiter.give(works)
        step = LATE
        while not done.over.wait(step):
            self._late(waiting)
            step = AGAIN
        if done.error is not None:
            raise self.lost(waiting, done.error) from None
        self._done()

    # ---- late

    def _done(self) -> None:
        """Takes back what was said about an exchange that is over now."""
        if self._said is not None and (self._errand is None or self._errand.is_over):
            with contextlib.suppress(RuntimeError):
                reach.Errand(lambda: self._tell(None)).result()

    def _late(self, waiting: Waiting) -> None:
        waited = time.monotonic() - waiting.since
        own = {"key": waiting.key, "number": waiting.number, "what": waiting.what, "line": user_line(), "ranks": list(waiting.ranks)}
        own["begun"] = [] if waiting.others else [(one.number, one.what) for one in list(self._begun[waiting.key])]
        where = self._asked(own, waiting)
        for rank, other in where.items():
            place = (other.get("key"), other.get("number"))
            if other.get("what") and place == (waiting.key, waiting.number) and other["what"] != waiting.what:
                raise self._mismatch(waiting, rank, other)
            begun = self._begun_otherwise(waiting, other)
            if begun is not None:
                raise self._mismatch(begun[0], rank, {**other, **begun[1]})
            if other["left"]:
                raise self._error(waiting, f"rank {rank} has left: its program has ended, or has called release()")
        stuck = {
            rank: other for rank, other in where.items()
            if other.get("what") and (other["key"], other["number"]) != (waiting.key, waiting.number) and self.rank in other["ranks"]
            and (other["key"] != waiting.key or other["number"] < waiting.number)
        }
        seen = [(rank, other["key"], other["number"]) for rank, other in stuck.items() if other["key"] != waiting.key]
        if seen and seen == self._suspect:
            rank = seen[0][0]
            raise self._mismatch(waiting, rank, stuck[rank])
        self._suspect = seen
        if waited > self.seconds:
            raise self._error(waiting, f"that is more than {self.seconds:g} s. {self._absent(waiting, where)}")
        if waited > LOST:
            self._reach(waiting, where)

    def _begun_otherwise(self, waiting: Waiting, other: dict[str, Any]) -> tuple[Waiting, dict[str, Any]] | None:
        """The first exchange of the group that another rank has begun as a different one, and which; None where there is none.

        In graphs exchanges begin early, so that what is waited for may be another than the one that differs.
        """
        if other.get("key") == waiting.key and not waiting.others:
            theirs = dict(other.get("begun", ()))
            for own in list(self._begun[waiting.key]):
                if theirs.get(own.number, own.what) != own.what:
                    return own, {"number": own.number, "what": theirs[own.number]}
        return None

    def _asked(self, own: dict[str, Any], waiting: Waiting) -> dict[int, dict[str, Any]]:
        """Says where this rank is, and gives where the others are: nothing where the store does not answer."""
        def ask() -> dict[int, dict[str, Any]]:
            self._tell(own)
            self._own.set("asked", "1")
            return self._where(waiting)

        try:
            if self._errand is None or self._errand.is_over:
                self._errand = reach.Errand(ask)
            found = self._errand.result()
        except RuntimeError:
            return {}                                     # who served the store is gone; the exchange itself will say so
        if found is None:
            return {}
        self._errand, self._answered = None, time.monotonic()
        return found

    def _reach(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> None:
        """Raises CommunicationError where a rank has given no sign of life for long, and its machine does not answer."""
        now = time.monotonic()
        store_is_silent = now - self._answered > LOST
        for rank in waiting.others or waiting.ranks:
            sign = where.get(rank, {}).get("sign")
            if sign is not None and self._signs.get(rank, ("", 0.0))[0] != sign:
                self._signs[rank] = sign, now
            since = max(self._signs.get(rank, ("", 0.0))[1], waiting.since)
            door = self._doors.get(rank, ("", 0))
            if rank == self.rank or not door[1] or now - since < LOST or (where.get(rank, {}).get("what") and not store_is_silent):
                continue
            if not reach.answers(door):
                raise self._error(
                    waiting, f"rank {rank} can't be reached: its machine ({door[0]}) does not answer",
                    "look whether that machine is up, and at the network between the two",
                )

    def _tell(self, own: dict[str, Any] | None) -> None:
        if own != self._said:
            self._own.set(f"where/{self.rank}", json.dumps(own))
            self._said = own

    def _where(self, waiting: Waiting) -> dict[int, dict[str, Any]]:
        """Where the others of the group are, those that have said so."""
        found: dict[int, dict[str, Any]] = {}
        for rank in waiting.others or waiting.ranks:
            if rank == self.rank:
                continue
            said = json.loads(self._own.get(f"where/{rank}")) if self._own.check([f"where/{rank}"]) else None
            has_left = self._own.check([f"left/{rank}"])
            sign = self._own.get(f"sign/{rank}").decode() if self._own.check([f"sign/{rank}"]) else None
            if said is not None or has_left or sign is not None:
                found[rank] = {**(said or {}), "left": has_left, "sign": sign}
        return found

    def _absent(self, waiting: Waiting, where: dict[int, dict[str, Any]]) -> str:
        parts = []
        for rank in waiting.others or waiting.ranks:
            other = where.get(rank, {})
            if rank == self.rank or (other.get("key"), other.get("number")) == (waiting.key, waiting.number):
                continue
            parts.append(f"rank {rank} has not come to it" + (f": it is at {other['line']}" if other.get("line") else ""))
        return "; ".join(parts) or "All ranks are in it: the network does not carry it"

    def _mismatch(self, waiting: Waiting, rank: int, other: dict[str, Any]) -> CommunicationError:
        their = other["key"].partition(":")[0]
        time.sleep(2 * AGAIN)                             # the other one shall find the same, and not that this one is gone
        return self._error(
            waiting, f"rank {rank} is in {other['what']} over {their} (its number {other['number']}) at {other['line']}",
            "every rank of a group must call the same exchanges in the same order, of equal shapes and dtypes",
        )

    def _error(self, waiting: Waiting, text: str, hint: str | None = None) -> CommunicationError:
        self.is_broken, waited = True, time.monotonic() - waiting.since
        said = (
            f"{user_line()}: rank {self.rank} waits in {waiting.what} over {waiting.group} (its number {waiting.number}) "
            f"for {waited:.1f} s; {text}."
        )
        return CommunicationError(said if hint is None else with_hint(said, hint))

    # ---- gone

    def unmet(self, error: Exception, call: str, key: str, ranks: tuple[int, ...]) -> CommunicationError:
        """The error for `call`, in which connections to some ranks were made and one of them left."""
        with contextlib.suppress(RuntimeError):
            reach.Errand(self.know).result()               # in `init()` it is not known yet who the others are
        return self.lost(Waiting(key, 1, call, None, ranks), error)

    def lost(self, waiting: Waiting, error: Exception) -> CommunicationError:
        """The error for an exchange that failed with `error`."""
        self.is_broken, said = True, str(error)
        at = f"{user_line()}: rank {self.rank} was in {waiting.what} over {waiting.group} (its number {waiting.number})"
        if any(word in said for word in ("onnection", "Connect timeout", "closed", "reset", "pipe")):
            who, other = reach.Errand(lambda: self._who(waiting)).result(2 * reach.PATIENCE) or ("another rank is gone", None)
            if other is not None:
                return self._mismatch(waiting, *other)
            hint = "what ended it stands in its own output, worker_N.log under the launcher"
            return CommunicationError(with_hint(f"{at} when {who}.", hint))
        if "imed out" in said:
            where = self._asked(self._said or {}, waiting)
            return self._error(waiting, f"that is more than {self.seconds:g} s. {self._absent(waiting, where)}")
        first = said.strip().splitlines()[0] if said.strip() else type(error).__name__
        return CommunicationError(f"{at}, which failed: {first}.")

    def _who(self, waiting: Waiting) -> tuple[str, tuple[int, dict[str, Any]] | None]:
        """Who is gone, in words; and a rank that was in another exchange when it went, and in which."""
        gone = self._gone(waiting)
        other = self._last_words(waiting)
        who = f"rank {gone} is gone" if gone is not None else self._leaver(waiting)
        if other is None:
            self._tell_lost(gone)
        return who, other

    def _leaver(self, waiting: Waiting) -> str:
        try:
            left = [rank for rank, other in self._where(waiting).items() if other["left"]]
        except RuntimeError:
            left = []
        return f"rank {left[0]} left: its program has ended" if left else "another rank is gone"

    def _last_words(self, waiting: Waiting) -> tuple[int, dict[str, Any]] | None:
        """A rank that was in another exchange when it went, and in which."""
        try:
            where = self._where(waiting)
        except RuntimeError:
            return None
        own = (waiting.key, waiting.number, waiting.what)
        return next(((rank, o) for rank, o in where.items() if o.get("what") and (o["key"], o["number"], o["what"]) != own), None)

    def _gone(self, waiting: Waiting) -> int | None:
        here, until = socket.gethostname(), time.monotonic() + 0.5
        while True:
            dead = [
                rank for rank, (host, process) in self._known.items()
                if rank in waiting.ranks and rank != self.rank and host == here and not _is_alive(process)
            ]
            if dead:
                return self._first_of(dead)
            if time.monotonic() > until:
                return None
            time.sleep(0.02)                              # a process closes its connections before it is gone

    def _tell_lost(self, gone: int | None) -> None:
        """Leaves word that this rank ends because another one is gone: who finds it gone looks for the other."""
        try:
            self._own.set(f"lost/{self.rank}", str(gone))
        except RuntimeError:
            pass                                          # who served the store is gone

    def _first_of(self, dead: list[int]) -> int:
        """Who of them was gone first: the one that has left no word, or whom the others name."""
        try:
            said = {rank: self._own.get(f"lost/{rank}").decode() for rank in dead if self._own.check([f"lost/{rank}"])}
        except RuntimeError:
            return dead[0]
        silent = [rank for rank in dead if rank not in said]
        named = [int(gone) for gone in said.values() if gone != "None"]
        return (silent or named or dead)[0]

    # ---- answering

    def _answer(self) -> None:
        """Says where this process is, once somebody asks, while it is in no exchange."""
        answered, signs = False, 0
        while not self._over.wait(1.0):
            try:
                if not self._own.check(["asked"]):
                    continue
                signs += 1
                self._own.set(f"sign/{self.rank}", str(signs))
                if self._said is None or (answered and "what" not in self._said):
                    line = self._line()
                    if line is not None and self._said is None:
                        self._own.set(f"where/{self.rank}", json.dumps({"line": line}))
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
        self._door.close()
        if self._waiter is not None:
            self._waiter.end()
        if threading.current_thread() is not self._answering:
            self._answering.join(2.0)


class _Done:
    """How a wait in another thread ended."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.error: Exception | None = None


class _Waiter:
    """A thread that waits for what it is given."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[list[Any], _Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="torchspore pairs", daemon=True)
        self._thread.start()

    def give(self, works: list[Any]) -> _Done:
        """Begins to wait for these."""
        done = _Done()
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


watch: Watch | None = None
"""That of this process, while it is one of several."""
