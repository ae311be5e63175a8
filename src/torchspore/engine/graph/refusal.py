"""What ends a capture: something that a graph can't hold."""
from __future__ import annotations

from torchspore.base.frames import user_line


class Refusal(BaseException):
    """The call can't be captured; it runs as PyNative instead.

    Not an Exception, so that a program's own `except Exception` lets it pass.
    """

    needs_values = False           # a branch or a number depends on the values of a Tensor: converted source may hold it
    needs_room = False             # calls nest deeper than Python allows on this stack

    is_deep = False                # the call must run with a larger stack

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line if line is not None else user_line() or "<unknown>"
