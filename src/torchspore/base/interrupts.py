"""Protection of a block of code against Ctrl-C and other signals with handlers in Python."""
from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torchspore.base.frames import is_user_file

_Handler = Callable[[int, FrameType | None], Any]


class _Postponement:
    """The handlers of signals before a block, and the signals that arrived in it."""

    def __init__(self) -> None:
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._handlers: dict[int, _Handler] = {number: handler for number, handler in handlers.items() if callable(handler)}
        self._waiting: dict[int, FrameType | None] = {}
        self._is_over = False
        self._handler: _Handler = self._handle

    def begin(self) -> None:
        for number in self._handlers:
            signal.signal(number, self._handler)

    def end(self) -> None:
        """Restore the handlers, and call those whose signals wait. Each is called, even if one raises an exception."""
        self._is_over = True
        for number, handler in self._handlers.items():
            if signal.getsignal(number) is self._handler:
                signal.signal(number, handler)
        self._call_waiting()

    def _call_waiting(self) -> None:
        if self._waiting:
            number = next(iter(self._waiting))
            try:
                self._handlers[number](number, self._waiting.pop(number))
            finally:
                self._call_waiting()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_over or (number == signal.SIGINT and number in self._waiting):
            self._handlers[number](number, frame)
        elif frame is not None and is_user_file(frame.f_code.co_filename):
            try:
                self._handlers[number](number, frame)
            except BaseException as error:
                error.final = True  # type: ignore[attr-defined]
                raise
        else:
            self._waiting[number] = frame


@contextmanager
def postponed() -> Iterator[None]:
    """Postpone the handlers of signals until the block has ended, unless code of the program runs: an exception in the middle of other
    code would leave its work half done. The second Ctrl-C interrupts any code. Only the main thread receives signals.

    An exception of a handler that ends the block has the attribute `final`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    postponement = _Postponement()
    try:
        postponement.begin()
        yield
    finally:
        postponement.end()
