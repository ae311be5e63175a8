"""The process that compiles graphs while the program runs.

It starts for the first graph, compiles one graph at a time, and ends when it is idle. At first it runs only while a processor has nothing
else to do, so that it takes no time from the program. If that does not suffice for a graph within the patience of its job, another process
with a low priority replaces it: a process may not raise its own priority. Inductor's cache preserves the kernels that are compiled by then.
Both ends of its pipes belong to this program, so that nothing they carry comes from a file. A line is one JSON object.
"""
from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torchspore.base import event_log
from torchspore.base.forks import at_fork
from torchspore.context import effects
from torchspore.graph.compile_cache import autotune_cache
from torchspore.translations import translatable, translate

SECTION = translatable("background compilation")
IDLE = 20.0
"""Seconds without a graph after which the process ends."""
_PROGRAM = """
import sys
packages = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
sys.path[packages:packages] = {paths!r}                 # before other versions of torchspore, after Python's modules
from torchspore.graph.compiler_worker import main
main({parent}, {only_when_idle})
"""


@dataclasses.dataclass
class Job:
    """One graph to compile, and the results: choices and kernels by their keys, as `autotune_cache` stores them."""

    key: str
    request: dict[str, Any]
    when_done: Callable[[], None]
    store: autotune_cache.Store | None
    patience: float = 0.0
    """Seconds for which the compilation only uses idle processors. 0: it has a low priority from the start."""
    results: dict[str, str] = dataclasses.field(default_factory=dict)
    folder: str = ""
    """Inductor's directory, to which paths of kernels are relative."""
    error: str = ""
    failure: str = ""
    """Why kernels can't be compiled on this machine."""
    seconds: float = 0.0

    def find(self, key: str) -> str | None:
        """Return a result of the other process, or what is stored."""
        result = self.results.get(key)
        return result if result is not None or self.store is None else self.store.find(key)

    def keep(self, key: str, choice: str) -> None:
        """Store a choice."""
        if self.store is not None:
            self.store.keep(key, choice)

    def receive(self, key: str, choice: str) -> None:
        """Take a result. The form of the whole graph is stored once it has proved itself."""
        self.results[key] = choice
        if key != self.key:
            self.keep(key, choice)


class CompilerProcess:
    """A process with a thread that talks to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        """The bytes that were read after the last full line."""
        self._is_only_idle = True
        """True if the process that runs, or the next one, uses only idle processors."""
        self._end = ""
        """Why the process ended before its graph was compiled; it is not started again."""

    @property
    def pid(self) -> int | None:
        """The id of the process; None if none runs."""
        return None if self._process is None else self._process.pid

    def submit(self, job: Job) -> None:
        """Compile a graph after the earlier ones. `job.when_done` is called in another thread."""
        with self._lock:
            self._jobs.put(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="torchspore-compiler", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE)
            except queue.Empty:
                with self._lock:
                    if not self._jobs.empty():
                        continue
                    self._thread = None
                    process, self._process = self._process, None
                if process is not None:
                    _close(process)
                    process.wait()
                return
            started = time.monotonic()
            if self._end:
                job.error = self._end
            else:
                self._compile(job)
            job.seconds = time.monotonic() - started
            job.when_done()
            del job

    def _compile(self, job: Job) -> None:
        try:
            if self._is_only_idle and not job.patience:
                self._raise_priority()
            if self._is_compiled(job, job.patience if self._is_only_idle else None):
                return
        except (OSError, ValueError) as error:
            event_log.event("tier", f"the process that compiles can't be used: {error}")
        job.error = self._end = self._describe_end()
        self._dismiss()
        text = translate("{reason}; graphs run as at O0.").format(reason=self._end)
        effects.note(SECTION, text)
        print(f"torchspore: {text}", file=sys.stderr, flush=True)

    def _is_compiled(self, job: Job, patience: float | None) -> bool:
        """Compile a graph; return False if the process ended. After `patience` seconds another process compiles it."""
        process = self._running()
        _send(process, json.dumps(job.request).encode() + b"\n")
        try:
            return any(_is_last(job, json.loads(line)) for line in self._lines(process, patience))
        except TimeoutError:
            event_log.event("tier", f"process {process.pid} was not finished after {patience:.0f} s in which it used only idle processors")
        self._raise_priority()
        return self._is_compiled(job, None)

    def _raise_priority(self) -> None:
        """Let another process compile from now on, which has a low priority and does not wait for idle processors."""
        self._is_only_idle = False
        self._dismiss()

    def _dismiss(self) -> None:
        """Close the pipes of the process, which then ends."""
        process, self._process, self._rest = self._process, None, b""
        if process is not None:
            _close(process)
            threading.Thread(target=process.wait, daemon=True).start()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            program = _PROGRAM.format(paths=_import_paths(), parent=os.getpid(), only_when_idle=self._is_only_idle)
            # In the session of the program: Linux first divides time between sessions, where this priority has no effect.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                bufsize=0)                             # a thread that waits in a buffered file locks it, also for the program's end
            event_log.event("tier", f"process {self._process.pid} compiles")
            atexit.register(self.leave)
        return self._process

    def _lines(self, process: subprocess.Popen[bytes], patience: float | None) -> Iterator[bytes]:
        """The lines that the process writes; they end with it. Raise TimeoutError after `patience` seconds."""
        assert process.stdout is not None
        pipe, deadline = process.stdout.fileno(), time.monotonic() + (patience or 0.0)
        can_be_read = select.poll()
        can_be_read.register(pipe, select.POLLIN)
        while True:
            if patience is not None and not can_be_read.poll(max(deadline - time.monotonic(), 0.0) * 1e3):
                raise TimeoutError
            part = os.read(pipe, 1 << 20)
            if not part:
                return
            *lines, self._rest = (self._rest + part).split(b"\n")
            yield from lines

    def _describe_end(self) -> str:
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(5)
        how = f"signal {-code}" if code is not None and code < 0 else str(code)
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        return translate("the process that compiles graphs in the background ended ({how})").format(how=how)

    def leave(self) -> None:
        """At the end of the program: the process ends when its standard input does, and nobody waits for it."""
        process = self._process
        if process is not None:
            process.returncode = 0                      # no warning that it still runs

    def forget(self) -> None:
        """Leave the process to the one that started it: this one was forked."""
        self.leave()
        if self._process is not None:
            _close(self._process)
        self.__init__()  # type: ignore[misc]


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _send(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(process.stdin.fileno(), rest):]


def _is_last(job: Job, message: dict[str, Any]) -> bool:
    """Take a message of the process; return whether it was the last one of this graph."""
    if "keep" in message:
        job.receive(*message["keep"])
    elif "log" in message and event_log.is_on():
        print(message["log"], file=sys.stderr, flush=True)
    elif "end" in message:
        job.error, job.folder, job.failure = message["end"], message["folder"], message["failure"]
        return True
    return False


def _import_paths() -> list[str]:
    """The folders of torchspore, torch and NumPy, which the other process may not have otherwise."""
    files = (sys.modules[name].__file__ for name in ("torchspore", "torch", "numpy"))
    return list(dict.fromkeys(str(Path(file).resolve().parents[1]) for file in files if file))


COMPILER = CompilerProcess()
at_fork(after_in_child=COMPILER.forget)
