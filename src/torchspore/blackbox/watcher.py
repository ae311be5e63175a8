"""The process that watches a program from outside: it ends a program with a hanging operator, and writes the record of a dead one.

It needs neither Python's lock nor a running thread of the program: it reads the shared memory, requests the stacks by a signal that
faulthandler answers in C, and ends the program and its children by SIGKILL if they don't end otherwise.
"""
from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from torchspore.blackbox import record_writer, stacks
from torchspore.blackbox.board import ENDED, RECORDED, Board, Running, contents, shared_file

_TICK, _IDLE = 0.1, 0.5
"""Seconds between two checks, and while nothing is requested."""
_STACKS_WAIT, _RECORD_WAIT = 0.5, 0.8
"""Maximum time to wait for stacks, and for the record that the program writes itself, in seconds."""
_SAMPLES = 4096
_WORKERS = 4
"""The maximum number of children whose stacks are requested; all children are ended."""


@dataclass(frozen=True)
class Handles:
    """File descriptors that the program passes to the watcher."""

    board: int
    stacks: int
    """Where faulthandler writes all threads on request."""
    deaths: int
    """Where faulthandler writes them after a memory fault."""
    terminated: int
    """The same for SIGTERM."""
    facts: int
    """JSON about the program."""
    graphs: int
    """The last graphs, a line of JSON each."""
    calls: int
    """A pipe that the program's listener thread reads."""


class Watcher:
    """Watches one program until it ends."""

    def __init__(self, handles: Handles) -> None:
        self.handles = handles
        self.board = Board(handles.board)
        self.process = self.board.process
        self._memory: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)
        self._killed = _kills_for_memory()
        self._stopped = 0
        self._pauses: deque[tuple[int, int]] = deque(maxlen=16)

    def run(self) -> None:
        """Return when the program has ended, for whatever reason."""
        poll = None
        if hasattr(os, "pidfd_open"):
            try:
                poll = select.poll()
                poll.register(os.pidfd_open(self.process), select.POLLIN)
            except OSError:
                poll = None
        while os.getppid() == self.process:
            tick = _TICK if self.board.limit or self.board.mode else _IDLE
            if poll is None:
                time.sleep(tick)
            elif poll.poll(int(tick * 1000)):
                break
            if self.board.mode:
                self._sample()
            late = self._late()
            if late is not None:
                self._end(late)
                return
        if self.board.mode and self.board.state not in (ENDED, RECORDED):
            self._record(self._death())

    # ---- an operator that runs too long

    def _late(self) -> Running | None:
        """Return the activity that exceeds the limit; time while the program was stopped (Ctrl-Z, a debugger) does not count."""
        limit = self.board.limit
        if not limit or self.board.state != 0:
            return None
        now = time.monotonic_ns()
        over = [running for running in self.board.running() if now - running.start > limit]
        if not over:
            self._stopped = 0
            return None
        if _is_stopped(self.process):
            self._stopped = self._stopped or now
            return None
        if self._stopped:
            self._pauses.append((self._stopped - int(_TICK * 2e9), now))
            self._stopped = 0
        over = [r for r in over if now - r.start - sum(end - max(r.start, start) for start, end in self._pauses if end > r.start) > limit]
        return min(over, key=lambda running: (running.kind == "operator", running.start), default=None)

    def _end(self, late: Running) -> None:
        """Report what hangs and where, let the program write its record, and end it and all its children."""
        seconds = (time.monotonic_ns() - late.start) / 1e9
        dump = self._dump_by_listener() or self._dump_by_signal(self.process)
        workers = {child: self._dump_by_signal(child, 0.1) for child in children(self.process)[:_WORKERS]} if late.kind == "data" else {}
        line = stacks.user_line(stacks.frames_of_thread(dump, late.thread))
        inner = stacks.others(dump, late.thread) if late.kind == "data" else []
        inner += [at for at in (stacks.user_line(stacks.current(text)) for text in workers.values()) if at and at != line]
        dump += "".join(f"\nProcess {child}:\n{text}" for child, text in workers.items() if text.strip())
        limit = self.board.limit / 1e9
        name = self._describe_operator(late)
        cause = {"kind": "time-out", "operator": name, "line": line, "seconds": round(seconds, 3), "limit": limit, "text": (
            f"op_timeout={limit:g}: {name} has run for {seconds:.1f} s" + (f" at {line}" if line else "")
            + (f"; the pipeline is at {inner[0]}" if inner else ""))}
        has_recorded = self._record_in_program(cause) if self.board.mode else False
        if self.board.mode and not has_recorded:
            self._record(cause, dump)
        text = (f"\ntorchspore: {cause['text']}; the program is ended.\n\nAll threads:\n{dump or '(they could not be written)'}\n\n"
                f"hint: {_hint(late)}\n")
        try:
            os.write(2, text.encode())
        except OSError:
            pass
        kill_children(self.process, signal.SIGKILL)
        self._call(f"exit {stacks.EXIT_CODE}")
        if not self._has_ended():
            if _handles(self.process, stacks.EXIT_SIGNAL):      # C code holds Python's lock, or a print hangs
                os.kill(self.process, stacks.EXIT_SIGNAL)
            if not self._has_ended():
                os.kill(self.process, signal.SIGKILL)
        kill_children(self.process, signal.SIGKILL)

    def _has_ended(self) -> bool:
        """Return whether the program ends within 0.2 s."""
        for _ in range(20):
            if os.getppid() != self.process or _is_zombie(self.process):
                return True
            time.sleep(0.01)
        return False

    def _describe_operator(self, late: Running) -> str:
        """Return the operator by MindSpore's name, if a mark contains it, and by torch's."""
        runs_of_thread = [running for running in self.board.running() if running.thread == late.thread]
        marked = next((running.name for running in runs_of_thread if running.kind != "operator" or "::" not in running.name), "")
        kernel = next((running.name for running in runs_of_thread if "::" in running.name), "")
        return f"{marked} ({kernel})" if marked and kernel else marked or kernel or late.name

    def _dump_by_listener(self) -> str:
        """Return the stacks of all threads as the program's own thread writes them; empty if Python cannot run there."""
        before = os.fstat(self.handles.stacks).st_size
        self._call("stacks")
        return self._read_stacks(before, _STACKS_WAIT)

    def _dump_by_signal(self, process: int, seconds: float = _STACKS_WAIT) -> str:
        """Return all threads of the program, or of a child forked from it, as faulthandler writes them."""
        before = os.fstat(self.handles.stacks).st_size
        try:
            os.kill(process, stacks.SIGNAL)
        except OSError:
            return ""
        return self._read_stacks(before, seconds)

    def _read_stacks(self, before: int, seconds: float) -> str:
        """Return what is written to the file of stacks after its first `before` bytes, once it stops growing, within `seconds`."""
        end, size = time.monotonic() + seconds, before
        while time.monotonic() < end:
            time.sleep(0.03)
            now = os.fstat(self.handles.stacks).st_size
            if now == size and now > before:
                break
            size = now
        if size == before:
            return ""
        return stacks.remove_listener(contents(self.handles.stacks)[before:].decode("utf-8", "replace"))

    def _record_in_program(self, cause: dict[str, Any]) -> bool:
        """Let the program's own thread write the record, if it can still run; return whether it did."""
        self._call("record " + json.dumps(cause))
        end = time.monotonic() + _RECORD_WAIT
        while time.monotonic() < end:
            if self.board.state == RECORDED:
                return True
            time.sleep(0.02)
        return False

    def _call(self, words: str) -> None:
        try:
            os.write(self.handles.calls, words.encode() + b"\n")
        except OSError:
            pass

    # ---- a program that has ended

    def _death(self) -> dict[str, Any]:
        """Describe how the program ended."""
        fatal = contents(self.handles.deaths).decode("utf-8", "replace")
        if fatal.strip():
            line = stacks.user_line(stacks.current(fatal))
            head = next((text for text in fatal.splitlines() if text.startswith("Fatal")), "the process crashed")
            head = head.removeprefix("Fatal Python error: ")
            return {"kind": "crash", "text": f"{head}" + (f" at {line}" if line else ""), "line": line, "operator": self._last()}
        if contents(self.handles.terminated, 1):
            dump = contents(self.handles.terminated).decode("utf-8", "replace")
            line = stacks.user_line(stacks.current(dump)) or stacks.user_line(dump)
            return {"kind": "SIGTERM", "text": "SIGTERM ended the program" + (f" at {line}" if line else ""), "line": line,
                    "operator": self._last()}
        running = self._last()
        if _kills_for_memory() > self._killed:
            text, kind = "the kernel killed the program because memory ran out", "out of memory"
        else:
            text, kind = "the program ended without a message: SIGKILL (kill -9), another signal without a handler, or os._exit", "killed"
        return {"kind": kind, "text": text + (f"; {running} ran" if running else ""), "line": "", "operator": running}

    def _last(self) -> str:
        """Return the name of the operator that ran at the end."""
        return next((running.name for running in self.board.running()), "")

    def _record(self, cause: dict[str, Any], dump: str = "") -> None:
        """Write the record from outside the program."""
        try:
            facts = json.loads(contents(self.handles.facts) or b"{}")
        except ValueError:
            facts = {}
        dump = dump or contents(self.handles.deaths).decode("utf-8", "replace") or (
            contents(self.handles.terminated).decode("utf-8", "replace"))
        graphs = []
        for line in contents(self.handles.graphs).splitlines():
            try:
                graphs.append(json.loads(line))
            except ValueError:
                continue
        parts = record_writer.Parts(
            cause=cause, facts=facts, ring=self.board.ring(), started=self.board.started, count=self.board.count, stacks=dump,
            memory=list(self._memory), graphs=graphs, by_program=False,
        )
        error = record_writer.write(parts)
        report = error or f"{cause['text']}; what is known is recorded: torchspore rdr show {facts.get('folder', '')}"
        if error or cause["kind"] != "time-out":
            os.write(2, f"torchspore: {report}\n".encode())

    def _sample(self) -> None:
        """Record the current memory of the program."""
        try:
            with open(f"/proc/{self.process}/statm", "rb") as file:
                pages = int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            return
        at = round((time.monotonic_ns() - self.board.started) / 1e9, 2)
        if not self._memory or self._memory[-1][1] != pages:
            self._memory.append((at, pages * 4096))


def _kills_for_memory() -> int:
    """Return the number of processes of this container that the kernel has killed because memory ran out."""
    try:
        with open("/sys/fs/cgroup/memory.events", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    except (OSError, ValueError, IndexError):
        return 0


def _hint(late: Running) -> str:
    unit = {"data": "step of the data pipeline", "operator": "operator"}.get(late.kind, late.kind)
    return f"set_context(op_timeout=...) limits the seconds that one {unit} may take; 0 leaves it to the device."


def _state(process: int) -> str:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def _handles(process: int, number: int) -> bool:
    """Return whether a process has a handler for a signal. The default action would end it with another exit code."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def _is_stopped(process: int) -> bool:
    return _state(process) in ("T", "t")


def _is_zombie(process: int) -> bool:
    return _state(process) in ("Z", "X", "")


def children(process: int) -> list[int]:
    """Return all descendants of a process except this watcher."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
            except (OSError, IndexError, ValueError):
                continue
    descendants, pending = [], [process]
    while pending:
        for child in parents.get(pending.pop(), []):
            if child != os.getpid():
                descendants.append(child)
                pending.append(child)
    return descendants


def kill_children(process: int, number: int) -> None:
    """Send a signal to all descendants of a process."""
    for child in children(process):
        try:
            os.kill(child, number)
        except OSError:
            continue


def main(words: list[str]) -> None:
    """Run the watcher; `words` are the numbers of the handles."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    Watcher(Handles(*map(int, words))).run()


__all__ = ["Handles", "Watcher", "children", "kill_children", "main", "shared_file"]

if __name__ == "__main__":
    main(sys.argv[1:])
