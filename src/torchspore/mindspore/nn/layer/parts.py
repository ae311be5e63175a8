"""Operators that MindSpore's layers have as attributes: programs call them, replace them, and set strategies on them.

A layer's `construct` does not use them. If one gets a strategy or is replaced, the layer is computed from its parts from then on, by
`by_parts.py`; until then they cost nothing.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.mindspore.ops.declaration.primitive import Primitive


class Part:
    """An attribute that is created on first access and stored; a value that a subclass assigns takes precedence."""

    gives_way = True

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, cell: Any, owner: type) -> Any:
        if cell is None:
            return self
        state = cell.__dict__
        for store_name in ("_cells", "_params"):          # the stores of assigned Cells and Parameters
            if self.name in state.get(store_name, ()):
                return state[store_name][self.name]
        part = state[self.name] = self.make(cell)
        if isinstance(part, Primitive) and _calls_none(type(cell)):
            part.__dict__["_part_of"] = cell
        return part


def _calls_none(cls: Any) -> bool:
    """Return whether torchspore computes such a Cell, or its loss; a custom construct calls the parts that it needs."""
    return any(getattr(cls, name).__module__.startswith("torchspore.") for name in ("construct", "get_loss") if hasattr(cls, name))
