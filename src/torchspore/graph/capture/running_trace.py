"""The trace of this thread. Operators ask for it outside of captures too, so the module loads nothing else of the package."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchspore.engine.tensors.tensor import frame
from torchspore.graph.refusal import Kind

if TYPE_CHECKING:
    from torchspore.graph.capture.capture import Capture
    from torchspore.graph.capture.trace_guard import TraceGuard


class _Trace:
    """The trace that runs, and its thread."""

    def __init__(self) -> None:
        self.guard: TraceGuard | None = None
        self.thread = 0


TRACE = _Trace()


def ends_trace(what: str, kind: Kind) -> None:
    """End this thread's trace, if one runs: the calling operator has an effect apart from its result, so that it must run each time."""
    watch = TRACE.guard
    if watch is not None and is_tracing():
        raise watch.refuse(what, kind)


def is_tracing() -> bool:
    """Return whether this thread makes a graph."""
    return TRACE.guard is not None and threading.get_ident() == TRACE.thread


def current() -> Capture | None:
    """The capture that this thread is in, the innermost one."""
    around: Any = frame()
    while around is not None and not around.traces:
        around = around.outer
    return around


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function to call for one of ours (`converts`) whose branches depend on a Tensor: converted, in a capture that converts."""
    capture = current()
    return function if capture is None else capture.callee(function)


def split_now() -> Capture | None:
    """Return this thread's capture if its graph is going to be split over devices, else None."""
    capture = current()
    return capture if capture is not None and capture.sharded_capture is not None else None
