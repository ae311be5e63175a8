"""The class by which MindSpore builds the tree of a network."""
from __future__ import annotations

from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.rewrite.parsers.class_def_parser import ClassDefParser
from torchspore.mindspore.rewrite.symbol_tree.symbol_tree import SymbolTree


class SymbolTreeBuilder:
    """Builds the tree of a network. `entry_functions` is the list of `ClassDefParser`."""

    entry_functions = ClassDefParser.entry_functions

    def __init__(self, network: Cell) -> None:
        self._network = network

    def build(self) -> SymbolTree:
        """Return the tree. Raises TypeError unless the network is a Cell, ValueError for one without source."""
        return SymbolTree.create(self._network)
