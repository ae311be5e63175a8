"""Weights that processes share: gathered where they are first used, so that they take no memory before.

In `data_parallel` (`optimizer_level` 3) they are also gathered a second time for the backward pass. For graphs that are split,
`distributed.shard.weight_gathers` has decided that, as the level says.
"""
from __future__ import annotations

from itertools import pairwise

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners, writes
from torchspore.graph.fx.exchanges import is_wait

_VIEWS = frozenset({
    "aten::t", "aten::transpose", "aten::view", "aten::permute", "aten::unsqueeze", "aten::squeeze", "aten::detach", "aten::alias",
    "aten::_unsafe_view", "aten::expand",
})
_FAR = 16
"""How many operators lie between two uses at least for a weight to be gathered again."""


def regathered(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With inputs that are gathered gathered before their first use, and again before uses that lie far behind the others."""
    nodes = list(module.graph.nodes)
    index_of = {node: at for at, node in enumerate(nodes)}
    root = owners(module.graph)
    first_write = {root[item]: index_of[node] for node in reversed(nodes) for item in writes(node)}     # where each is first written
    for wait in [node for node in nodes if is_wait(node) and _is_gathered_input(node)]:
        if root[wait] in first_write:                     # an optimizer's step on whole values: what it wrote would be lost
            continue
        views = views_of(wait)
        uses = sorted({user for view in views for user in view.users if user not in views}, key=index_of.__getitem__)
        if not uses:
            continue
        gap, at = max(((index_of[b] - index_of[a], i + 1) for i, (a, b) in enumerate(pairwise(uses))), default=(0, 0))
        until = first_write.get(root[_source(wait)], len(nodes))
        is_settled = bool(wait.all_input_nodes[0].meta.get(node_metadata.SETTLED_GATHER))
        if not is_settled and gap >= _FAR and uses[at].op != "output" and index_of[uses[at]] < until:
            _anew(module.graph, wait, views, uses[at:])
            uses = uses[:at]
        if uses[0].op != "output" and index_of[uses[0]] < until:
            _anew(module.graph, wait, views, uses)
            _take_out(module.graph, [wait.all_input_nodes[0], *views])
    return module


def _source(wait: Node) -> Node:
    return wait.all_input_nodes[0].all_input_nodes[0]


def _is_gathered_input(wait: Node) -> bool:
    start = wait.all_input_nodes[0]
    is_gather = is_operator(start.target) and start.target._schema.name == "_c10d_functional::all_gather_into_tensor"
    return is_gather and _source(wait).op == "placeholder"


def views_of(wait: Node) -> list[Node]:
    """The weight, and what is nothing but a view of it, in their order."""
    group = [wait]
    for node in group:
        group += [
            user for user in node.users
            if user not in group and is_operator(user.target) and user.target._schema.name in _VIEWS and user.all_input_nodes == [node]
        ]
    return group


def _anew(graph: torch.fx.Graph, wait: Node, views: list[Node], uses: list[Node]) -> None:
    """Gathers a weight before the first of these uses, for all of them."""
    copies: dict[Node, Node] = {}
    with graph.inserting_before(uses[0]):
        for node in (wait.all_input_nodes[0], *views):
            copies[node] = graph.node_copy(node, lambda n: copies.get(n, n))
    for user in uses:
        for view in views:
            user.replace_input_with(view, copies[view])
    _take_out(graph, [copies[view] for view in views[1:]])


def _take_out(graph: torch.fx.Graph, nodes: list[Node]) -> None:
    """Takes out what nobody uses any longer."""
    for node in reversed(nodes):
        if not node.users:
            graph.erase_node(node)
