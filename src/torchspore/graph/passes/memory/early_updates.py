"""An optimizer's steps run as soon as their gradients are there, so that gradients do not wait for each other."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import is_operator
from torchspore.graph.fx.order import dependencies
from torchspore.graph.passes.memory.lifetimes import size_of

_SMALL = 4096
"""Bytes of a value that may be computed long before it is needed, such as a rate."""


def updated_early(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with optimizers' operators on lists as one for each Parameter, each at the earliest place; in place, with equal bits."""
    for node in list(module.graph.nodes):
        if _is_step(node) or _is_on_lists(node):
            _split(module.graph, node)
    steps = [node for node in module.graph.nodes if _is_step(node)]
    if steps:
        _reorder(module, steps)
    return module


def _is_step(node: Node) -> bool:
    return is_operator(node.target) and node.target._opname.startswith("_fused_") and node.target._schema.is_mutable


def _is_on_lists(node: Node) -> bool:
    """Return whether the operator treats each item of its lists by itself, and gives a list."""
    return is_operator(node.target) and node.target._opname.startswith("_foreach_") and not node.target._opname.endswith("norm")


def _split(graph: torch.fx.Graph, node: Node) -> None:
    """One operator for each item in the place of one on lists."""
    count = max((len(a) for a in node.args if isinstance(a, (list, tuple))), default=0)
    if count < 2 or any(isinstance(a, (list, tuple)) and len(a) not in (0, count) for a in node.args):
        return

    def item(value: Any, index: int) -> Any:
        return [value[index]] if isinstance(value, (list, tuple)) and value else value

    parts = []
    with graph.inserting_before(node):
        for index in range(count):
            part = graph.call_function(node.target, tuple(item(a, index) for a in node.args), dict(node.kwargs))  # type: ignore[arg-type]
            part.meta = dict(node.meta)
            value = node.meta.get("val")
            if isinstance(value, (list, tuple)) and len(value) == count:
                part.meta["val"] = [value[index]]
            parts.append(part)
    for user in list(node.users):
        at: Any = user.args[1]
        user.args = (parts[at], 0)
    graph.erase_node(node)


def _reorder(module: torch.fx.GraphModule, steps: list[Node]) -> None:
    """Puts the steps, and what only they wait for, at the earliest places."""
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes)
    hasty = _hasty(steps, before)
    waits = {node: len(set(before[node])) for node in nodes}
    after: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for other in set(before[node]):
            after[other].append(node)
    order: list[Node] = []
    done: set[Node] = set()
    ready = [node for node in nodes if node in hasty and not waits[node]]

    def run(node: Node) -> None:
        waiting = [node]
        while waiting:
            step = waiting.pop()
            done.add(step)
            order.append(step)
            for other in after[step]:
                waits[other] -= 1
                if not waits[other] and other in hasty:
                    waiting.append(other)

    for node in nodes:
        if node.op == "placeholder":
            run(node)
    for node in [*ready, *nodes]:
        if node not in done:
            run(node)
    _rebuild(module, order)


def _hasty(steps: list[Node], before: dict[Node, list[Node]]) -> set[Node]:
    """The steps, the optimizer's other operators before them, and small values that these wait for and that need no large one."""
    ordered, waiting = set(steps), list(steps)
    ancestors: set[Node] = set()
    while waiting:
        for other in before[waiting.pop()]:
            if other not in ancestors:
                ancestors.add(other)
                waiting.append(other)
    ordered |= {node for node in ancestors if node.meta.get(node_metadata.OPTIMIZER) and node.op == "call_function"}
    free: set[Node] = set()
    for node in before:
        if node.op == "placeholder":
            free.add(node)
        elif node in ancestors and node.op in ("call_function", "get_attr") and node.target is not operator.getitem \
                and size_of(node) <= _SMALL and all(other in free for other in before[node]):
            free.add(node)
            ordered.add(node)
    # One of several results goes with the operator that gives it.
    return ordered | {node for node in ancestors if node.target is operator.getitem and node.args[0] in ordered}


def _rebuild(module: torch.fx.GraphModule, order: list[Node]) -> None:
    graph, names = torch.fx.Graph(), dict[Node, Node]()
    for node in order:
        names[node] = graph.node_copy(node, lambda n: names[n])
    module.graph = graph
