"""The profile hook of this thread, by which a trace is watched: put aside while what runs is not the program's."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def suspended() -> Callable[[], None]:
    """Remove the profiler of this thread; return a function that restores it. cProfile's cannot be set from Python, but enables itself.

    torch's profiler with `with_stack` cannot be restored at all: Python would call an object that is not a function, and the program would
    fail.
    """
    before: Any = sys.getprofile()
    if before is None or not hasattr(before, "enable"):
        return lambda: sys.setprofile(before if callable(before) else None)
    before.disable()

    def resume() -> None:
        sys.setprofile(None)
        before.enable()

    return resume


def unwatched(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run an operator of torch outside of the observation, because its calls are not the program's: this takes a third of the time."""
    hook = sys.getprofile()
    if hook is None:
        return function(*arguments)
    sys.setprofile(None)
    try:
        return function(*arguments)
    finally:
        sys.setprofile(hook)


@contextmanager
def quiet() -> Iterator[None]:
    """Runs its block unwatched: work of the capture itself."""
    hook = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(hook if callable(hook) else None)
