"""Operators that MindSpore's layers carry as attributes: programs call them, replace them, and give them strategies.

A layer's own `construct` uses none of them. Where one is given a strategy, or replaced, the layer is from then on computed of its parts,
as `by_parts.py` has it: until then they cost nothing.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.mindspore.ops.primitive import Primitive


class Part:
    """An attribute that is made when it is first asked for, and kept; what a subclass assigns goes before it."""

    gives_way = True

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
        if isinstance(made, Primitive) and _calls_none(type(cell)):
            made.__dict__["_part_of"] = cell
        return made


def _calls_none(cls: Any) -> bool:
    """Whether what computes such a Cell, or its loss, is torchspore's; a program's own construct calls the parts that it wants."""
    return any(getattr(cls, name).__module__.startswith("torchspore.") for name in ("construct", "get_loss") if hasattr(cls, name))
