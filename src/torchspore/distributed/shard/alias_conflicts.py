"""Alias conflicts: memory that a graph writes and reads through several values.

On one device a view shares the memory of its source, and sees later writes. In a split graph a view may be a copy, because its source
had to be gathered. Where this would change results, the memory stays unsplit on each device, and writes are copied back into the parts.
"""
from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import strategy_marker
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import mutated_owners, owners, view_source, writes


@dataclass(frozen=True)
class AliasConflicts:
    """The memory of a graph that needs special treatment."""

    unsplit: frozenset[Node]
    """The owners of memory that is written through a view, or whose views are read after a write."""
    copied: frozenset[Node]
    """Marks whose result needs separate memory: it is written, or its source is written while the result is still in use."""
    written: frozenset[Node]
    """The owners of all mutated memory."""


def nodes_written_by(node: Node) -> list[Node]:
    """Return the values that a node writes into, including writes within the graphs of a branch or loop."""
    if node.op != "call_function" or is_operator(node.target):
        return writes(node)
    items = [item for value in node.args if isinstance(value, (list, tuple)) for item in value]
    written_nodes: list[Node] = []
    for inner in node.args:
        if not isinstance(inner, torch.fx.GraphModule):
            continue
        holders = [inner_node for inner_node in inner.graph.nodes if inner_node.op == "placeholder"]
        changed = mutated_owners(inner)
        if len(holders) == len(items):
            written_nodes += [item for item, holder in zip(items, holders) if holder in changed and isinstance(item, Node)]
        elif changed & set(holders):
            written_nodes += node.all_input_nodes                  # of a gradient, whose inputs are kept elsewhere
    return list(dict.fromkeys(written_nodes))


def find_alias_conflicts(graph: torch.fx.Graph, stored: Container[Node]) -> AliasConflicts:
    """Return the alias conflicts of a captured graph; `stored` are the weights of which the operators read a gathered copy."""
    position_of = {node: at for at, node in enumerate(graph.nodes)}
    owner = owners(graph)
    times: dict[Node, list[int]] = {}
    nodes: set[Node] = set()
    for node in graph.nodes:
        for item in nodes_written_by(node):
            times.setdefault(owner[item], []).append(position_of[node])
            if _unchanged_source(item, owner[item] in stored) is not owner[item]:
                nodes.add(owner[item])
    last = {node: max((position_of[user] for user in node.users), default=-1) for node in graph.nodes}
    ends: dict[Node, int] = {}
    for node in graph.nodes:
        base = owner[node]
        ends[base] = max(ends.get(base, -1), last[node])
        if _unchanged_source(node, base in stored) is not base and any(
            position_of[node] < time < last[node] for time in times.get(base, ())
        ):
            nodes.add(base)
    copied = {
        node for node in graph.nodes if node.target in strategy_marker.MARKS
        and (node in times or any(position_of[node] < time < ends[node] for time in times.get(owner[node.args[0]], ())))
    }
    return AliasConflicts(frozenset(nodes), frozenset(copied), frozenset(times))


def _unchanged_source(node: Node, is_stored: bool) -> Node:
    """Return the first node that represents the same value: an operator that writes in place returns its operand."""
    source = view_source(node)
    while source is not None and (source in nodes_written_by(node) or (not is_stored and _renames(node))):
        node, source = source, view_source(source)
    return node


def _renames(node: Node) -> bool:
    return is_operator(node.target) and node.target._opname in ("alias", "detach")
