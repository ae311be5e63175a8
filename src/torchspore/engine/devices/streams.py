"""Streams and events of the device that operators run on; the CPU has one stream, whose work is finished when a call returns.

Streams of a GPU and of an Ascend device are torch's, under the same names. They were not run on either; tests use a recorded stand-in of
`torch.cuda`. Apple's mps has one stream too, whose work finishes later.
"""
from __future__ import annotations

import threading
import time
from typing import Any

import torch

from torchspore.context import effects
from torchspore.engine.devices import device, device_facts
from torchspore.engine.torch_internals.torch_private import TorchDispatchMode, modes_of_now, tree_leaves


class _Here:
    """The one stream of the CPU, or a mark on it."""

    def __init__(self, takes_time: bool = False) -> None:
        self.takes_time = takes_time
        self.at: float | None = None


class _OnlyStream:
    """The one stream of an accelerator that has no others: Apple's mps."""

    stream_id = 0

    def synchronize(self) -> None:
        """Waits for all work on the device."""
        device.wait()

    def query(self) -> bool:
        """Return whether the work is done: it is after this call, which waits, as the device can't be asked."""
        device.wait()
        return True

    def wait_stream(self, other: object) -> None:
        """Nothing: work on one stream runs in its order."""


_CPU = _Here()
_NO_TIMES = "elapsed_time: expected two events with enable_timing=True that were recorded."
_ONLY = _OnlyStream()
_first: dict[torch.device, Any] = {}
"""The stream that a device of Intel's xpu began with, as `torch.xpu` does not tell its default one."""


def _has_streams() -> bool:
    return hasattr(device.backend(), "Stream")


def new_stream(priority: int) -> Any:
    """A new stream of the device; the CPU and Apple's mps give their only one."""
    if not device.has_queue():
        return _CPU
    current()                                              # the first one is noted before another is chosen
    if _has_streams():
        return device.backend().Stream(device=device.current(), priority=priority)
    effects.note("streams", "Apple's mps has one stream: work on several runs one after the other")
    return _ONLY


def current() -> Any:
    """The stream that operators run on."""
    if not device.has_queue():
        return _CPU
    if not _has_streams():
        return _ONLY
    stream = device.backend().current_stream(device.current())
    if not hasattr(device.backend(), "default_stream"):
        _first.setdefault(device.current(), stream)
    return stream


def default() -> Any:
    """The stream that operators run on at first."""
    if not device.has_queue():
        return _CPU
    default_stream = getattr(device.backend(), "default_stream", None)
    return default_stream(device.current()) if default_stream is not None else _first.get(device.current()) or current()


class _StreamUses(TorchDispatchMode):
    """Reports to torch's allocator which memory the operators of a non-default stream use.

    torch reuses released memory for the next tensor of the stream that allocated it. Programs for MindSpore do not name the other streams
    that still use the memory. Inputs of an operator may come from any stream; results may go to the default stream.
    """

    looks_on = True

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        results = function(*arguments, **(keywords or {}))
        if function is not torch.ops.aten.record_stream.default:
            here = current()
            first = default()
            if here != first:
                for t in tree_leaves((arguments, keywords)):
                    _record(t, here)
                for t in tree_leaves(results):
                    _record(t, first)
        return results


def _record(value: Any, stream: Any) -> None:
    # A tensor in a trace has a special class, and no memory.
    if type(value) is torch.Tensor and value.device.type == stream.device.type:
        value.record_stream(stream)


_uses = threading.local()


def choose(stream: Any) -> None:
    """Run operators on a stream."""
    if isinstance(stream, (_Here, _OnlyStream)):
        return
    current()                                              # the first one is noted before another is chosen
    device.backend().set_stream(stream)
    mode: Any = getattr(_uses, "mode", None)
    if mode is None and stream != default():
        _uses.mode = _StreamUses()
        _uses.mode.__enter__()
    elif mode is not None and stream == default() and next(iter(reversed(modes_of_now())), None) is mode:
        # Where another mode was entered since, this one stays, and does nothing on the default stream.
        _uses.mode.__exit__(None, None, None)
        del _uses.mode


def number(stream: Any) -> int:
    """The number of a stream; 0 on the CPU and for the default one."""
    return 0 if isinstance(stream, _Here) else int(stream.stream_id)


def device_name() -> str:
    """The target that operators run on."""
    return device_facts.current_target()


def device_number() -> int:
    """The number of the device that operators run on."""
    return device.current().index or 0


def new_event(takes_time: bool, blocking: bool) -> Any:
    """An event that is not recorded yet."""
    if not device.has_queue():
        return _Here(takes_time)
    if device.current().type in ("xpu", "mps"):            # a wait for their events blocks in any case
        return device.backend().Event(enable_timing=takes_time)
    return device.backend().Event(enable_timing=takes_time, blocking=blocking)


def record(event: Any, stream: Any) -> None:
    """Record an event on a stream, or on the current one."""
    if isinstance(event, _Here):
        event.at = time.perf_counter()
    elif _has_streams():
        event.record(stream if stream is not None else current())
    else:
        event.record()


def wait_for_event(event: Any, stream: Any) -> None:
    """Make a stream, or the current one, wait for an event."""
    if isinstance(event, _Here):
        return
    if _has_streams():
        event.wait(stream if stream is not None else current())
    else:
        event.wait()


def wait_for_stream(stream: Any, other: Any) -> None:
    """Make a stream wait for the work of another."""
    if not isinstance(stream, _Here):
        stream.wait_stream(other)


def wait(stream: Any) -> None:
    """Waits for the work on a stream or before a mark."""
    if not isinstance(stream, _Here):
        stream.synchronize()


def is_done(stream: Any) -> bool:
    """Return whether the work on a stream or before a mark is done."""
    return True if isinstance(stream, _Here) else bool(stream.query())


def between(first: Any, second: Any) -> float:
    """Return the milliseconds between two events. Raises RuntimeError if one was not recorded, or does not measure time."""
    if isinstance(first, _Here):
        if first.at is None or second.at is None or not (first.takes_time and second.takes_time):
            raise RuntimeError(_NO_TIMES)
        return (second.at - first.at) * 1000
    second.synchronize()
    try:
        return float(first.elapsed_time(second))
    except (RuntimeError, ValueError):
        raise RuntimeError(_NO_TIMES) from None
