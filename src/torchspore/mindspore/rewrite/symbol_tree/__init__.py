"""`mindspore.rewrite.symbol_tree`: a network's statements, and what builds them."""
from __future__ import annotations

from torchspore.mindspore.rewrite.symbol_tree.symbol_tree import Position, SymbolTree
from torchspore.mindspore.rewrite.symbol_tree.symbol_tree_builder import SymbolTreeBuilder
from torchspore.public_names import missing

__all__ = ["Position", "SymbolTree", "SymbolTreeBuilder"]
__getattr__ = missing(__name__)
