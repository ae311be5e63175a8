"""Sums over processes that start as soon as what is summed is there, and are waited for where the sum is needed.

The order of the exchanges stays: it must be the same in all processes. Only `all_reduce` moves, which works on a copy of its own; what the
others read must stay as it is until they are over.
"""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.engine.graph.fx.exchanges import is_exchange, is_wait
from torchspore.engine.graph.fx.order import dependencies, in_order
from torchspore.engine.private import is_operator


def overlapped(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With exchanges beside what does not depend on them."""
    nodes = list(module.graph.nodes)
    starts = [node for node in nodes if is_exchange(node) and not is_wait(node)]
    if not any(_moves(node) for node in starts):
        return module
    place = {node: at for at, node in enumerate(nodes)}
    before, _ = dependencies(nodes)
    early = {node for start in starts if _moves(start) for node in (start, *_only_for(start))}
    first_use = {node: min((place[user] for user in node.users), default=place[node]) for node in nodes if is_wait(node)}

    def key(node: Node) -> tuple[int, float]:
        if node.op == "placeholder":
            return -2, place[node]
        if node in early:
            return -1, place[node]
        moves = node in first_use and all(_moves(start) for start in node.all_input_nodes)
        return 0, first_use[node] - 0.5 if moves else place[node]

    graph, names = torch.fx.Graph(), dict[Node, Node]()
    for node in in_order({node: node for node in nodes}, before, key):
        names[node] = graph.node_copy(node, lambda n: names[n])
    return torch.fx.GraphModule(module, graph)


def _moves(node: Node) -> bool:
    return is_operator(node.target) and node.target._schema.name == "_c10d_functional::all_reduce"


def _only_for(start: Node) -> list[Node]:
    """The operators that only put together what is sent."""
    found: list[Node] = []
    waiting = list(start.all_input_nodes)
    chain = {start}
    while waiting:
        node = waiting.pop()
        if node in chain or node.op != "call_function" or not is_operator(node.target) or not set(node.users) <= chain:
            continue
        name = node.target._schema.name
        if name not in _PACKING:
            continue
        chain.add(node)
        found.append(node)
        waiting += node.all_input_nodes
    return found


_PACKING = frozenset({
    "aten::cat", "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_to_copy", "aten::clone", "aten::div", "aten::mul", "aten::t",
    "aten::permute", "aten::transpose",
})
