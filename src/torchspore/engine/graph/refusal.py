"""What ends a capture: something that a graph can't hold."""
from __future__ import annotations

import sys
from typing import Any

from torchspore.base.frames import user_line
from torchspore.engine.graph import provenance


class Refusal(BaseException):
    """The call can't be captured; it runs as PyNative instead.

    Not an Exception, so that a program's own `except Exception` lets it pass.
    """

    needs_values = False           # a branch or a number depends on the values of a Tensor: converted source may hold it
    needs_room = False             # calls nest deeper than Python allows on this stack

    is_unrecorded = False          # a gradient uses a forward pass that was captured without it: captured once more, it is shared

    as_pynative = False            # nothing of the call is to be captured, not even parts of it

    hint = ""                      # what to write instead, where the reason has a better answer than its kind
    is_deep = False                # the call must run with a larger stack

    numbers: tuple[Any, ...] = ()
    """Attributes, (`__dict__`, name), that hold Python numbers which the call writes: as inputs of the graph they might do."""

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line if line is not None else user_line() or "<unknown>"
        self.stack = provenance.stack_of(sys._getframe(1)) if provenance.is_kept() else []
        """The user's lines that led there, outermost first, where `debug_level` keeps them."""

    def calls(self) -> str:
        """`, called from a.py:3, b.py:7`, or nothing where no calls are known."""
        outer = [line for line in self.stack if line != self.line]
        return f", called from {', '.join(reversed(outer))}" if outer else ""
