"""Operators that MindSpore's layers carry as attributes, for subclasses of programs that call them: `self.conv2d(x, weight)`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Part:
    """An attribute that is made when it is first asked for, and kept; what a subclass assigns goes before it."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, cell: Any, owner: type) -> Any:
        if cell is None:
            return self
        own = cell.__dict__
        for kept in ("_cells", "_params"):          # where assigned Cells and Parameters lie
            if self.name in own.get(kept, ()):
                return own[kept][self.name]
        made = own[self.name] = self.make(cell)
        return made
