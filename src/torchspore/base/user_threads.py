"""Functions of the user in other threads, such as those of data pipelines, and Python's garbage collection.

The capture of a graph detects draws from `random` and `numpy.random` by their state, and undoes them. A function that drew from them at the
same time would be mistaken for the traced code, and would draw the same numbers twice, so `exclusive` lets no function begin.
"""
from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from torchspore.base.forks import at_fork

_PATIENCE = 0.5
"""Seconds to wait for a function that already runs; it may itself wait for the program."""
_LONGEST = 30.0
"""Seconds after which a function begins in any case."""
_running_threads: set[int] = set()
"""The threads in which a user's function runs."""


class _Switching:
    """The thread that runs alone, and the threads that slow that down."""

    def __init__(self) -> None:
        self.exclusive_thread: int | None = None
        """The thread that excludes functions in all other threads, or None."""
        self.slow_threads: frozenset[int] = frozenset()
        """The threads that did not end within `_PATIENCE`."""


_SWITCHING = _Switching()
_may_begin = threading.Event()


def enter() -> bool:
    """Register a function that begins in this thread, and wait while another thread excludes it. Return the argument for `leave`."""
    me = threading.get_ident()
    if me in _running_threads:
        return False
    _running_threads.add(me)
    if _SWITCHING.exclusive_thread not in (None, me):          # read after registering; `exclusive` does the opposite
        _running_threads.discard(me)
        _may_begin.wait(_LONGEST)
        _running_threads.add(me)
    return True


def leave(entered: bool) -> None:
    """Unregister the function for which `enter` returned `entered`."""
    if entered:
        me = threading.get_ident()
        _running_threads.discard(me)
        if me in _SWITCHING.slow_threads:
            _SWITCHING.slow_threads -= {me}


def each(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a user's iterator; its code runs between `enter` and `leave`."""
    iterator = iter(rows)
    while True:
        entered = enter()
        try:
            row = next(iterator)
        except StopIteration:
            return
        finally:
            leave(entered)
        yield row


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Let no function begin in another thread during the block; wait at most `_PATIENCE` seconds for those that already run."""
    if _SWITCHING.exclusive_thread is not None:
        yield
        return
    me = threading.get_ident()
    _may_begin.clear()
    _SWITCHING.exclusive_thread = me
    try:
        end = time.monotonic() + _PATIENCE
        while (others := _running_threads - {me}) and not others <= _SWITCHING.slow_threads:
            if time.monotonic() > end:
                _SWITCHING.slow_threads = frozenset(others)
                break
            time.sleep(0.0005)
        yield
    finally:
        end_exclusive()


def end_exclusive() -> None:
    """Let functions begin again: the block of `exclusive` in this thread has ended, or waits for one of them."""
    if _SWITCHING.exclusive_thread == threading.get_ident():
        _SWITCHING.exclusive_thread = None
        _may_begin.set()


def _reset_after_fork() -> None:
    _SWITCHING.exclusive_thread, _SWITCHING.slow_threads = None, frozenset()
    _running_threads.clear()
    _may_begin.set()


at_fork(after_in_child=_reset_after_fork)
