"""Clusters: groups of neighbouring operators that one generated kernel can compute, and their replacement by a kernel."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.aliasing import owner_of, writes
from torchspore.graph.fx.inputs import new_input
from torchspore.graph.fx.order import dependencies, topological_order

_aten = torch.ops.aten

_NO_NODES: set[Node] = set()


@dataclass
class Cluster:
    """The nodes of a cluster, the values that they read from outside, and the values that outside nodes read."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]
    layer: int = 0
    """Clusters of the same layer are independent of each other."""


def build_clusters(
    module: torch.fx.GraphModule, is_fusable: Callable[[Node], bool], is_boundary: Callable[[Node, Node], bool] | None = None,
    may_delay: Callable[[Node], bool] | None = None,
) -> list[Cluster]:
    """Return the clusters of fusable nodes. No path from a cluster through an outside node returns to the cluster.

    `is_boundary(node, reader)` returns whether a new cluster begins between two fusable nodes. `may_delay(node)` returns whether a fusable
    node may join the cluster of its first reader if no earlier node needs it.
    """
    nodes = list(module.graph.nodes)
    before, written_owners = dependencies(nodes)
    fusable = {node for node in nodes if node.op == "call_function" and is_fusable(node) and owner_of(node) not in written_owners}
    fusable = _add_items(nodes, fusable)
    level: dict[Node, int] = {}
    boundaries: dict[Node, set[Node]] = {}

    def step(p: Node, node: Node) -> int:
        return (p in fusable) != (node in fusable) or p in boundaries.get(node, _NO_NODES)

    for node in nodes:
        if is_boundary is not None and node in fusable:
            boundaries[node] = {p for p in node.all_input_nodes if p in fusable and is_boundary(p, node)}
        level[node] = max((level[p] + step(p, node) for p in before[node]), default=0)
    if may_delay is not None:
        _delay([node for node in nodes if node in fusable and may_delay(node)], before, level, step)
    leader: dict[Node, Node] = {}
    for node in nodes:
        if node in fusable:
            leader[node] = node
            for p in node.all_input_nodes:
                if p in fusable and level[p] == level[node] and not step(p, node):
                    leader[_find_leader(leader, p)] = _find_leader(leader, node)
    groups: dict[Node, list[Node]] = {}
    for node in nodes:
        if node in fusable:
            groups.setdefault(_find_leader(leader, node), []).append(node)
    return [cluster_of(group, level[group[0]]) for group in groups.values()]


def _delay(waiting: list[Node], before: dict[Node, list[Node]], level: dict[Node, int], step: Callable[[Node, Node], int]) -> None:
    """Raise the level of each of these nodes to the lowest level of its readers."""
    after: dict[Node, list[Node]] = {node: [] for node in waiting}
    for node, needed in before.items():
        for p in needed:
            if p in after:
                after[p].append(node)
    for node in reversed(waiting):
        level[node] = max(level[node], min((level[later] - step(node, later) for later in after[node]), default=0))


def _find_leader(leader: dict[Node, Node], node: Node) -> Node:
    while leader[node] is not node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


def _add_items(nodes: list[Node], fusable: set[Node]) -> set[Node]:
    """Add the `getitem` nodes of fusable operators."""
    return fusable | {n for n in nodes if n.op == "call_function" and n.target is operator.getitem and n.args[0] in fusable}


def cluster_of(group: list[Node], layer: int = 0) -> Cluster:
    """Return the cluster of these nodes, which are in graph order."""
    inside = set(group)
    inputs = dict.fromkeys(p for node in group for p in node.all_input_nodes if p not in inside)
    return Cluster(group, list(inputs), [node for node in group if any(user not in inside for user in node.users)], layer)


# ---- extraction of a cluster, insertion of its kernel

def extract(cluster: Cluster) -> torch.fx.GraphModule:
    """Return the cluster as a separate graph: its outputs, followed by the new running statistics of batch norms."""
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    for index, item in enumerate(cluster.inputs):
        copies[item] = new_input(graph, f"in{index}")
        copies[item].meta = {"val": item.meta["val"]}
    statistics: list[Node] = []
    for node in cluster.nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
        if writes(node):
            copies[node].target = _aten._native_batch_norm_legit_functional.default
            statistics += [graph.call_function(operator.getitem, (copies[node], index)) for index in (3, 4)]
    graph.output([copies[node] for node in cluster.outputs] + statistics)
    return torch.fx.GraphModule({}, graph)


def insert_kernels(module: torch.fx.GraphModule, kernels: Iterable[tuple[Cluster, Callable[..., Any]]]) -> torch.fx.GraphModule:
    """Replace each cluster by one call of its kernel, a function of the cluster's inputs that returns the list of its outputs."""
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes)
    unit: dict[Node, int] = {node: index for index, node in enumerate(nodes)}
    kernel_at: dict[int, tuple[Cluster, Callable[..., Any]]] = {}
    for cluster, kernel in kernels:
        index = max(unit[node] for node in cluster.nodes)
        kernel_at[index] = (cluster, kernel)
        for node in cluster.nodes:
            unit[node] = index
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    for index in topological_order(unit, before, lambda index: index):
        if index in kernel_at:
            _call_kernel(graph, copies, *kernel_at[index])
        else:
            copies[nodes[index]] = graph.node_copy(nodes[index], lambda n: copies[n])
    return torch.fx.GraphModule(module, graph)


_INDEXING = ("index", "gather", "scatter", "embedding", "nll_loss")
_DIVISION = ("div", "remainder", "fmod")


def _may_raise(node: Node) -> bool:
    """Return whether an operator may raise an error for some values: an index out of range, an integer division by zero."""
    name, val = str(getattr(node.target, "_opname", "")), node.meta.get("val")
    is_of_integers = isinstance(val, torch.Tensor) and not val.is_floating_point()
    return any(part in name for part in _INDEXING) or (is_of_integers and any(part in name for part in _DIVISION))


def _call_kernel(graph: torch.fx.Graph, copies: dict[Node, Node], cluster: Cluster, kernel: Callable[..., Any]) -> None:
    call = graph.call_function(kernel, tuple(copies[item] for item in cluster.inputs))
    call.meta[node_metadata.IS_KERNEL] = True
    call.meta[node_metadata.FUSED] = [node.target for node in cluster.nodes]
    marks = (node_metadata.GRADIENT, node_metadata.OPTIMIZER)
    call.meta.update({mark: True for mark in marks if all(node.meta.get(mark) for node in cluster.nodes)})
    raising = [node.meta for node in cluster.nodes if _may_raise(node)]
    if raising:
        call.meta[node_metadata.REFUSING] = raising
    for index, node in enumerate(cluster.outputs):
        copies[node] = graph.call_function(operator.getitem, (call, index))
        copies[node].meta = dict(node.meta)
    index = len(cluster.outputs)
    for node in cluster.nodes:
        for item in writes(node):
            graph.call_function(_aten.copy_.default, (copies[item], graph.call_function(operator.getitem, (call, index))))
            index += 1
