"""Facts that the engine needs about the front end, which is above it: the defining module hands each of them down once."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any


@dataclass
class FrontEnd:
    """The classes and functions of the front end; None until it is imported."""

    cell: type | None = None
    """The class whose attributes a capture watches."""
    cell_call: CodeType | None = None
    """The code that calls a Cell's construct, with the Cell as `self`."""
    primitive: type | None = None
    """The class of operators as objects, `mindspore.ops.Primitive`."""
    sparse_operators: Any = None
    """The module of operators on sparse Tensors."""
    optimizer: type | None = None
    """The class of optimizers, whose calls end an iteration."""
    operator_of: Callable[[FrameType], str | None] = field(default=lambda frame: None)
    """Returns the operator that a frame runs; None if it runs none."""
    primitive_of: Callable[[str], str | None] = field(default=lambda name: None)
    """Returns the primitive that belongs to a function's name; None if no primitive does."""
    refused: Callable[[str, str, list[Any], bool, Exception], Exception] = field(default=lambda *arguments: arguments[-1])
    """Builds the error for a kernel of a graph from the line, the operator, its Tensors, whether it computes their gradient, and the
    kernel's error."""
    batches: Callable[[], type | None] = field(default=lambda: None)
    """Gives the class whose `__next__` gives a program its data."""
    settled: tuple[type, ...] = ()
    """Classes whose objects are known by identity: their contents never change, or are observed in another way."""
    row_gradient: type | None = None
    """The class of gradients that are rows of a table."""
    getters: tuple[Callable[..., Any], ...] = ()
    """Functions that return a state of the front end: a later run must get the answers of the capture."""
    precision_rules: Callable[[str], Any] = field(default=lambda mode: None)
    """Returns the rules by which operators outside of graphs compute under a `precision_mode`, by their names; None if there are none."""
    warn: Callable[[str], None] | None = None
    """Tells the user in MindSpore's log."""

    @contextmanager
    def redirecting_warnings(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Let `warn` receive the user's messages in the block, instead of the log."""
        before, self.warn = self.warn, warn
        try:
            yield
        finally:
            self.warn = before


FRONT: Any = FrontEnd()
