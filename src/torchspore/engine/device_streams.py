"""Streams and events of the device that operators run on; the CPU has one stream, whose work is done when a call returns.

Those of a GPU and of an Ascend device are torch's, under the same names. Not run on either: held by a recorded stand-in of `torch.cuda`.
"""
from __future__ import annotations

import threading
import time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torchspore.engine import device
from torchspore.engine.hardware import devices
from torchspore.engine.private import modes_of_now


class _Here:
    """The one stream of the CPU, or a mark on it."""

    def __init__(self, takes_time: bool = False) -> None:
        self.takes_time = takes_time
        self.at: float | None = None


_CPU = _Here()
_NO_TIMES = "elapsed_time: expected two events with enable_timing=True that were recorded."


def new_stream(priority: int) -> Any:
    """A new stream of the device; the CPU gives its only one."""
    return device.backend().Stream(device=device.current(), priority=priority) if device.has_queue() else _CPU


def current() -> Any:
    """The stream that operators run on."""
    return device.backend().current_stream(device.current()) if device.has_queue() else _CPU


def default() -> Any:
    """The stream that operators run on at first."""
    return device.backend().default_stream(device.current()) if device.has_queue() else _CPU


class _StreamUses(TorchDispatchMode):
    """Tells torch's allocator which memory the operators of a stream use, other than the default one.

    torch gives released memory to the next tensor of the stream that it was allocated on. Programs for MindSpore do not name the other
    streams that still use it. Inputs of an operator may come from any stream; results may go to the default one.
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
    # A tensor of a trace has a class of its own, and no memory.
    if type(value) is torch.Tensor and value.device.type == stream.device.type:
        value.record_stream(stream)


_uses = threading.local()


def choose(stream: Any) -> None:
    """Lets operators run on a stream."""
    if isinstance(stream, _Here):
        return
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
    return devices.current_target()


def device_number() -> int:
    """The number of the device that operators run on."""
    return device.current().index or 0


def new_event(takes_time: bool, blocking: bool) -> Any:
    """A mark that stands nowhere yet."""
    return device.backend().Event(enable_timing=takes_time, blocking=blocking) if device.has_queue() else _Here(takes_time)


def record(event: Any, stream: Any) -> None:
    """Puts a mark behind the work on a stream, or on the current one."""
    if isinstance(event, _Here):
        event.at = time.perf_counter()
    else:
        event.record(stream if stream is not None else current())


def wait_for_event(event: Any, stream: Any) -> None:
    """Lets a stream, or the current one, wait for a mark."""
    if not isinstance(event, _Here):
        event.wait(stream if stream is not None else current())


def wait_for_stream(stream: Any, other: Any) -> None:
    """Lets a stream wait for the work on another."""
    if not isinstance(stream, _Here):
        stream.wait_stream(other)


def wait(one: Any) -> None:
    """Waits for the work on a stream or before a mark."""
    if not isinstance(one, _Here):
        one.synchronize()


def is_done(one: Any) -> bool:
    """Whether the work on a stream or before a mark is done."""
    return True if isinstance(one, _Here) else bool(one.query())


def between(first: Any, second: Any) -> float:
    """The milliseconds between two marks. Raises RuntimeError where one was not recorded, or takes no times."""
    if isinstance(first, _Here):
        if first.at is None or second.at is None or not (first.takes_time and second.takes_time):
            raise RuntimeError(_NO_TIMES)
        return (second.at - first.at) * 1000
    second.synchronize()
    try:
        return float(first.elapsed_time(second))
    except (RuntimeError, ValueError):
        raise RuntimeError(_NO_TIMES) from None
