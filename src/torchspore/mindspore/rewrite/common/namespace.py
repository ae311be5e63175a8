"""The Cells that `get_sub_tree` describes."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.nn.layer.container import CellList, SequentialCell

_subtree_black_list: list[Any] = [CellList, SequentialCell]
_ms_cells_to_subtree = False
_ignore_third_party_paths: list[str] = []
"""Folders of packages whose functions MindSpore's tree describes too; here functions that a network calls stay unchanged."""


def is_subtree(cls_inst: object) -> bool:
    """Return whether `get_sub_tree` describes the Cell: a Cell of the program's, except one of the classes `_subtree_black_list`."""
    if isinstance(cls_inst, tuple(kind for kind in _subtree_black_list if isinstance(kind, type))):
        return False
    return _ms_cells_to_subtree or not type(cls_inst).__module__.startswith(("torchspore.", "mindspore."))
