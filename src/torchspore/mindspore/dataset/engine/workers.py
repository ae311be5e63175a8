"""Threads of a pipeline: the one that reads ahead of its consumer, and those that share the work of a `map`.

Every queue is bounded, order is kept, an error comes out where its row would have, and closing ends all threads: they are daemons, and
joined for a moment so that no function of the user's still runs when the program goes on. Whatever the program's own thread waits on is a
SimpleQueue: an interrupt inside of `threading.Condition` (and of Futures and Queues, which have one) would leave its lock released.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from torchspore.base import beside
from torchspore.mindspore.dataset.engine.waits import Waits

_JOIN_SECONDS = 2.0


class Call:
    """A call that a thread makes, and what came of it."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.is_cancelled = False
        self.thread = 0
        """The number of the thread that makes it, 0 before."""

    def run(self) -> None:
        """Makes the call, unless nobody waits for it any more."""
        if self.is_cancelled:
            return
        self.thread = threading.get_ident()
        try:
            self._done.put((self._function(*self._arguments), None))
        except BaseException as error:
            self._done.put((None, error))
            if not isinstance(error, Exception) and self.thread == threading.main_thread().ident:
                raise                              # an interrupt, which does not wait until somebody asks for this call

    @property
    def is_done(self) -> bool:
        """Whether there is a result that nobody took."""
        return not self._done.empty()

    def result(self) -> Any:
        """Waits for the call; asked once. Raises what it raised."""
        value, error = self._done.get()
        if error is not None:
            raise error
        return value


class Workers:
    """`count` threads that run submitted calls.

    With `is_helped`, the thread that waits for results is one of them: it makes calls instead of sleeping. One thread more than there are
    cores costs the others what Python's lock takes to change hands: on 2 cores two workers and a sleeper made 1.1 pictures a ms, these 1.4.
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
        """Queues a call."""
        call = Call(function, arguments)
        self._calls.put(call)
        return call

    def result(self, call: Call) -> Any:
        """Waits for a call that was submitted here, and helps until it is made. Raises what it raised."""
        while self._is_helped and not call.is_done:
            try:
                other = self._calls.get_nowait()
            except Empty:
                break
            if other is None:                      # a thread's sign to end
                self._calls.put(None)
                break
            other.run()
        return call.result()

    def close(self) -> None:
        """Ends the threads after the calls that run now."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)


def _work(calls: SimpleQueue[Any]) -> None:
    while (call := calls.get()) is not None:
        call.run()


def ordered_map(function: Callable[[Any], Any], items: Iterable[Any], workers: Workers, ahead: int) -> Iterator[Any]:
    """Gives `function(item)` for each item in order, with at most `ahead` of them under way."""
    pending: deque[Call] = deque()
    source = iter(items)
    late: BaseException | None = None
    try:
        while late is None:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:  # rows that came before it are given first
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
    """A thread that runs one epoch after another into a queue of `depth` rows; it starts an epoch when it is asked for.

    `waits` notes who waits for whom. Where the program waits longer than `patience` says, `tell` is given the thread's number and the
    seconds, again and again.
    """

    def __init__(
        self, epoch: Callable[[], Iterator[Any]], depth: int, waits: Waits, patience: Callable[[], float | None],
        tell: Callable[[int, float], None],
    ) -> None:
        self._epoch, self._waits, self._patience, self._tell = epoch, waits, patience, tell
        self._rows: SimpleQueue[Any] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        self._asked: SimpleQueue[None] = SimpleQueue()
        for _ in range(depth):
            self._room.put(None)
        self._wanted = False
        self._closed = False
        self.thread: threading.Thread | None = None

    def start_epoch(self) -> None:
        """Asks for the rows of the next epoch."""
        self._wanted = True
        self._asked.put(None)
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="torchspore-dataset", daemon=True)
            self.thread.start()

    def next(self) -> Any:
        """The next row. Raises StopIteration at the end of the epoch, and what the pipeline raised."""
        if self._closed:
            raise StopIteration
        row = self._wait() if self._rows.empty() else self._rows.get()
        self._room.put(None)
        if row is _END:
            raise StopIteration
        if isinstance(row, _Raised):
            raise row.error
        return row

    def _wait(self) -> Any:
        """The next row, once it is there."""
        start = perf_counter()
        beside.end_exclusive()                          # this thread may be capturing a graph
        try:
            while True:
                try:
                    return self._rows.get(timeout=self._patience())
                except Empty:
                    if self.thread is not None and self.thread.ident is not None:
                        self._tell(self.thread.ident, perf_counter() - start)
        finally:
            self._waits.waited += perf_counter() - start

    def close(self) -> None:
        """Ends the thread and forgets the rows that wait."""
        self._closed = True
        self._room.put(None)
        self._asked.put(None)
        self._rows.put(_END)                       # for a consumer that waits in another thread
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(_JOIN_SECONDS)

    def _put(self, row: Any) -> bool:
        if self._room.empty():
            self._waits.rest()
            self._room.get()
            self._waits.work()
        else:
            self._room.get()
        if not self._closed:
            self._rows.put(row)
        return not self._closed

    def _run(self) -> None:
        while True:
            while not self._wanted and not self._closed:
                self._asked.get()
            if self._closed:
                return
            self._wanted = False
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
