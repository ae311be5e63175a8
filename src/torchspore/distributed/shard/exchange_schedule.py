"""Orders the exchanges of a split graph with `enable_parallel_optimizer`: sums of gradients begin early, gathers shortly before use.

The partitioner writes every reduce-scatter after the backward pass, because only the optimizer needs its result: all gradients would be in
memory at once. Here each begins directly after the gradient that it sums, so that the full gradient is freed as soon as the exchange ends.
Each gather of a weight begins before the last large operator that precedes its first use, so that the two run at the same time.

The local graph is reordered, which is equal on all devices: all processes begin their exchanges in one order, and a plan and a simulation
see the same order. `graph.passes.communication` decides on each process how long an exchange may last.
"""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.engine.autograd.recompute import SECOND_RUN, later
from torchspore.engine.execution.flop_counts import COUNTED
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.order import dependencies, topological_order
from torchspore.graph.passes.communication import packing_of
from torchspore.graph.passes.regather import views_of

_Key = tuple[float, int, int]
"""A position in the order: that of an operator, whether before (-1) or after (1) it, and the previous position."""


def reorder(local: LocalGraph) -> None:
    """Move the exchanges of the local graph, in the graph itself."""
    graph: torch.fx.Graph = local.module.graph
    order = list(graph.nodes)
    gathers = [node for node in order if node.target is nodes.all_gather and _is_part_of_weight(_source(node))]
    scatters = [node for node in order if node.target is nodes.reduce_scatter]
    if not gathers and not scatters:
        return
    index_of = {node: index for index, node in enumerate(order)}
    before, _ = dependencies(order, nodes.SENDING | nodes.LOCAL | SECOND_RUN)
    keys: dict[Node, _Key] = {node: (index, 0, index) for node, index in index_of.items()}
    moved = {node for scatter in scatters for node in (scatter, *packing_of(scatter))}
    for node in sorted(moved, key=index_of.__getitem__):
        latest = max((keys[item] for item in before[node]), default=keys[node])
        keys[node] = (latest[0], 1, index_of[node])
    large = [index for node, index in index_of.items() if is_operator(node.target) and node.target._schema.name in COUNTED]
    for gather in gathers:
        _place_gather(gather, keys, index_of, large)
    last: Node | None = None
    for node in topological_order({node: node for node in order}, before, keys.__getitem__):
        if last is not None:
            last.append(node)
        last = node
    local.module.recompile()


def _place_gather(gather: Node, keys: dict[Node, _Key], index_of: dict[Node, int], large: list[int]) -> None:
    """Record the positions of a gather, of the packing before it, and of the views of its result."""
    views = views_of(gather)
    uses = [keys[user] for view in views for user in view.users if user not in views and user.op != "output"]
    if not uses:
        return
    first = min(uses)[0]
    position = max((index for index in large if index < first), default=first)
    for node in (gather, *packing_of(gather)):
        keys[node] = (position, -1, index_of[node])
    for view in views[1:]:
        keys[view] = (first, -1, index_of[view])
    gather.meta[node_metadata.SCHEDULED_EXCHANGE] = True


def _is_part_of_weight(node: Node) -> bool:
    """Return whether the value is an input, or an input of a recomputed region."""
    return node.op == "placeholder" or (node.target is operator.getitem and node.all_input_nodes[0].target is later)


def _source(gather: Node) -> Node:
    """Return the value that a gather sends, before it is packed."""
    node = gather.all_input_nodes[0]
    packing = set(packing_of(gather))
    while node in packing and len(node.all_input_nodes) == 1:
        node = node.all_input_nodes[0]
    return node
