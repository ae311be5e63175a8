"""Worker processes of a pipeline, for Python functions that hold Python's lock.

A process is forked (or spawned, depending on `config.set_multiprocessing_start_method`) when the first row is requested, and runs as long
as the iterator. Arrays go through shared memory, not through pickles; data that does not fit goes through the pipe. If a process is killed,
the iteration ends immediately with an error that names it. A process without a parent ends itself.
"""
from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from queue import SimpleQueue
from typing import Any

from torchspore.base.text import message
from torchspore.engine import process
from torchspore.mindspore import log
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine.failures import PipelineError, failed
from torchspore.mindspore.dataset.engine.pace import Late
from torchspore.mindspore.dataset.engine.workers import Workers, ordered_map

_REGION = 32 * 2**20
"""Minimum bytes of shared memory; the system allocates pages on the first write."""
_POLL_SECONDS = 0.2
_END_SECONDS = 2.0
_ALIGNMENT = 64
_CHUNK_SECONDS, _CHUNK_ROWS = 4e-3, 64

Describe = Callable[[Any], str]


class Processes:
    """`count` processes that call `function(task)` on tasks of several rows; a thread for each sends its tasks.

    `function` returns a list with a result for each row of the task; the last one is a Late if that row failed. Errors name the step
    `where` and the rows `describe(task)`. `megabytes` is the shared memory for a task or its result; larger data goes through a pipe.
    `method` is the start method, by default that of `config`.
    """

    def __init__(
        self, count: int, function: Callable[[Any], Any], where: str, describe: Describe, megabytes: int = 0, *, method: str | None = None,
    ) -> None:
        method = method or config.get_multiprocessing_start_method()
        self._where, self._describe, self.count = where, describe, count
        self._children = [
            _Child(number, function, where, max(_REGION, megabytes * 2**20), method) for number in range(count)
        ]
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        for child in self._children:
            self._idle.put(child)
        self._workers = Workers(count, "torchspore-process")
        self._each: float | None = None

    def map(self, items: Iterable[Any], pack: Callable[[list[Any]], Any] = list) -> Iterator[Any]:
        """Yield the results for the items, in their order; `pack` makes a task of several items. Raises the exceptions of the function."""
        tasks = self._tasks(iter(items), pack)
        for rows in ordered_map(self._timed, tasks, self._workers, 2 * len(self._children) + 1):
            for row in rows:
                if isinstance(row, Late):
                    raise row.error
                yield row

    def _tasks(self, items: Iterator[Any], pack: Callable[[list[Any]], Any]) -> Iterator[tuple[int, Any]]:
        while chunk := list(islice(items, self._size())):
            yield len(chunk), pack(chunk)

    def _size(self) -> int:
        """Return the number of rows of a task, for a duration of a few milliseconds."""
        return 1 if self._each is None else max(1, min(_CHUNK_ROWS, int(_CHUNK_SECONDS / max(self._each, 1e-6))))

    def _timed(self, task: tuple[int, Any]) -> Any:
        start = time.perf_counter()
        results = self.call(task[1])
        self._each = (time.perf_counter() - start) / task[0]
        return results

    def call(self, task: Any) -> Any:
        """Return `function(task)` from one of the processes. Raises its exception, or PipelineError if the process has ended."""
        child = self._idle.get()
        try:
            return child.call(task, lambda: self._describe(task))
        finally:
            self._idle.put(child)

    def close(self) -> None:
        """End the processes; kill one that does not respond."""
        for child in self._children:
            child.hang_up()
        self._workers.close()
        end = time.monotonic() + _END_SECONDS
        for child in self._children:
            child.end(max(0.0, end - time.monotonic()))


class _Child:
    """The parent's view of one worker process."""

    def __init__(self, number: int, function: Callable[[Any], Any], where: str, size: int, method: str) -> None:
        context = multiprocessing.get_context(method)
        self.number, self._where = number, where
        self._region: Any = mmap.mmap(-1, size) if method == "fork" else context.RawArray("B", size)
        self._pipe, child_pipe = context.Pipe()
        arguments = (child_pipe, self._pipe if method == "fork" else None, self._region, function, os.getpid())
        self._process = context.Process(target=_serve, args=arguments, name=f"torchspore-worker-{number}", daemon=True)  # type: ignore[attr-defined]
        try:
            # The child runs only the function and uses no lock of the other threads.
            with process.forking_worker(), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            hint = "write it at the top of a module, or ds.config.set_multiprocessing_start_method('fork')"
            raise PipelineError(message(f"{where}: {error}", "functions that a spawned process can import", hint=hint)) from None
        child_pipe.close()

    def call(self, task: Any, rows: Callable[[], str]) -> Any:
        """Return the process's result for a task. `rows` describes its rows in errors."""
        try:
            _send(self._pipe, self._region, task)
            self._wait(rows)
            kind, value = _receive(self._pipe, self._region)
        except (EOFError, OSError):
            self._process.join(_END_SECONDS)
            raise PipelineError(self._ended(rows())) from None
        if kind == "error":
            raise value
        return value

    def _ended(self, rows: str) -> str:
        code = self._process.exitcode
        how = f"by signal {-code} ({signal.Signals(-code).name})" if code is not None and code < 0 else f"with exit code {code}"
        hint = "signal 9 is often the system, short of memory" if code == -9 else "a crash inside a library ends its whole process"
        subject = f"{self._where}: worker process {self.number} (pid {self._process.pid}) was ended {how} while it worked on {rows}"
        return message(subject, "a process that lives", hint=hint)

    def _wait(self, rows: Callable[[], str]) -> None:
        """Wait for the answer; warn repeatedly about a slow process."""
        began, num_warnings = time.monotonic(), 0
        interval = config.get_multiprocessing_timeout_interval()
        while not self._pipe.poll(_POLL_SECONDS):
            if not self._process.is_alive() and not self._pipe.poll(0):
                raise EOFError
            waited = time.monotonic() - began
            if config.get_enable_watchdog() and waited >= (num_warnings + 1) * interval:
                num_warnings += 1
                worker = f"worker process {self.number} (pid {self._process.pid})"
                log.warning(f"{self._where}: {worker} has worked on {rows()} for {waited:.0f} s")

    def hang_up(self) -> None:
        """Make the process end: the pipe is closed after the current call."""
        try:
            self._pipe.send_bytes(b"")
        except (OSError, ValueError):
            pass

    def end(self, seconds: float) -> None:
        """Wait for the process that long, then kill it."""
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(_END_SECONDS)
        self._pipe.close()
        if isinstance(self._region, mmap.mmap):
            try:
                self._region.close()             # release the pages now, not when Python collects garbage
            except BufferError:                  # an abandoned call still reads it
                pass


def _serve(pipe: Any, parents_end: Any, region: Any, function: Callable[[Any], Any], parent: int) -> None:
    """The main loop of the worker process: answers tasks until the parent closes the pipe or exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)            # Ctrl-C goes to the whole group; the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if parents_end is not None:
        parents_end.close()
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)                 # its threads do not exist in the child
    try:
        while True:
            while not pipe.poll(1.0):
                if os.getppid() != parent:
                    os._exit(0)
            task = _receive(pipe, region)
            if task is _HUNG_UP:
                os._exit(0)
            answer = _answer(function, task)
            _flush()
            _send(pipe, region, answer)
    except (EOFError, OSError):
        os._exit(0)


def _flush() -> None:
    """Flush the functions' output, because the process skips Python's normal exit, which would do so."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):        # missing, closed, or without a reader
            pass


def _answer(function: Callable[[Any], Any], task: Any) -> tuple[str, Any]:
    try:
        return "value", function(task)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:                        # not every error can be pickled
            return "error", failed("worker process", error)
        return "error", error


def shared_megabytes(max_rowsize: Any) -> int:
    """Return the megabytes of shared memory that `max_rowsize` requests: the largest of its sizes; 0 if it is open."""
    sizes = max_rowsize if isinstance(max_rowsize, list) else [max_rowsize or 0]
    return max([0, *sizes])


class _HungUp:
    """The message that ends a process."""


_HUNG_UP = _HungUp()


def _send(pipe: Any, region: Any, value: Any) -> None:
    """Send a value: its arrays through the region while they fit, everything else as a pickle through the pipe."""
    view, arrays, position = memoryview(region).cast("B"), [], 0

    def keeps(buffer: pickle.PickleBuffer) -> bool:
        """Put an array into the region; True leaves it to the pickle."""
        nonlocal position
        raw = buffer.raw()
        end = position + raw.nbytes
        if end > len(view):
            return True
        view[position:end] = raw
        arrays.append((position, end))
        position = -(-end // _ALIGNMENT) * _ALIGNMENT
        return False

    body = pickle.dumps(value, protocol=5, buffer_callback=keeps)
    pipe.send_bytes(pickle.dumps(arrays, protocol=5))
    pipe.send_bytes(body)


def _receive(pipe: Any, region: Any) -> Any:
    """Return the value that was sent, with copied arrays."""
    head = pipe.recv_bytes()
    if not head:
        return _HUNG_UP
    view = memoryview(region).cast("B")
    buffers = [bytearray(view[start:end]) for start, end in pickle.loads(head)]
    return pickle.loads(pipe.recv_bytes(), buffers=buffers)
