"""Who wants to know that the program ends by an error: told once, before the traceback is printed."""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

handlers: list[Callable[[BaseException], None]] = []
has_runner = False
"""Whether `torchspore run` runs the program, which tells of errors itself."""
_is_hooked = False


def tell(error: BaseException) -> None:
    """Tells everybody; nothing that goes wrong there takes the place of the error."""
    for handler in handlers:
        try:
            handler(error)
        except Exception as own:
            print(f"torchspore: {type(own).__name__} while the error was recorded: {own}", file=sys.stderr)


def left(end: SystemExit) -> None:
    """Tells of the error that a program caught before it ended itself by `sys.exit` with a code that is not 0."""
    inner = end.__cause__ or end.__context__
    if inner is not None and end.code not in (None, 0):
        tell(inner)


def hook() -> None:
    """Has Python itself tell of errors that nobody catches, in all threads; calling it again does nothing."""
    global _is_hooked
    if _is_hooked:
        return
    _is_hooked = True
    before_thread = threading.excepthook

    def of_thread(given: Any) -> None:
        if given.exc_value is not None and not isinstance(given.exc_value, SystemExit):
            tell(given.exc_value)
        before_thread(given)

    threading.excepthook = of_thread
    if has_runner:
        return
    before = sys.excepthook

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not isinstance(error, KeyboardInterrupt):
            tell(error)
        before(kind, error, trace)

    sys.excepthook = uncaught
