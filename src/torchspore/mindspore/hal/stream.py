"""Streams and events of a device. The CPU has one stream, the caller's thread, and operators have finished when their call returns."""
from __future__ import annotations

from types import TracebackType
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message, short
from torchspore.engine.devices import streams as engine


def _stream(call: str, value: Any) -> Stream:
    if not isinstance(value, Stream):
        raise TypeError(message(f"{call}({short(value)})", f"a Stream, got {type(value).__name__}"))
    return value


def _event(call: str, value: Any) -> Event:
    if not isinstance(value, Event):
        raise TypeError(message(f"{call}({short(value)})", f"an Event, got {type(value).__name__}"))
    return value


class Stream:
    """A queue of work on the device, parallel to others. `priority` is 0 or -1 (higher). Raises TypeError unless it is an int."""

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        self._handle = kwargs.pop("_handle", None)
        if kwargs:
            raise TypeError(message(f"Stream({', '.join(kwargs)}=...)", "priority alone"))
        check_int_type("Stream", "priority", priority)
        if self._handle is None:
            self._handle = engine.new_stream(priority)

    @property
    def id(self) -> int:
        """Return the number of the stream."""
        return engine.number(self._handle)

    @property
    def device_name(self) -> str:
        """Return the kind of the stream's device: 'CPU', 'GPU' or 'Ascend'."""
        return engine.device_name()

    @property
    def device_id(self) -> int:
        """Return the number of the device."""
        return engine.device_number()

    def query(self) -> bool:
        """Return whether all its work has finished."""
        return engine.is_done(self._handle)

    def synchronize(self) -> None:
        """Wait until all its work has finished."""
        engine.wait(self._handle)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, by default a new one, after its current work; return the event."""
        event = Event() if event is None else _event("record_event", event)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work wait for an event."""
        _event("wait_event", event).wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work wait for the current work of another stream."""
        engine.wait_for_stream(self._handle, _stream("wait_stream", stream)._handle)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Stream(device_name={self.device_name}, device_id:{self.device_id}, stream id:{self.id})"


class Event:
    """A mark on a stream; `enable_timing` allows measuring the time between two of them. With `blocking` a waiting thread sleeps."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        for name, value in (("enable_timing", enable_timing), ("blocking", blocking)):
            if not isinstance(value, bool):
                raise TypeError(message(f"Event({name}={short(value)})", f"True or False, got {type(value).__name__}"))
        self._handle = engine.new_event(enable_timing, blocking)

    def record(self, stream: Stream | None = None) -> None:
        """Record the mark after the work of a stream, by default the current one."""
        engine.record(self._handle, None if stream is None else _stream("record", stream)._handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Make a stream, by default the current one, wait for the mark."""
        engine.wait_for_event(self._handle, None if stream is None else _stream("wait", stream)._handle)

    def synchronize(self) -> None:
        """Wait until the work before the mark has finished."""
        engine.wait(self._handle)

    def query(self) -> bool:
        """Return whether the work before the mark has finished."""
        return engine.is_done(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this mark to another. Raises RuntimeError if one was not recorded or has no timing."""
        return engine.between(self._handle, _event("elapsed_time", end_event)._handle)


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
    """Return the current stream of operators."""
    return Stream(_handle=engine.current())


def default_stream() -> Stream:
    """Return the default stream of operators."""
    return Stream(_handle=engine.default())


def communication_stream() -> Stream:
    """Return the stream of messages between processes; for a single process, which sends none, the default stream."""
    return default_stream()


def set_cur_stream(stream: Stream | None) -> None:
    """Make operators run on a stream from now on; None changes nothing."""
    if stream is not None:
        engine.choose(_stream("set_cur_stream", stream)._handle)
