"""Groups of neighbouring operators that one generated kernel could compute, and how to put such a kernel in their place."""
from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.graph.passes.writes import writes
from torchspore.engine.private import is_operator

_aten = torch.ops.aten
_VIEWS = {_aten.view.default, _aten._unsafe_view.default, _aten.permute.default, _aten.transpose.int, _aten.t.default, _aten.expand.default,
          _aten.unsqueeze.default, _aten.squeeze.dim, _aten.slice.Tensor, _aten.select.int, _aten.split.Tensor, _aten.reshape.default}


@dataclass
class Cluster:
    """Nodes that belong together, what they read from outside, and which of their values are read outside."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]


def clusters(module: torch.fx.GraphModule, is_fusable: Callable[[Node], bool]) -> list[Cluster]:
    """The groups, none of which waits for a result of its own that comes back from an operator outside."""
    nodes = list(module.graph.nodes)
    before, written = _order(nodes)
    fusable = {node for node in nodes if node.op == "call_function" and is_fusable(node) and root(node) not in written}
    fusable = _with_their_items(nodes, fusable)
    level: dict[Node, int] = {}
    leader: dict[Node, Node] = {}
    for node in nodes:
        here = node in fusable
        level[node] = max((level[p] + ((p in fusable) != here) for p in before[node]), default=0)
        if here:
            leader[node] = node
            for p in node.all_input_nodes:
                if p in fusable and level[p] == level[node]:
                    leader[_lead(leader, p)] = _lead(leader, node)
    groups: dict[Node, list[Node]] = {}
    for node in nodes:
        if node in fusable:
            groups.setdefault(_lead(leader, node), []).append(node)
    return [_cluster(group) for group in groups.values()]


def _lead(leader: dict[Node, Node], node: Node) -> Node:
    while leader[node] is not node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


def _with_their_items(nodes: list[Node], fusable: set[Node]) -> set[Node]:
    """`getitem` goes with the operator whose result it takes from."""
    return fusable | {n for n in nodes if n.op == "call_function" and n.target is operator.getitem and n.args[0] in fusable}


def _cluster(group: list[Node]) -> Cluster:
    inside = set(group)
    inputs = dict.fromkeys(p for node in group for p in node.all_input_nodes if p not in inside)
    return Cluster(group, list(inputs), [node for node in group if any(user not in inside for user in node.users)])


# ---- order: data, and writes

def is_view(node: Node) -> bool:
    """Whether the result shares memory with the first argument."""
    return node.target in _VIEWS


def root(node: Node) -> Node:
    """The node whose memory a view shows."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], Node) and (is_view(node) or (
        node.target is operator.getitem and is_view(node.args[0])
    )):
        node = node.args[0]
    return node


def _order(nodes: list[Node]) -> tuple[dict[Node, list[Node]], set[Node]]:
    """For each node those that must run before it, and all memory that is written."""
    written = {root(item) for node in nodes for item in writes(node)}
    before: dict[Node, list[Node]] = {}
    touched: dict[Node, list[Node]] = {item: [] for item in written}
    writer: dict[Node, Node] = {}
    barrier: Node | None = None
    for place, node in enumerate(nodes):
        needed = list(node.all_input_nodes)
        if _is_unknown(node):
            needed, barrier = nodes[:place], node
            before[node] = needed
            continue
        if barrier is not None and node.op != "placeholder":
            needed.append(barrier)
        own = {root(item) for item in writes(node)}
        roots = {r for r in (*(root(item) for item in node.all_input_nodes), root(node)) if r in written}
        for item in roots:
            if item in own:
                needed += touched[item]
                touched[item] = []
                writer[item] = node
            elif item in writer:
                needed.append(writer[item])
            touched[item].append(node)
        before[node] = needed
    return before, written


def _is_unknown(node: Node) -> bool:
    """Control flow, random numbers, the end: nothing moves across."""
    if node.op == "output":
        return True
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    target = node.target
    return not is_operator(target) or target.namespace == "torchspore" or torch.Tag.nondeterministic_seeded in target.tags


# ---- taking out, putting in

def taken_out(cluster: Cluster) -> torch.fx.GraphModule:
    """The cluster as a graph of its own: inputs in order, outputs in order, then new running statistics of batch norms."""
    graph = torch.fx.Graph()
    names: dict[Node, Node] = {}
    for place, item in enumerate(cluster.inputs):
        names[item] = graph.placeholder(f"in{place}")
        names[item].meta = {"val": item.meta["val"]}
    statistics: list[Node] = []
    for node in cluster.nodes:
        names[node] = graph.node_copy(node, lambda n: names[n])
        if writes(node):
            names[node].target = _aten._native_batch_norm_legit_functional.default
            statistics += [graph.call_function(operator.getitem, (names[node], place)) for place in (3, 4)]
    graph.output([names[node] for node in cluster.outputs] + statistics)
    return torch.fx.GraphModule({}, graph)


def put_in(module: torch.fx.GraphModule, kernels: Iterable[tuple[Cluster, Callable[..., Any]]]) -> torch.fx.GraphModule:
    """With each cluster as one call of its kernel, which takes its inputs and gives a list of outputs."""
    nodes = list(module.graph.nodes)
    before, _ = _order(nodes)
    unit: dict[Node, int] = {node: place for place, node in enumerate(nodes)}
    held: dict[int, tuple[Cluster, Callable[..., Any]]] = {}
    for cluster, kernel in kernels:
        place = max(unit[node] for node in cluster.nodes)
        held[place] = (cluster, kernel)
        for node in cluster.nodes:
            unit[node] = place
    graph = torch.fx.Graph()
    names: dict[Node, Node] = {}
    for place in _sorted(nodes, before, unit):
        if place in held:
            _call(graph, names, *held[place])
        else:
            names[nodes[place]] = graph.node_copy(nodes[place], lambda n: names[n])
    return torch.fx.GraphModule(module, graph)


def _call(graph: torch.fx.Graph, names: dict[Node, Node], cluster: Cluster, kernel: Callable[..., Any]) -> None:
    call = graph.call_function(kernel, tuple(names[item] for item in cluster.inputs))
    for place, node in enumerate(cluster.outputs):
        names[node] = graph.call_function(operator.getitem, (call, place))
        names[node].meta = dict(node.meta)
    place = len(cluster.outputs)
    for node in cluster.nodes:
        for item in writes(node):
            graph.call_function(_aten.copy_.default, (names[item], graph.call_function(operator.getitem, (call, place))))
            place += 1


def _sorted(nodes: list[Node], before: dict[Node, list[Node]], unit: dict[Node, int]) -> list[int]:
    """The units in an order that respects `before`, as near to the old one as can be."""
    needs: dict[int, set[int]] = {place: set() for place in unit.values()}
    gives: dict[int, set[int]] = {place: set() for place in unit.values()}
    for node in nodes:
        for other in before[node]:
            if unit[other] != unit[node]:
                needs[unit[node]].add(unit[other])
                gives[unit[other]].add(unit[node])
    ready = [place for place, found in needs.items() if not found]
    heapq.heapify(ready)
    order = []
    while ready:
        place = heapq.heappop(ready)
        order.append(place)
        for later in gives[place]:
            needs[later].discard(place)
            if not needs[later]:
                heapq.heappush(ready, later)
    assert len(order) == len(needs), "clusters wait for each other"
    return order
