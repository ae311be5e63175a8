"""Listeners for an error that ends the program: each is called once, before the traceback is printed."""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

handlers: list[Callable[[BaseException], None]] = []
has_runner = False
"""True if `torchspore run` runs the program; it reports errors itself."""


class _Hook:
    """The state of the process's exception hook."""

    def __init__(self) -> None:
        self.is_installed = False


_HOOK = _Hook()


def notify(error: BaseException) -> None:
    """Call every handler with the error; an exception in a handler does not replace the error."""
    for handler in handlers:
        try:
            handler(error)
        except Exception as handler_error:
            print(f"torchspore: {type(handler_error).__name__} while the error was recorded: {handler_error}", file=sys.stderr)


def notify_of_exit(end: SystemExit) -> None:
    """Notify the handlers of an error that a program caught before it called `sys.exit` with a code other than 0."""
    inner = end.__cause__ or end.__context__
    if inner is not None and end.code not in (None, 0):
        notify(inner)


def hook() -> None:
    """Install hooks for uncaught errors in all threads; further calls do nothing."""
    if _HOOK.is_installed:
        return
    _HOOK.is_installed = True
    previous_thread_hook = threading.excepthook

    def of_thread(arguments: Any) -> None:
        if arguments.exc_value is not None and not isinstance(arguments.exc_value, SystemExit):
            notify(arguments.exc_value)
        previous_thread_hook(arguments)

    threading.excepthook = of_thread
    if has_runner:
        return
    previous_hook = sys.excepthook

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not isinstance(error, KeyboardInterrupt):
            notify(error)
        previous_hook(kind, error, trace)

    sys.excepthook = uncaught
