"""The classes of containers of Cells in a network."""
from __future__ import annotations

from torchspore.mindspore.nn.layer.container import SequentialCell


class AssignParser:
    """The settings of assignments: a call of a Cell of `types_for_cell_container` is a node of the type CellContainer."""

    types_for_cell_container: list[type] = [SequentialCell]
