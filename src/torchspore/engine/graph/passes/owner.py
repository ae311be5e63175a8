"""Which values of a graph lie in the same memory."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.private import is_operator
from torchspore.engine.recompute import later

_UNSAID = frozenset({"_unsafe_view", "_reshape_alias"})
"""Operators whose result shows their input though their schema does not say so."""


def owners(graph: torch.fx.Graph) -> dict[Node, Node]:
    """For each value the one whose memory it shows: itself, or what it is a view of or was written into."""
    found: dict[Node, Node] = {}
    for node in graph.nodes:
        source = shown(node)
        found[node] = node if source is None else found[source]
    return found


def shown(node: Node) -> Node | None:
    """The value whose memory the result of a node shows; None where it has memory of its own."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        return _item(node)
    if not is_operator(node.target):
        return None
    if node.target._opname in _UNSAID:
        return _first(node.args)
    for returned in node.target._schema.returns:
        if returned.alias_info is not None:
            for place, argument in enumerate(node.target._schema.arguments):
                info = argument.alias_info
                if info is not None and info.before_set & returned.alias_info.before_set:
                    value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
                    return value if isinstance(value, Node) else None
    return None


def _item(node: Node) -> Node | None:
    """What one of several results shows."""
    source, place = node.args
    assert isinstance(source, Node)
    if source.target is later:
        value = source.args[place]  # type: ignore[index]
        return value if isinstance(value, Node) else None
    return shown(source)


def _first(args: Any) -> Node | None:
    return args[0] if args and isinstance(args[0], Node) else None
