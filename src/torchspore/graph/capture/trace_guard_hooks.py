"""Installs hooks while a trace runs: at attributes of Cells, at calls, and at functions with effects outside of the program."""
from __future__ import annotations

import builtins
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchspore.base.frames import is_user_file
from torchspore.engine.front_end import FRONT
from torchspore.engine.torch_internals.torch_private import around_operators
from torchspore.graph.capture.callers import is_ours
from torchspore.graph.capture.namespaces import TELL
from torchspore.graph.capture.ownership import writes_past
from torchspore.graph.capture.profile_hook import suspended, unwatched
from torchspore.graph.capture.running_trace import TRACE
from torchspore.graph.capture.side_effects import TALK
from torchspore.graph.capture.state import MISSING
from torchspore.graph.capture.trace_guard import TraceGuard


@contextmanager
def watching(watch: TraceGuard) -> Iterator[None]:
    """Watches this thread; one trace at a time in the process."""
    resume, around = suspended(), (TRACE.guard, TRACE.thread)
    TRACE.guard, TRACE.thread = watch, threading.get_ident()
    if FRONT.cell is not None:
        FRONT.cell.__getattribute__ = _noting
    # Builtins are replaced for all threads, because a profile hook cannot do their work: Python removes a hook that has raised, so that a
    # `print` in a `finally` after it would be executed, and a hook does not receive the name in `getattr(x, name)`. The replacements check
    # the thread first: other threads get the original function.
    for function in TALK:
        setattr(builtins, function.__name__, _guarded(function))
    watch.listen = _listen
    sys.setprofile(watch.hook)
    try:
        with around_operators(unwatched):
            yield
    finally:
        sys.setprofile(None)
        TRACE.guard, TRACE.thread = around
        if TRACE.guard is None:                      # otherwise a trace in which this one was created continues
            for function in (*TALK, *TELL.values()):
                setattr(builtins, function.__name__, function)
            if FRONT.cell is not None:
                del FRONT.cell.__getattribute__
        resume()


def _guarded(function: Any) -> Callable[..., Any]:
    """Return the replacement of `print`, `input` or `open`: it ends the trace of the thread that traces."""

    @functools.wraps(function)
    def talk(*args: Any, **kwargs: Any) -> Any:
        watch = TRACE.guard
        if watch is None or threading.get_ident() != TRACE.thread or is_ours(sys._getframe(1)):
            return function(*args, **kwargs)
        raise watch.refuse(*TALK[function])

    return talk


def _listen() -> None:
    for name, function in TELL.items():
        if getattr(builtins, name) is function:
            setattr(builtins, name, _recording_names(function))


def _recording_names(function: Any) -> Callable[..., Any]:
    """Return the replacement of `getattr` or `hasattr`: it records the name. For Cells `_noting` records it."""

    @functools.wraps(function)
    def ask(*arguments: Any) -> Any:
        watch = TRACE.guard
        if (
            watch is not None and threading.get_ident() == TRACE.thread and len(arguments) > 1 and isinstance(arguments[1], str)
            and not isinstance(arguments[0], FRONT.cell) and is_user_file(sys._getframe(1).f_code.co_filename)
        ):
            watch.note_query(arguments[1])
        return function(*arguments)

    return ask


def _noting(self: Any, name: str) -> Any:
    """A Cell's attribute access while a thread traces."""
    watch = TRACE.guard
    if watch is None or threading.get_ident() != TRACE.thread:
        return object.__getattribute__(self, name)
    if name[:2] == "__":
        if name == "__dict__" and is_user_file(sys._getframe(1).f_code.co_filename):
            watch.read_all(self)
        return object.__getattribute__(self, name)
    if name == "construct" and watch.converter is not None:
        watch.note_construct(self)
        return watch.converter.converted(object.__getattribute__(self, name), watch)
    watch.note_class(self)
    watch.roads.ask(type(self), name)
    if id(self) in watch.born:                      # its contents are not a state of the program, its class is
        return object.__getattribute__(self, name)
    attributes = object.__getattribute__(self, "__dict__")
    kind: Any = type(self)
    if writes_past(kind):
        watch.uncounted.add(id(attributes))
    if name in attributes:
        key = (id(attributes), name)
        if key in watch.numbers and key not in watch.writes:
            return watch.numbers[key]
        if name == "_hooks_":
            watch.taken(attributes[name], name)
        elif name != "_graphs_":
            watch.read(attributes, name, attributes[name], True)
        return object.__getattribute__(self, name)
    for container in ("_params", "_cells"):
        container_value = attributes.get(container)
        if container_value is not None and name in container_value:
            watch.read(container_value, name, container_value[name], True)
            break
    else:
        member = _of_class(kind, name)
        if isinstance(member, functools.cached_property):
            watch.wrote(self, name)                 # which Python does, past `setattr`
        elif isinstance(member, types.MemberDescriptorType):
            raise watch.refuse(f"reads {name!r}, a slot of a Cell")
        if name == "construct" or not hasattr(FRONT.cell, name):
            for container_value in (attributes, attributes.get("_params"), attributes.get("_cells")):  # a part of that name may come later
                if container_value is not None:
                    watch.read(container_value, name, MISSING, True)
    return object.__getattribute__(self, name)


def _of_class(cls: type, name: str) -> Any:
    """Return the value of a name in the bodies of a class and its bases."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
