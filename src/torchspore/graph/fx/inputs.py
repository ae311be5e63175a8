"""Inputs of graphs, each with a unique name.

torch.fx makes a node's name unique, but not the name of the parameter in the generated code (the node's target): two equal names cause a
SyntaxError.
"""
from __future__ import annotations

import torch
from torch.fx.node import Node


def new_input(graph: torch.fx.Graph, name: str) -> Node:
    """A new input of `graph`, at its insertion point, called `name` or like it."""
    return _named(graph.placeholder(name))


def copied_input(graph: torch.fx.Graph, node: Node) -> Node:
    """A copy of the input `node` of another graph."""
    return _named(graph.node_copy(node))


def _named(node: Node) -> Node:
    node.target = node.name
    return node
