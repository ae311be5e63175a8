"""`mindspore.rewrite`: reading and editing of a network's statements."""
from __future__ import annotations

from torchspore.mindspore.rewrite.node import Node, NodeType
from torchspore.mindspore.rewrite.scoped_value import ScopedValue, ValueType
from torchspore.mindspore.rewrite.symbol_tree import SymbolTree
from torchspore.public_names import missing

__all__ = ["Node", "NodeType", "ScopedValue", "SymbolTree", "ValueType"]
__getattr__ = missing(__name__)
