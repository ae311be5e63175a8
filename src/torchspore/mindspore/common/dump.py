"""`set_dump`: the Cells and operators that a dump with `dump_mode` 2 includes."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message
from torchspore.engine.front_end import FRONT
from torchspore.observe.debug import dump


def set_dump(target: Any, enabled: bool = True) -> None:
    """Include in dumps, or exclude, what runs in `target`, forward and backward; it has an effect with `dump_mode` 2.

    `target` is a Cell, including the Cells inside it, or a Primitive, which means all operators of its name. The flag `dump` of the Cells
    and the attribute `dump` of the Primitives record it. Raises ValueError for other values and if `enabled` is not a bool.
    """
    if not isinstance(target, (FRONT.cell, FRONT.primitive)):
        raise ValueError(message(f"set_dump({target!r:.40})", "a Cell or a Primitive"))
    if not isinstance(enabled, bool):
        raise ValueError(message(f"set_dump(..., enabled={enabled!r:.40})", "True or False"))
    if not isinstance(target, FRONT.cell):
        dump.mark_operator(target.name, enabled)
        _set_attribute(target, enabled)
        return
    dump.mark(target, enabled)
    target.add_flags_recursive(dump=enabled)
    for _, cell in target.cells_and_names():
        for member in list(vars(cell).values()):
            if isinstance(member, FRONT.primitive):
                _set_attribute(member, enabled)


def _set_attribute(primitive: Any, enabled: bool) -> None:
    primitive.add_prim_attr("dump", str(enabled).lower())
