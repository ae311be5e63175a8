"""Gathers of sharded weights: each weight is gathered directly before its first use, so that it needs no memory earlier.

In `data_parallel` mode with `optimizer_level` 3 a weight is gathered again for the backward pass. In split graphs
`distributed.shard.weight_gathers` has decided this by the level.
"""
from __future__ import annotations

from itertools import pairwise

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners, writes
from torchspore.graph.fx.exchanges import is_wait

_VIEWS = frozenset({
    "aten::t", "aten::transpose", "aten::view", "aten::permute", "aten::unsqueeze", "aten::squeeze", "aten::detach", "aten::alias",
    "aten::_unsafe_view", "aten::expand",
})
_MIN_DISTANCE = 16
"""The least number of operators between two uses for which a weight is gathered again."""


def regather_weights(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Move the gathers of inputs before the first use, and gather again before a use after a long gap, in place."""
    nodes = list(module.graph.nodes)
    index_of = {node: at for at, node in enumerate(nodes)}
    owner = owners(module.graph)
    first_write = {owner[item]: index_of[node] for node in reversed(nodes) for item in writes(node)}     # the first write to each value
    for wait in [node for node in nodes if is_wait(node) and _is_gathered_input(node)]:
        start = wait.all_input_nodes[0]
        if start.meta.get(node_metadata.SCHEDULED_EXCHANGE):
            continue
        if owner[wait] in first_write:                     # an optimizer writes into the full value; a second gather would lose the write
            continue
        views = views_of(wait)
        uses = sorted({user for view in views for user in view.users if user not in views}, key=index_of.__getitem__)
        if not uses:
            continue
        gap, at = max(((index_of[b] - index_of[a], i + 1) for i, (a, b) in enumerate(pairwise(uses))), default=(0, 0))
        until = first_write.get(owner[_source(wait)], len(nodes))
        is_settled = bool(start.meta.get(node_metadata.SETTLED_GATHER))
        if not is_settled and gap >= _MIN_DISTANCE and uses[at].op != "output" and index_of[uses[at]] < until:
            _gather_again(module.graph, wait, views, uses[at:])
            uses = uses[:at]
        if uses[0].op != "output" and index_of[uses[0]] < until:
            _gather_again(module.graph, wait, views, uses)
            _erase_unused(module.graph, [start, *views])
    return module


def _source(wait: Node) -> Node:
    return wait.all_input_nodes[0].all_input_nodes[0]


def _is_gathered_input(wait: Node) -> bool:
    start = wait.all_input_nodes[0]
    is_gather = is_operator(start.target) and start.target._schema.name == "_c10d_functional::all_gather_into_tensor"
    return is_gather and _source(wait).op == "placeholder"


def views_of(wait: Node) -> list[Node]:
    """Return the gathered weight and its views, in graph order."""
    group = [wait]
    for node in group:
        group += [
            user for user in node.users
            if user not in group and is_operator(user.target) and user.target._schema.name in _VIEWS and user.all_input_nodes == [node]
        ]
    return group


def _gather_again(graph: torch.fx.Graph, wait: Node, views: list[Node], uses: list[Node]) -> None:
    """Gather a weight again before the first of these uses, for all of them."""
    copies: dict[Node, Node] = {}
    with graph.inserting_before(uses[0]):
        for node in (wait.all_input_nodes[0], *views):
            copies[node] = graph.node_copy(node, lambda n: copies.get(n, n))
    for user in uses:
        for view in views:
            user.replace_input_with(view, copies[view])
    _erase_unused(graph, [copies[view] for view in views[1:]])


def _erase_unused(graph: torch.fx.Graph, nodes: list[Node]) -> None:
    """Erase the nodes that have no users."""
    for node in reversed(nodes):
        if not node.users:
            graph.erase_node(node)
