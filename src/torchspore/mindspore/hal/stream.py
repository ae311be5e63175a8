"""Streams and events of a device. On the CPU there is one stream, the caller's thread, and everything on it is done when it returns."""
from __future__ import annotations

from types import TracebackType
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.devices import streams as engine


def _stream(call: str, given: Any) -> Stream:
    if not isinstance(given, Stream):
        raise TypeError(message(f"{call}({short(given)})", f"a Stream, got {type(given).__name__}"))
    return given


def _event(call: str, given: Any) -> Event:
    if not isinstance(given, Event):
        raise TypeError(message(f"{call}({short(given)})", f"an Event, got {type(given).__name__}"))
    return given


class Stream:
    """A line of work on the device, beside others. `priority` 0 or -1, which comes first. Raises TypeError for what is no int."""

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        self._own = kwargs.pop("_own", None)
        if kwargs:
            raise TypeError(message(f"Stream({', '.join(kwargs)}=...)", "priority alone"))
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise TypeError(message(f"Stream(priority={short(priority)})", f"an int, got {type(priority).__name__}"))
        if self._own is None:
            self._own = engine.new_stream(priority)

    @property
    def id(self) -> int:
        """The number of the stream."""
        return engine.number(self._own)

    @property
    def device_name(self) -> str:
        """What the stream is on: 'CPU', 'GPU' or 'Ascend'."""
        return engine.device_name()

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return engine.device_number()

    def query(self) -> bool:
        """Whether all work on it is done."""
        return engine.is_done(self._own)

    def synchronize(self) -> None:
        """Waits until all work on it is done."""
        engine.wait(self._own)

    def record_event(self, event: Event | None = None) -> Event:
        """Puts an event, by default a new one, behind the work on it; gives the event."""
        event = Event() if event is None else _event("record_event", event)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Lets work that comes later wait for an event."""
        _event("wait_event", event).wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Lets work that comes later wait for all that is on another stream now."""
        engine.wait_for_stream(self._own, _stream("wait_stream", stream)._own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Stream(device_name={self.device_name}, device_id:{self.device_id}, stream id:{self.id})"


class Event:
    """A mark on a stream; with `enable_timing` the time between two of them can be asked. `blocking` lets the thread that waits sleep."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        for name, value in (("enable_timing", enable_timing), ("blocking", blocking)):
            if not isinstance(value, bool):
                raise TypeError(message(f"Event({name}={short(value)})", f"True or False, got {type(value).__name__}"))
        self._own = engine.new_event(enable_timing, blocking)

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark behind the work on a stream, by default the current one."""
        engine.record(self._own, None if stream is None else _stream("record", stream)._own)

    def wait(self, stream: Stream | None = None) -> None:
        """Lets a stream, by default the current one, wait for the mark."""
        engine.wait_for_event(self._own, None if stream is None else _stream("wait", stream)._own)

    def synchronize(self) -> None:
        """Waits until the work before the mark is done."""
        engine.wait(self._own)

    def query(self) -> bool:
        """Whether the work before the mark is done."""
        return engine.is_done(self._own)

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this mark to another. Raises RuntimeError where one was not recorded or does not take times."""
        return engine.between(self._own, _event("elapsed_time", end_event)._own)


class StreamCtx:
    """A `with` block whose operators run on a stream; None changes nothing."""

    def __init__(self, ctx_stream: Stream | None) -> None:
        self.stream = None if ctx_stream is None else _stream("StreamCtx", ctx_stream)
        self._before: Stream | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = current_stream()
            set_cur_stream(self.stream)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            set_cur_stream(self._before)
            self._before = None


def current_stream() -> Stream:
    """The stream that operators run on now."""
    return Stream(_own=engine.current())


def default_stream() -> Stream:
    """The stream that operators run on where nothing else was said."""
    return Stream(_own=engine.default())


def communication_stream() -> Stream:
    """The stream that messages between processes run on; one process sends none, and it is the default stream."""
    return default_stream()


def set_cur_stream(stream: Stream | None) -> None:
    """Lets operators run on a stream from here on; None changes nothing."""
    if stream is not None:
        engine.choose(_stream("set_cur_stream", stream)._own)
