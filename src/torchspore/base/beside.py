"""What runs beside the program: functions of the user's in other threads, those of data pipelines, and what Python frees by itself.

While a graph is captured, what the trace draws from `random` and `numpy.random` is seen by their state, and undone. A function that drew
from them at the same time would be taken for the trace, and draw the same numbers twice: so `alone` lets none begin.
"""
from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

_PATIENCE = 0.5
"""Seconds that a function which runs already is waited for; it may itself wait for the program."""
_LONGEST = 30.0
"""Seconds after which a function begins in any case."""
_inside: set[int] = set()
"""The threads in which such a function runs."""
_alone: int | None = None
"""The thread that wants none to run."""
_again = threading.Event()
_slow: frozenset[int] = frozenset()
"""The threads that were waited for in vain."""


def enter() -> bool:
    """A function begins in this thread; waits where none may. Gives what `leave` is to be told."""
    me = threading.get_ident()
    if me in _inside:
        return False
    _inside.add(me)
    if _alone is not None and _alone != me:            # looked at after the thread has shown itself, as `alone` looks the other way round
        _inside.discard(me)
        _again.wait(_LONGEST)
        _inside.add(me)
    return True


def leave(entered: bool) -> None:
    """The function that `enter` was called for has ended."""
    global _slow
    if entered:
        me = threading.get_ident()
        _inside.discard(me)
        if me in _slow:
            _slow -= {me}


def each(rows: Iterable[Any]) -> Iterator[Any]:
    """The rows of an iterator that is the user's; its code runs between `enter` and `leave`."""
    found = iter(rows)
    while True:
        entered = enter()
        try:
            row = next(found)
        except StopIteration:
            return
        finally:
            leave(entered)
        yield row


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A block while which no function begins in another thread; one that runs already is waited for, but not long."""
    global _alone, _slow
    if _alone is not None:
        yield
        return
    me = threading.get_ident()
    _again.clear()
    _alone = me
    try:
        end = time.monotonic() + _PATIENCE
        while (others := _inside - {me}) and not others <= _slow:
            if time.monotonic() > end:
                _slow = frozenset(others)
                break
            time.sleep(0.0005)
        yield
    finally:
        together()


@contextlib.contextmanager
def nothing_freed() -> Iterator[None]:
    """A block while which Python looks for nothing to free by itself: a `__del__` would be taken for what the trace does, and be undone."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def together() -> None:
    """Functions may begin again: the block of `alone` in this thread has ended, or waits for one of them."""
    global _alone
    if _alone == threading.get_ident():
        _alone = None
        _again.set()


def _forget() -> None:
    global _alone, _slow
    _alone, _slow = None, frozenset()
    _inside.clear()
    _again.set()


os.register_at_fork(after_in_child=_forget)
