"""Groups of neighbouring operators that one generated kernel could compute, and how to put such a kernel in their place."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.graph.fx.aliasing import root, writes
from torchspore.graph.fx.inputs import new_input
from torchspore.graph.fx.order import dependencies, in_order

_aten = torch.ops.aten

_NOTHING: set[Node] = set()


@dataclass
class Cluster:
    """Nodes that belong together, what they read from outside, and which of their values are read outside."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]
    layer: int = 0
    """Clusters of one layer never wait for each other."""


def clusters(
    module: torch.fx.GraphModule, is_fusable: Callable[[Node], bool], is_apart: Callable[[Node, Node], bool] | None = None,
    may_wait: Callable[[Node], bool] | None = None,
) -> list[Cluster]:
    """The groups, none of which waits for a result of its own that comes back from an operator outside.

    `is_apart` says of a fusable node and one that reads it whether a new group begins between them, `may_wait` whether a fusable node may
    join those that read it later on where nothing before needs it.
    """
    nodes = list(module.graph.nodes)
    before, written_roots = dependencies(nodes)
    fusable = {node for node in nodes if node.op == "call_function" and is_fusable(node) and root(node) not in written_roots}
    fusable = _with_their_items(nodes, fusable)
    level: dict[Node, int] = {}
    apart: dict[Node, set[Node]] = {}

    def step(p: Node, node: Node) -> int:
        return (p in fusable) != (node in fusable) or p in apart.get(node, _NOTHING)

    for node in nodes:
        if is_apart is not None and node in fusable:
            apart[node] = {p for p in node.all_input_nodes if p in fusable and is_apart(p, node)}
        level[node] = max((level[p] + step(p, node) for p in before[node]), default=0)
    if may_wait is not None:
        _delay([node for node in nodes if node in fusable and may_wait(node)], before, level, step)
    leader: dict[Node, Node] = {}
    for node in nodes:
        if node in fusable:
            leader[node] = node
            for p in node.all_input_nodes:
                if p in fusable and level[p] == level[node] and not step(p, node):
                    leader[_lead(leader, p)] = _lead(leader, node)
    groups: dict[Node, list[Node]] = {}
    for node in nodes:
        if node in fusable:
            groups.setdefault(_lead(leader, node), []).append(node)
    return [joined(group, level[group[0]]) for group in groups.values()]


def _delay(waiting: list[Node], before: dict[Node, list[Node]], level: dict[Node, int], step: Callable[[Node, Node], int]) -> None:
    """Raises the levels of these nodes to those of the first that come after them."""
    after: dict[Node, list[Node]] = {node: [] for node in waiting}
    for node, needed in before.items():
        for p in needed:
            if p in after:
                after[p].append(node)
    for node in reversed(waiting):
        level[node] = max(level[node], min((level[later] - step(node, later) for later in after[node]), default=0))


def _lead(leader: dict[Node, Node], node: Node) -> Node:
    while leader[node] is not node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


def _with_their_items(nodes: list[Node], fusable: set[Node]) -> set[Node]:
    """`getitem` goes with the operator whose result it takes from."""
    return fusable | {n for n in nodes if n.op == "call_function" and n.target is operator.getitem and n.args[0] in fusable}


def joined(group: list[Node], layer: int = 0) -> Cluster:
    """The cluster of these nodes, which are in the order of their graph."""
    inside = set(group)
    inputs = dict.fromkeys(p for node in group for p in node.all_input_nodes if p not in inside)
    return Cluster(group, list(inputs), [node for node in group if any(user not in inside for user in node.users)], layer)


# ---- taking out, putting in

def taken_out(cluster: Cluster) -> torch.fx.GraphModule:
    """The cluster as a graph of its own: inputs in order, outputs in order, then new running statistics of batch norms."""
    graph = torch.fx.Graph()
    names: dict[Node, Node] = {}
    for index, item in enumerate(cluster.inputs):
        names[item] = new_input(graph, f"in{index}")
        names[item].meta = {"val": item.meta["val"]}
    statistics: list[Node] = []
    for node in cluster.nodes:
        names[node] = graph.node_copy(node, lambda n: names[n])
        if writes(node):
            names[node].target = _aten._native_batch_norm_legit_functional.default
            statistics += [graph.call_function(operator.getitem, (names[node], index)) for index in (3, 4)]
    graph.output([names[node] for node in cluster.outputs] + statistics)
    return torch.fx.GraphModule({}, graph)


def put_in(module: torch.fx.GraphModule, kernels: Iterable[tuple[Cluster, Callable[..., Any]]]) -> torch.fx.GraphModule:
    """With each cluster as one call of its kernel, which takes its inputs and gives a list of outputs."""
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes)
    unit: dict[Node, int] = {node: index for index, node in enumerate(nodes)}
    held: dict[int, tuple[Cluster, Callable[..., Any]]] = {}
    for cluster, kernel in kernels:
        index = max(unit[node] for node in cluster.nodes)
        held[index] = (cluster, kernel)
        for node in cluster.nodes:
            unit[node] = index
    graph = torch.fx.Graph()
    names: dict[Node, Node] = {}
    for index in in_order(unit, before, lambda index: index):
        if index in held:
            _call(graph, names, *held[index])
        else:
            names[nodes[index]] = graph.node_copy(nodes[index], lambda n: names[n])
    return torch.fx.GraphModule(module, graph)


_LOOKS = ("index", "gather", "scatter", "embedding", "nll_loss")
_DIVIDES = ("div", "remainder", "fmod")


def _may_refuse(node: Node) -> bool:
    """Return whether an operator may refuse the values that it is given: an index beyond a table, a division of integers by zero."""
    name, val = str(getattr(node.target, "_opname", "")), node.meta.get("val")
    is_of_integers = isinstance(val, torch.Tensor) and not val.is_floating_point()
    return any(part in name for part in _LOOKS) or (is_of_integers and any(part in name for part in _DIVIDES))


def _call(graph: torch.fx.Graph, names: dict[Node, Node], cluster: Cluster, kernel: Callable[..., Any]) -> None:
    call = graph.call_function(kernel, tuple(names[item] for item in cluster.inputs))
    call.meta[node_metadata.IS_KERNEL] = True
    call.meta[node_metadata.FUSED] = [node.target for node in cluster.nodes]
    marks = (node_metadata.GRADIENT, node_metadata.OPTIMIZER)
    call.meta.update({mark: True for mark in marks if all(node.meta.get(mark) for node in cluster.nodes)})
    refusing = [node.meta for node in cluster.nodes if _may_refuse(node)]
    if refusing:
        call.meta[node_metadata.REFUSING] = refusing
    for index, node in enumerate(cluster.outputs):
        names[node] = graph.call_function(operator.getitem, (call, index))
        names[node].meta = dict(node.meta)
    index = len(cluster.outputs)
    for node in cluster.nodes:
        for item in writes(node):
            graph.call_function(_aten.copy_.default, (names[item], graph.call_function(operator.getitem, (call, index))))
            index += 1
