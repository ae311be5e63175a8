"""The thread that writes a checkpoint while the program goes on. What goes wrong there reaches the next call, or the end of the program."""
from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable

FAILED = 1
"""The exit code of a program that ends before it was told that a checkpoint is not there."""


class _Writer(threading.Thread):
    """One call of `write`, and what it raised."""

    def __init__(self, write: Callable[[], None], what: str) -> None:
        super().__init__(name="torchspore-checkpoint")
        self._write, self.what, self.error = write, what, None

    error: BaseException | None

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self.error = error


_writers: list[_Writer] = []
_lock = threading.Lock()
"""Several threads of the program may save at once."""


def start(write: Callable[[], None], what: str) -> None:
    """Runs `write()` in a thread; `what` is said with its errors."""
    writer = _Writer(write, what)
    with _lock:
        writer.start()
        _writers.append(writer)


def is_busy() -> bool:
    """Whether a thread still writes."""
    return any(writer.is_alive() for writer in _writers)


def wait() -> None:
    """Waits for all threads. Raises what went wrong in the first of them; it is told once."""
    while (writer := next(iter(_writers), None)) is not None:
        writer.join()                               # an interrupt here leaves it in the list
        with _lock:
            is_told = writer not in _writers        # by another thread, which waited too
            if not is_told:
                _writers.remove(writer)
        if writer.error is not None and not is_told:
            raise writer.error


@atexit.register
def _tell_at_the_end() -> None:
    """A program that loses a checkpoint does not end well: Python itself has no way to say so after its last line."""
    lost = []
    for writer in _writers:
        writer.join()
        if writer.error is not None:
            lost.append(writer)
    if lost and threading.main_thread().ident == threading.get_ident():
        for writer in lost:
            print(f"torchspore: {writer.what} failed: {type(writer.error).__name__}: {writer.error}", file=sys.stderr)
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(FAILED)
