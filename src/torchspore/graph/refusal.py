"""The exception that ends a capture, because a graph can't represent something."""
from __future__ import annotations

import enum
import sys
from types import TracebackType
from typing import Any

from torchspore.base.frames import user_line
from torchspore.errors import CompileAttributeError, CompileError, CompileNameError, CompileTypeError
from torchspore.graph.report import provenance
from torchspore.translations import translatable, translate

_MOVE = translatable("move it out of the call, or leave jit_syntax_level at LAX")


class Kind(enum.Enum):
    """A reason why a graph can't represent something: the error that STRICT and COMPATIBLE raise, and what to write instead."""

    def __init__(self, number: int, error: type[CompileError], hint: str) -> None:
        self.error, self.hint = error, hint

    OTHER = 0, CompileError, _MOVE
    READS_VALUES = 1, CompileAttributeError, translatable(
        "compute with the Tensor itself, by operators of mindspore.ops, or leave jit_syntax_level at LAX")
    NEEDS_VALUES = 2, CompileAttributeError, translatable(
        "use operators whose result has a shape that is known beforehand, or leave jit_syntax_level at LAX")
    WRITES_ATTRIBUTE = 3, CompileTypeError, translatable(
        "make it a Parameter in __init__: self.count = Parameter(Tensor(0), name='count')")
    ASSIGNS_VARIABLE = 4, CompileTypeError, translatable("return the new value as a result")
    CHANGES_CONTAINER = 5, CompileTypeError, translatable("create a new list or dict in the call and return it")
    TWO_KINDS = 6, CompileTypeError, translatable(
        "return the same structure, shape and dtype from both branches, for example with .astype or ops.where")
    UNBOUND = 7, CompileNameError, translatable("assign a value to the name before it")
    PRINTS = 8, CompileError, translatable(
        "print values alone, without `end`, `sep` or `file`, or print the results of the call")
    MAKES_TENSOR = 9, CompileTypeError, translatable("make the Tensor in __init__, or with operators of mindspore.ops")
    DRAWS = 10, CompileError, translatable("draw with mindspore.ops, for example ops.rand")
    ARGUMENT = 11, CompileTypeError, translatable("pass a Tensor, a number, or a tuple, list or dict of these")
    RAISES = 12, CompileError, _MOVE


class Refusal(BaseException):
    """The call cannot be captured; it runs in PyNative mode instead.

    This is not an Exception, so that a program's own `except Exception` does not catch it.
    """

    needs_values = False           # a branch or a number depends on the values of a Tensor: converted source may hold it
    needs_number = False           # it is a Python number, an input of the graph, whose value is needed
    needs_room = False             # calls nest deeper than Python allows on this stack

    is_unrecorded = False          # a gradient uses a forward pass that was captured without it: captured once more, it is shared

    as_pynative = False            # nothing of the call is to be captured, not even parts of it

    hint = ""                      # what to write instead, where the reason has a better answer than its kind
    is_allowed = False             # permitted at every syntax level: torchspore's object changed itself (a schedule's epochs)

    changes_arguments = False      # lists and dicts in the arguments are changed in place, and nothing else

    is_deep = False                # the call must run with a larger stack

    error: Exception | None = None # for Kind.RAISES: the error of the program, or a deliberate one of torchspore

    trace: TracebackType | None = None
    """The traceback of `error`, before it is raised again."""

    numbers: tuple[Any, ...] = ()
    """Attributes, (`__dict__`, name), that hold Python numbers which the call writes: as inputs of the graph they might do."""

    def __init__(self, reason: str, line: str | None = None, kind: Kind = Kind.OTHER) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = translate(reason)
        self.line = line if line is not None else user_line() or "<unknown>"
        self.stack = provenance.stack_of(sys._getframe(1)) if provenance.keeps_lines() else []
        """The user's lines that led there, outermost first, where `debug_level` keeps them."""

    def calls(self) -> str:
        """`, called from a.py:3, b.py:7`, or nothing where no calls are known."""
        outer = [line for line in self.stack if line != self.line]
        return translate(", called from {lines}").format(lines=", ".join(reversed(outer))) if outer else ""


def of_integers() -> Refusal:
    """The gradient by integers, or through a cast to them, crosses the border of a part of a graph, whose gradients are real numbers."""
    refusal = Refusal("differentiates integers that enter or leave a branch, a loop or a part of a call")
    refusal.as_pynative = True
    return refusal
