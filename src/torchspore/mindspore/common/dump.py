"""`set_dump`: the Cells and operators that a dump with `dump_mode` 2 includes."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message
from torchspore.engine.front_end import FRONT
from torchspore.observe.debug import dump


def set_dump(target: Any, enabled: bool = True) -> None:
    """Include in dumps, or exclude, what runs in `target`, forward and backward; it has an effect with `dump_mode` 2.

    `target` is a Cell, including the Cells inside it, or a Primitive, which means all operators of its name. Raises TypeError for
    other values and if `enabled` is not a bool.
    """
    if not isinstance(target, (FRONT.cell, FRONT.primitive)):
        raise TypeError(message(f"set_dump({target!r:.40})", "a Cell or a Primitive"))
    if not isinstance(enabled, bool):
        raise TypeError(message(f"set_dump(..., enabled={enabled!r:.40})", "True or False"))
    if isinstance(target, FRONT.cell):
        dump.mark(target, enabled)
    else:
        dump.mark_operator(target.name, enabled)
