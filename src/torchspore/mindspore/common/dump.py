"""`set_dump`: which Cells and operators a dump with `dump_mode` 2 takes."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.primitive import Primitive
from torchspore.observe.debug import dump


def set_dump(target: Any, enabled: bool = True) -> None:
    """Has a dump take what runs in `target`, forward and backward, or no longer; it acts where the dump's settings have `dump_mode` 2.

    `target` is a Cell, with the Cells inside of it, or a Primitive, which stands for all operators of its name. Raises TypeError for
    anything else and where `enabled` is no bool.
    """
    if not isinstance(target, (Cell, Primitive)):
        raise TypeError(message(f"set_dump({target!r:.40})", "a Cell or a Primitive"))
    if not isinstance(enabled, bool):
        raise TypeError(message(f"set_dump(..., enabled={enabled!r:.40})", "True or False"))
    if isinstance(target, Cell):
        dump.mark(target, enabled)
    else:
        dump.mark_operator(target.name, enabled)
