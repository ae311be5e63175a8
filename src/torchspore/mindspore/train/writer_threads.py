"""The thread that writes a checkpoint while the program continues. Its errors are raised by the next call, or at the program's exit."""
from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable

FAILED = 1
"""The exit code of a program that ends without a notice that a checkpoint is missing."""


class _Writer(threading.Thread):
    """One call of `write`, and its exception."""

    def __init__(self, write: Callable[[], None], description: str) -> None:
        super().__init__(name="torchspore-checkpoint")
        self._write, self.description, self.error = write, description, None

    error: BaseException | None

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self.error = error


_writers: list[_Writer] = []
_lock = threading.Lock()
"""A lock, because several threads of the program may save at once."""


def start(write: Callable[[], None], description: str) -> None:
    """Run `write()` in a thread; its errors mention `description`."""
    writer = _Writer(write, description)
    with _lock:
        writer.start()
        _writers.append(writer)


def is_busy() -> bool:
    """Return whether a thread still writes."""
    return any(writer.is_alive() for writer in _writers)


def wait() -> None:
    """Wait for all threads. Raises the first error, once."""
    while (writer := next(iter(_writers), None)) is not None:
        writer.join()                               # an interrupt here keeps the writer in the list
        with _lock:
            is_reported = writer not in _writers        # already removed by another waiting thread
            if not is_reported:
                _writers.remove(writer)
        if writer.error is not None and not is_reported:
            raise writer.error


@atexit.register
def _report_at_exit() -> None:
    """Set the exit code of a program that loses a checkpoint, because Python can't raise an error after the last line."""
    lost = []
    for writer in _writers:
        writer.join()
        if writer.error is not None:
            lost.append(writer)
    if lost and threading.main_thread().ident == threading.get_ident():
        for writer in lost:
            print(f"torchspore: {writer.description} failed: {type(writer.error).__name__}: {writer.error}", file=sys.stderr)
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(FAILED)
