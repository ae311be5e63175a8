"""The dependencies between the nodes of a graph, and the order of its operators (`exec_order`)."""
from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import torch
from torch.fx.node import Node

from torchspore.engine.autograd.recompute import random_state, swap_state
from torchspore.engine.random import operator_streams
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners, writes
from torchspore.graph.fx.exchanges import is_exchange, is_wait

_Unit = TypeVar("_Unit", bound=Hashable)


def dependencies(
    nodes: list[Node], known_targets: frozenset[Any] = frozenset(), lane: Callable[[Node], Any] = lambda node: None,
) -> tuple[dict[Node, list[Node]], set[Node]]:
    """Return for each node the nodes that must run before it, and the owners (`aliasing.owner_of`) of all mutated memory.

    In addition to data dependencies, reads and writes of the same memory keep their order. So do exchanges, and random operators for which
    `lane` returns the same value; in a graph with random operators, functions that read or set the generator's state are among them. An
    exchange reads its operand until its wait. No node moves across control flow or an unknown function; functions in
    `known_targets` only read their arguments.
    """
    owner = owners(nodes[0].graph)
    written_owners = {owner[item] for node in nodes for item in writes(node)}
    before: dict[Node, list[Node]] = {}
    touched: dict[Node, list[Node]] = {item: [] for item in written_owners}
    writer: dict[Node, Node] = {}
    barrier: Node | None = None
    last_random: dict[Any, Node] = {}
    has_draws = any(map(_is_random, nodes))
    last_exchange: Node | None = None
    for index, node in enumerate(nodes):
        needed = list(node.all_input_nodes)
        if _is_unknown(node) and node.target not in known_targets:
            needed, barrier = nodes[:index], node
            before[node] = needed
            continue
        if barrier is not None and node.op != "placeholder":
            needed.append(barrier)
        if _is_random(node) or (has_draws and node.target in _STATES):
            node_lane = lane(node)
            needed += [last_random[node_lane]] if node_lane in last_random else []
            last_random[node_lane] = node
        if is_exchange(node) and not is_wait(node):
            needed += [last_exchange] if last_exchange is not None else []
            last_exchange = node
        node_writes = {owner[item] for item in writes(node)}
        sent = [item for launch in node.all_input_nodes for item in launch.all_input_nodes] if is_wait(node) else []
        accessed_owners = {r for r in (*(owner[item] for item in (*node.all_input_nodes, *sent)), owner[node]) if r in written_owners}
        for item in accessed_owners:
            if item in node_writes:
                needed += touched[item]
                touched[item] = []
                writer[item] = node
            elif item in writer:
                needed.append(writer[item])
            touched[item].append(node)
        before[node] = needed
    return before, written_owners


def _is_unknown(node: Node) -> bool:
    """Return whether no node may move across this node: control flow, the output, or an unknown function."""
    if node.op == "output":
        return True
    if node.op != "call_function" or node.target is operator.getitem or node.meta.get(node_metadata.IS_KERNEL):
        return False
    if node.target in operator_streams.MOVABLE:
        return False
    return not is_operator(node.target) or node.target.namespace == "torchspore"


_STATES = frozenset({random_state, swap_state})
"""Functions of recomputed regions that read or set the state of torch's generator."""


def _is_random(node: Node) -> bool:
    return is_operator(node.target) and torch.Tag.nondeterministic_seeded in node.target.tags


def topological_order(units: Mapping[Node, _Unit], before: Mapping[Node, list[Node]], key: Callable[[_Unit], Any]) -> list[_Unit]:
    """Return the units (nodes or groups of nodes) in an order that satisfies `before`; of the ready units the least by `key` is next."""
    predecessors: dict[_Unit, set[_Unit]] = {unit: set() for unit in units.values()}
    successors: dict[_Unit, set[_Unit]] = {unit: set() for unit in units.values()}
    for node, unit in units.items():
        for other in before[node]:
            if units[other] != unit:
                predecessors[unit].add(units[other])
                successors[units[other]].add(unit)
    counted = 0
    ready: list[tuple[Any, int, _Unit]] = []

    def may_run(unit: _Unit) -> None:
        nonlocal counted
        counted += 1
        heapq.heappush(ready, (key(unit), counted, unit))

    for unit, needed in predecessors.items():
        if not needed:
            may_run(unit)
    order = []
    while ready:
        unit = heapq.heappop(ready)[2]
        order.append(unit)
        for later in successors[unit]:
            predecessors[later].discard(unit)
            if not predecessors[later]:
                may_run(later)
    assert len(order) == len(predecessors), "groups of operators depend on each other"
    return order


def reorder(module: torch.fx.GraphModule, order: str) -> torch.fx.GraphModule:
    """Return a graph with its operators in the order 'bfs' (layer by layer) or 'dfs' (each chain of operators to its end).

    The layer of a value is the largest number of operators between the inputs and the value. Operators of a layer keep the program's order.
    Inputs come first.
    """
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes)
    index_of = {node: at for at, node in enumerate(nodes)}
    if order == "bfs":
        layer: dict[Node, int] = {}
        for node in nodes:
            layer[node] = 0 if node.op == "placeholder" else 1 + max((layer[item] for item in before[node]), default=0)
        ordered = topological_order(
            {node: node for node in nodes}, before, lambda node: (node.op != "placeholder", layer[node], index_of[node])
        )
    else:
        ordered = _depth_first(nodes, before)
    graph, copies = torch.fx.Graph(), dict[Node, Node]()
    for node in ordered:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    return torch.fx.GraphModule(module, graph)


def _depth_first(nodes: list[Node], before: Mapping[Node, list[Node]]) -> list[Node]:
    """Return the nodes in depth-first order: of the ready nodes, the one that became ready last is next."""
    waiting = {node: len(set(before[node])) for node in nodes}
    successors: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for item in dict.fromkeys(before[node]):
            successors[item].append(node)
    order = [node for node in nodes if node.op == "placeholder"]
    for node in order:
        for later in successors[node]:
            waiting[later] -= 1
    stack = [node for node in reversed(nodes) if not waiting[node] and node.op != "placeholder"]
    while stack:
        node = stack.pop()
        order.append(node)
        for later in successors[node]:
            waiting[later] -= 1
        stack += [later for later in reversed(successors[node]) if not waiting[later]]
    return order
