"""Weights that are gathered twice: `optimizer_level` 'level3' gathers a weight for the forward pass and again for the backward pass.

The full weight takes no memory in between. A region of `Cell.recompute` gathers its weights again before it runs for the second time.

This pass changes the local graph before a plan is printed or a rank or simulation runs it: all three have the same exchanges.
"""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.local_graph import LocalGraph, SplitOperator
from torchspore.distributed.shard.redistribution import GATHER
from torchspore.engine.autograd.recompute import later
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.aliasing import owner_of, owners, writes
from torchspore.graph.passes.regather import views_of


def gather_for_backward(local: LocalGraph) -> None:
    """Gather each weight again before its first use in the backward pass, in the graph and in the list of its operators."""
    graph: torch.fx.Graph = local.module.graph
    maker = {node: placed for placed in local.split_operators for node in placed.nodes}
    for node in list(graph.nodes):
        if node.target is later:
            _gather_for_second_run(graph, node, maker)
    order = {node: at for at, node in enumerate(graph.nodes)}
    root = owners(graph)
    first_write = {root[item]: order[node] for node in reversed(list(graph.nodes)) for item in writes(node)}
    for gather in [node for node in order if node.target is nodes.all_gather and node.all_input_nodes[0].op == "placeholder"]:
        views = views_of(gather)
        uses = sorted({user for view in views for user in view.users if user not in views}, key=order.__getitem__)
        backward = [user for user in uses if (placed := maker.get(user)) is not None and node_metadata.is_backward(placed.node.meta)]
        is_used_before = bool(backward) and uses[0] is not backward[0]
        limit = min(first_write.get(root[item], len(order)) for item in (gather, gather.all_input_nodes[0]))
        if is_used_before and order[backward[-1]] < limit:
            _insert_second_gather(graph, gather, views, backward)
            _note(maker, gather, backward[0])
    local.module.recompile()


def _gather_for_second_run(graph: torch.fx.Graph, start: Node, maker: dict[Node, SplitOperator]) -> None:
    """Let a recomputed region receive the parts of its weights in place of the gathered weights, and gather them at their first use."""
    order = {node: at for at, node in enumerate(graph.nodes)}
    for index, gather in enumerate(start.args):
        if not isinstance(gather, Node) or gather.target is not nodes.all_gather or gather.all_input_nodes[0].op != "placeholder":
            continue
        part = gather.all_input_nodes[0]
        items = [user for user in start.users if user.target is operator.getitem and user.args[1] == index]
        uses = sorted({use for item in items for use in item.users}, key=order.__getitem__)
        limit = min((order[node] for node in order if part in map(owner_of, writes(node))), default=len(order))
        if len(items) > 1 or (uses and (uses[-1].op == "output" or order[uses[-1]] > limit)):
            continue
        start.update_arg(index, part)
        start.meta["val"] = tuple(argument.meta["val"] for argument in start.args if isinstance(argument, Node))
        if uses:
            _gather_before(uses, items[0], gather, graph)
            _note(maker, gather, uses[0])


def _gather_before(uses: list[Node], part: Node, gather: Node, graph: torch.fx.Graph) -> None:
    """Gather a part of a weight, as `gather` does, before the first of these uses, for all of them."""
    with graph.inserting_before(uses[0]):
        gathered = graph.node_copy(gather, lambda _: part)
    gathered.meta = {**part.meta, node_metadata.GRADIENT: True}
    part.meta = {**part.meta, "val": gather.all_input_nodes[0].meta["val"]}
    for use in uses:
        use.replace_input_with(part, gathered)


def _insert_second_gather(graph: torch.fx.Graph, gather: Node, views: list[Node], uses: list[Node]) -> None:
    copies: dict[Node, Node] = {}
    with graph.inserting_before(uses[0]):
        for node in views:
            copies[node] = graph.node_copy(node, lambda n: copies.get(n, n))
            copies[node].meta = {**node.meta, node_metadata.GRADIENT: True}
    for user in uses:
        for view in views:
            user.replace_input_with(view, copies[view])
    for copy in reversed([copies[view] for view in views[1:]]):
        if not copy.users:
            graph.erase_node(copy)


def _note(maker: dict[Node, SplitOperator], gather: Node, user: Node) -> None:
    """Add the exchange to the operator that causes it."""
    axes = gather.args[1]
    steps = [item for item in maker[gather].steps if item[0].kind == GATHER and item[0].axes == axes] if gather in maker else []
    maker[user].steps += steps[:1]
