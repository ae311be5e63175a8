"""Streams and events of the device, and what is known to be done before what.

Each stream numbers its work. A *clock* is a dict from a stream's number to the number of its last work that is done before some point:
before the next work of a stream, before an event, or before what Python does now. In the late mode a stream also has a queue: its work
runs when Python waits for it, and not before.
"""
from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from stand_in import guard
from stand_in.counting import count_wait
from stand_in.memory import NAME

Clock = dict[int, int]
_KIND = int(torch._C._autograd.DeviceType.PrivateUse1)
_numbers = itertools.count(1)
lock = threading.RLock()
"""Held while work is launched or run: threads of Python and of torch.autograd launch work."""
is_late = False
"""Whether work is queued until Python waits for it."""


class Line:
    """The work of one stream: what is done before its next work, and in the late mode what is still to run."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.clock: Clock = {}
        self.launched = self.ran = 0
        self._queue: deque[Callable[[], None]] = deque()

    def launch(self, work: Callable[[], None] | None = None) -> int:
        """Number the next work, queue it in the late mode, and return its number. Without `work` it has run already."""
        join(self.clock, host_clock)
        self.launched += 1
        self.clock[self.number] = self.launched
        self._queue.append(work or _nothing)
        if work is None or not is_late:
            self.run_until(self.launched)
        return self.launched

    def run_until(self, number: int) -> None:
        """Run the queued work up to a number."""
        while self.ran < number:
            work = self._queue.popleft()
            self.ran += 1
            work()


def _nothing() -> None:
    """Stand for work that has run already."""


_lines: dict[int, Line] = {0: Line(0)}
_streams: dict[int, Stream] = {}
host_clock: Clock = {}
"""The work that is done before what Python does now."""


def join(clock: Clock, other: Clock) -> None:
    """Add to a clock what another one knows."""
    for number, work in other.items():
        if clock.get(number, 0) < work:
            clock[number] = work


class Stream(torch.Stream):
    """A stream, as torch.cuda.Stream."""

    def __new__(cls, device: Any = None, priority: int = 0, **names: Any) -> Stream:
        number = names.get("stream_id")
        number = next(_numbers) if number is None else number
        index = 0 if device is None else torch.device(device).index or 0
        stream = super().__new__(cls, stream_id=number, device_index=index, device_type=_KIND)
        _lines.setdefault(number, Line(number))
        _streams.setdefault(number, stream)
        return stream

    def __init__(self, *arguments: Any, **names: Any) -> None:
        """torch's class takes these in __new__."""

    @property
    def line(self) -> Line:
        """The work of this stream."""
        return _lines[self.stream_id]

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for the work that is on another stream now."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event behind the work of this stream."""
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Return whether the work of this stream is done."""
        return self.line.ran >= self.line.launched

    def synchronize(self) -> None:
        """Let Python wait for the work of this stream."""
        count_wait("a synchronization of a stream")
        wait_for_line(self.line)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, torch.Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash((NAME, self.stream_id))


def wait_for_line(line: Line) -> None:
    """Let Python wait for the work of one stream."""
    with lock:
        line.run_until(line.launched)
        join(host_clock, line.clock)


def wait_for_all() -> None:
    """Let Python wait for the work of all streams."""
    with lock:
        for line in list(_lines.values()):
            wait_for_line(line)


def lines() -> list[Line]:
    """Return the work of each stream."""
    return list(_lines.values())


class Event:
    """A mark on a stream, as torch.cuda.Event."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.enable_timing = enable_timing
        self._line: Line | None = None
        self._number = 0
        self._clock: Clock = {}
        self._time = 0.0

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work of a stream, by default the current one."""
        with lock:
            self._line = (stream or current_stream()).line
            self._number, self._clock, self._time = self._line.launched, dict(self._line.clock), time.perf_counter()
            join(self._clock, host_clock)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream, by default the current one, wait for the mark."""
        with lock:
            line = (stream or current_stream()).line
            if self._line is None or self._line is line:
                return
            other, number = self._line, self._number
            line.launch(lambda: other.run_until(number))
            join(line.clock, self._clock)

    def synchronize(self) -> None:
        """Let Python wait for the work before the mark."""
        count_wait("a synchronization of an event")
        with lock:
            if self._line is not None:
                self._line.run_until(self._number)
                join(host_clock, self._clock)

    def query(self) -> bool:
        """Return whether the work before the mark is done."""
        return self._line is None or self._line.ran >= self._number

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this mark to another. Raises RuntimeError where one of them takes no times."""
        if not (self.enable_timing and end_event.enable_timing and self._line and end_event._line):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True' and recorded.")
        return (end_event._time - self._time) * 1000


_default = Stream(stream_id=0)
_events: dict[int, Event] = {}
"""The events of torch.autograd by their numbers."""


def current_stream(device: Any = None) -> Stream:
    """Return the stream on which this thread's operators run."""
    return _streams[guard.current_stream()]


def follow_autograd(event: int, number: int, action: int) -> None:
    """Record an event of torch.autograd, let a stream wait for it, or release it."""
    if action == 0:
        _events[event] = Event()
        _events[event].record(_streams[number])
    elif action == 1 and event in _events:
        _events[event].wait(_streams[number])
    else:
        _events.pop(event, None)


def default_stream(device: Any = None) -> Stream:
    """Return the stream on which operators run at first."""
    return _default


def set_stream(stream: Stream) -> None:
    """Let this thread's operators run on a stream."""
    guard.set_current_stream(stream.stream_id)


@contextmanager
def stream(chosen: Stream | None) -> Iterator[None]:
    """A block whose operators run on a stream."""
    before = current_stream()
    if chosen is not None:
        set_stream(chosen)
    try:
        yield
    finally:
        set_stream(before)


@contextmanager
def late_execution() -> Iterator[None]:
    """A block in which work is queued until Python waits for it."""
    global is_late
    wait_for_all()
    before, is_late = is_late, True
    try:
        yield
    finally:
        wait_for_all()
        is_late = before
