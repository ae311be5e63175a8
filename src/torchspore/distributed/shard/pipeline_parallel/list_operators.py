"""Splits operators on lists of Parameters whose items belong to several stages into one operator for each stage."""
from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals.torch_private import is_operator

_BY_ITEM = ("_foreach_", "_fused_", "_amp_foreach_")
"""The beginnings of names of operators that are computed item by item."""


def parted(graph: torch.fx.Graph, stages: Mapping[Node, int], everywhere: int) -> bool:
    """Split such operators; return whether there were any."""
    changed = False
    for node in list(graph.nodes):
        length = _length(node)
        if length < 2:
            continue
        groups: dict[int, list[int]] = {}
        for at in range(length):
            groups.setdefault(_stage(node, at, stages, everywhere), []).append(at)
        if len(groups) > 1:
            _part(graph, node, list(groups.values()), length)
            changed = True
    return changed


def _length(node: Node) -> int:
    """Return the length of the lists of an operator that computes their items independently; 0 for other operators."""
    if node.op != "call_function" or not is_operator(node.target) or not node.target._opname.startswith(_BY_ITEM):
        return 0
    lengths = {len(value) for value in _lists(node)}
    return lengths.pop() if len(lengths) == 1 else 0


def _lists(node: Node) -> list[Sequence[Any]]:
    operands = (*node.args, *node.kwargs.values())
    return [value for value in operands if isinstance(value, (list, tuple)) and any(isinstance(item, Node) for item in value)]


def _stage(node: Node, at: int, stages: Mapping[Node, int], everywhere: int) -> int:
    """Return the stage of an item: that of its Parameter, which comes first."""
    items = [value[at] for value in _lists(node)]
    item_stages = [stages[item] for item in items if isinstance(item, Node) and stages.get(item, everywhere) != everywhere]
    return item_stages[0] if item_stages else everywhere


def _part(graph: torch.fx.Graph, node: Node, groups: list[list[int]], length: int) -> None:
    """Write one operator for each group of items."""
    items = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    for group in groups:
        def chosen(value: Any, group: list[int] = group) -> Any:
            return [value[at] for at in group] if isinstance(value, (list, tuple)) and len(value) == length else value

        with graph.inserting_before(node):
            new_node = graph.call_function(
                node.target, tuple(map(chosen, node.args)), {key: chosen(value) for key, value in node.kwargs.items()},  # type: ignore[arg-type]
            )
            new_node.meta = {**node.meta, "val": chosen(node.meta.get("val"))}
        for new, old in enumerate(group):
            user = items.get(old)
            if user is not None:
                with graph.inserting_before(user):
                    taken = graph.call_function(operator.getitem, (new_node, new))
                    taken.meta = dict(user.meta)
                user.replace_all_uses_with(taken)
                graph.erase_node(user)
    graph.erase_node(node)
