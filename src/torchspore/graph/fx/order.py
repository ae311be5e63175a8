"""In which order the operators of a graph may run, and `exec_order`."""
from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import is_operator
from torchspore.engine.random import operator_streams
from torchspore.graph.fx.aliasing import owners, writes
from torchspore.graph.fx.exchanges import is_exchange, is_wait

_Unit = TypeVar("_Unit", bound=Hashable)


def dependencies(
    nodes: list[Node], known_targets: frozenset[Any] = frozenset(), lane: Callable[[Node], Any] = lambda node: None,
) -> tuple[dict[Node, list[Node]], set[Node]]:
    """For each node those that must run before it, and the owners (`views.root`) of all memory that is written.

    In addition to data dependencies: who reads memory before a write stays before it, who reads it after stays after; random numbers
    are drawn and exchanges begun in the old order; an exchange reads what it sends until it has been waited for; nothing moves across
    control flow and what is unknown. Functions in `known_targets` only read their arguments. Draws of random numbers keep their order where
    `lane` gives the same for them.
    """
    root = owners(nodes[0].graph)
    written_roots = {root[item] for node in nodes for item in writes(node)}
    before: dict[Node, list[Node]] = {}
    touched: dict[Node, list[Node]] = {item: [] for item in written_roots}
    writer: dict[Node, Node] = {}
    barrier: Node | None = None
    drawn: dict[Any, Node] = {}
    begun: Node | None = None
    for index, node in enumerate(nodes):
        needed = list(node.all_input_nodes)
        if _is_unknown(node) and node.target not in known_targets:
            needed, barrier = nodes[:index], node
            before[node] = needed
            continue
        if barrier is not None and node.op != "placeholder":
            needed.append(barrier)
        if _draws(node):
            node_lane = lane(node)
            needed += [drawn[node_lane]] if node_lane in drawn else []
            drawn[node_lane] = node
        if is_exchange(node) and not is_wait(node):
            needed += [begun] if begun is not None else []
            begun = node
        node_writes = {root[item] for item in writes(node)}
        sent = [item for launch in node.all_input_nodes for item in launch.all_input_nodes] if is_wait(node) else []
        roots = {r for r in (*(root[item] for item in (*node.all_input_nodes, *sent)), root[node]) if r in written_roots}
        for item in roots:
            if item in node_writes:
                needed += touched[item]
                touched[item] = []
                writer[item] = node
            elif item in writer:
                needed.append(writer[item])
            touched[item].append(node)
        before[node] = needed
    return before, written_roots


def _is_unknown(node: Node) -> bool:
    """Control flow, the end, what is not an operator of torch's: nothing moves across."""
    if node.op == "output":
        return True
    if node.op != "call_function" or node.target is operator.getitem or node.meta.get(node_metadata.IS_KERNEL):
        return False
    if node.target in operator_streams.MOVABLE:
        return False
    return not is_operator(node.target) or node.target.namespace == "torchspore"


def _draws(node: Node) -> bool:
    return is_operator(node.target) and torch.Tag.nondeterministic_seeded in node.target.tags


def in_order(units: Mapping[Node, _Unit], before: Mapping[Node, list[Node]], key: Callable[[_Unit], Any]) -> list[_Unit]:
    """The units (nodes, or groups of them) so that `before` holds; of those that may run, the one with the least key is next."""
    needs: dict[_Unit, set[_Unit]] = {unit: set() for unit in units.values()}
    gives: dict[_Unit, set[_Unit]] = {unit: set() for unit in units.values()}
    for node, unit in units.items():
        for other in before[node]:
            if units[other] != unit:
                needs[unit].add(units[other])
                gives[units[other]].add(unit)
    counted = 0
    ready: list[tuple[Any, int, _Unit]] = []

    def may_run(unit: _Unit) -> None:
        nonlocal counted
        counted += 1
        heapq.heappush(ready, (key(unit), counted, unit))

    for unit, needed in needs.items():
        if not needed:
            may_run(unit)
    order = []
    while ready:
        unit = heapq.heappop(ready)[2]
        order.append(unit)
        for later in gives[unit]:
            needs[later].discard(unit)
            if not needs[later]:
                may_run(later)
    assert len(order) == len(needs), "groups of operators wait for each other"
    return order


def ordered(module: torch.fx.GraphModule, order: str) -> torch.fx.GraphModule:
    """With the operators in the order 'bfs', layer by layer of the graph, or 'dfs', each branch to its end.

    A layer is how many operators lie between a value and the inputs at most; within one the program's order holds. Inputs come first.
    """
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes)
    index_of = {node: at for at, node in enumerate(nodes)}
    if order == "bfs":
        layer: dict[Node, int] = {}
        for node in nodes:
            layer[node] = 0 if node.op == "placeholder" else 1 + max((layer[item] for item in before[node]), default=0)
        ordered = in_order({node: node for node in nodes}, before, lambda node: (node.op != "placeholder", layer[node], index_of[node]))
    else:
        ordered = _deep(nodes, before)
    graph, names = torch.fx.Graph(), dict[Node, Node]()
    for node in ordered:
        names[node] = graph.node_copy(node, lambda n: names[n])
    return torch.fx.GraphModule(module, graph)


def _deep(nodes: list[Node], before: Mapping[Node, list[Node]]) -> list[Node]:
    """Of the nodes that may run the one whose last input was ready last."""
    waiting = {node: len(set(before[node])) for node in nodes}
    gives: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for item in dict.fromkeys(before[node]):
            gives[item].append(node)
    order = [node for node in nodes if node.op == "placeholder"]
    for node in order:
        for later in gives[node]:
            waiting[later] -= 1
    stack = [node for node in reversed(nodes) if not waiting[node] and node.op != "placeholder"]
    while stack:
        node = stack.pop()
        order.append(node)
        for later in gives[node]:
            waiting[later] -= 1
        stack += [later for later in reversed(gives[node]) if not waiting[later]]
    return order
