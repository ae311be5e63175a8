"""Threads of a pipeline: the reader ahead of its consumer, and the workers of a `map`.

Every queue is bounded, the order is preserved, an error is raised at the position of its row, and closing ends all threads. They are
daemons, joined briefly so that no user function still runs when the program continues. The program's thread waits only on SimpleQueues: an
interrupt inside a `threading.Condition` (also in Futures and Queues, which have one) would leave its lock released.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from torchspore.base import user_threads
from torchspore.mindspore.dataset.engine.waits import Waits

_JOIN_SECONDS = 2.0


class Call:
    """A call that a thread makes, and its outcome."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.is_cancelled = False
        self.thread = 0
        """The number of the thread that makes the call, 0 before."""

    def run(self) -> None:
        """Make the call, unless it was abandoned."""
        if self.is_cancelled:
            return
        self.thread = threading.get_ident()
        try:
            self._done.put((self._function(*self._arguments), None))
        except BaseException as error:
            self._done.put((None, error))
            if not isinstance(error, Exception) and self.thread == threading.main_thread().ident:
                raise                              # an interrupt, which must not wait until this call's result is requested

    @property
    def is_done(self) -> bool:
        """Return whether there is an untaken result."""
        return not self._done.empty()

    def result(self) -> Any:
        """Wait for the call and return its result, once. Raises its exception."""
        value, error = self._done.get()
        if error is not None:
            raise error
        return value


class Workers:
    """`count` threads that run submitted calls.

    With `is_helped`, the thread that waits for results counts as one of them: it makes calls instead of sleeping. More threads than cores
    contend for Python's lock: on 2 cores two workers and a sleeping thread made 1.1 pictures per ms, these 1.4.
    """

    def __init__(self, count: int, name: str, is_helped: bool = False) -> None:
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self.count, self._is_helped = count, is_helped
        self._threads = [
            threading.Thread(target=_work, args=(self._calls,), name=f"{name}-{number}", daemon=True)
            for number in range(count - is_helped)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Call:
        """Queue a call."""
        call = Call(function, arguments)
        self._calls.put(call)
        return call

    def result(self, call: Call) -> Any:
        """Wait for a call that was submitted here, and make other calls meanwhile. Raises its exception."""
        while self._is_helped and not call.is_done:
            try:
                other = self._calls.get_nowait()
            except Empty:
                break
            if other is None:                      # the signal for a thread to end
                self._calls.put(None)
                break
            other.run()
        return call.result()

    def close(self) -> None:
        """End the threads after the current calls."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)


def _work(calls: SimpleQueue[Any]) -> None:
    while (call := calls.get()) is not None:
        call.run()


def ordered_map(function: Callable[[Any], Any], items: Iterable[Any], workers: Workers, ahead: int) -> Iterator[Any]:
    """Yield `function(item)` for each item in order, with at most `ahead` calls in progress."""
    pending: deque[Call] = deque()
    source = iter(items)
    late: BaseException | None = None
    try:
        while late is None:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:  # earlier rows are yielded first
                late = error
                break
            pending.append(workers.submit(function, item))
            if len(pending) >= ahead:
                yield workers.result(pending.popleft())
        while pending:
            yield workers.result(pending.popleft())
        if late is not None:
            raise late
    finally:
        for call in pending:
            call.is_cancelled = True


_END = object()


class ReadAhead:
    """A thread that reads epochs into a queue of `depth` rows; it starts each epoch on request.

    `waits` records waiting times. If the program waits longer than `patience`, `warn` is called repeatedly with the thread's number and
    the seconds.
    """

    def __init__(
        self, epoch: Callable[[], Iterator[Any]], depth: int, waits: Waits, patience: Callable[[], float | None],
        warn: Callable[[int, float], None],
    ) -> None:
        self._epoch, self._waits, self._patience, self._warn = epoch, waits, patience, warn
        self._rows: SimpleQueue[Any] = SimpleQueue()
        self._free_slots: SimpleQueue[None] = SimpleQueue()
        self._requests: SimpleQueue[None] = SimpleQueue()
        for _ in range(depth):
            self._free_slots.put(None)
        self._is_requested = False
        self._closed = False
        self._peeked: list[Any] = []
        """The next row, if `peek` has taken it from the queue."""
        self.thread: threading.Thread | None = None

    def start_epoch(self) -> None:
        """Request the rows of the next epoch."""
        self._is_requested = True
        self._requests.put(None)
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="torchspore-dataset", daemon=True)
            self.thread.start()

    def next(self) -> Any:
        """Return the next row. Raises StopIteration at the end of the epoch, and the pipeline's exceptions."""
        if self._closed:
            raise StopIteration
        row = self._peeked.pop() if self._peeked else self._wait() if self._rows.empty() else self._rows.get()
        self._free_slots.put(None)
        if row is _END:
            raise StopIteration
        if isinstance(row, _Raised):
            raise row.error
        return row

    def peek(self) -> Any:
        """Return the row that `next` will return if it is in memory; otherwise, and at the end of the epoch, return None."""
        if not self._peeked:
            try:
                self._peeked.append(self._rows.get_nowait())
            except Empty:
                return None
        row = self._peeked[0]
        return None if row is _END or isinstance(row, _Raised) else row

    def _wait(self) -> Any:
        """Wait for the next row and return it."""
        start = perf_counter()
        user_threads.end_exclusive()                          # this thread may be capturing a graph
        try:
            while True:
                try:
                    return self._rows.get(timeout=self._patience())
                except Empty:
                    if self.thread is not None and self.thread.ident is not None:
                        self._warn(self.thread.ident, perf_counter() - start)
        finally:
            self._waits.waited += perf_counter() - start

    def close(self) -> None:
        """End the thread and drop the queued rows."""
        self._closed = True
        self._free_slots.put(None)
        self._requests.put(None)
        self._rows.put(_END)                       # for a consumer that waits in another thread
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(_JOIN_SECONDS)

    def _put(self, row: Any) -> bool:
        if self._free_slots.empty():
            self._waits.rest()
            self._free_slots.get()
            self._waits.work()
        else:
            self._free_slots.get()
        if not self._closed:
            self._rows.put(row)
        return not self._closed

    def _run(self) -> None:
        while True:
            while not self._is_requested and not self._closed:
                self._requests.get()
            if self._closed:
                return
            self._is_requested = False
            rows = None
            self._waits.work()
            try:
                rows = self._epoch()
                for row in rows:
                    if not self._put(row):
                        return
                self._put(_END)
            except BaseException as error:
                self._put(_Raised(error))
            finally:
                if rows is not None:
                    rows.close()
                self._waits.rest()


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error
