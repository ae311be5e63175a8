"""Early optimizer updates: each update runs as soon as its gradient is computed, so that the gradient can be freed."""
from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.fx.failing_operators import Nested, may_fail
from torchspore.graph.fx.modules import nested_nodes
from torchspore.graph.fx.order import dependencies
from torchspore.graph.passes.memory.lifetimes import size_of

_SMALL = 4096
"""The largest size in bytes of a value that may be computed long before its use, such as a learning rate."""
_FORWARD_OF = {
    "embedding_dense_backward": "embedding", "nll_loss_backward": "nll_loss_forward", "nll_loss2d_backward": "nll_loss2d_forward",
    "index_put": "index", "_unsafe_index_put": "index", "scatter_add": "gather", "index_add": "index_select",
}
"""For the gradient of an operator that reads indices: the operator, which has accepted the same indices."""


def move_updates_early(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Split fused updates into one update per Parameter and run each as early as possible, in place. The results have equal bits.

    No update moves before an operator that may refuse its values: a step that fails for its data changes no Parameter.
    """
    for node in list(module.graph.nodes):
        if _is_fused_update(node) or _is_elementwise_on_lists(node):
            _split(module.graph, node)
    steps = [node for node in module.graph.nodes if _is_fused_update(node)]
    if steps:
        _reorder(module, steps)
    return module


def _is_fused_update(node: Node) -> bool:
    return is_operator(node.target) and node.target._opname.startswith("_fused_") and node.target._schema.is_mutable


def _is_elementwise_on_lists(node: Node) -> bool:
    """Return whether the operator computes each item of its lists independently and returns a list."""
    return is_operator(node.target) and node.target._opname.startswith("_foreach_") and not node.target._opname.endswith("norm")


def _split(graph: torch.fx.Graph, node: Node) -> None:
    """Replace an operator on lists by one operator for each item."""
    count = max((len(a) for a in node.args if isinstance(a, (list, tuple))), default=0)
    if count < 2 or any(isinstance(a, (list, tuple)) and len(a) not in (0, count) for a in node.args):
        return
    if any(isinstance(a, Node) and _shape(a) == (count,) for a in node.args):        # one number for each item
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
    """Move the updates, and the nodes that only they need, to their earliest positions."""
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes)
    early = _early_nodes(steps, before)
    position = {node: index for index, node in enumerate(nodes)}
    refusing = _refusing_nodes(nodes, nested_nodes(module))
    for step in steps:
        step.meta[node_metadata.EARLY_UPDATE] = True
    for writer in (node for node in early if writes(node)):
        before[writer] = [*before[writer], *(node for node in refusing if position[node] < position[writer])]
    waits = {node: len(set(before[node])) for node in nodes}
    after: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for other in set(before[node]):
            after[other].append(node)
    order: list[Node] = []
    done: set[Node] = set()
    ready = [node for node in nodes if node in early and not waits[node]]

    def run(node: Node) -> None:
        waiting = [node]
        while waiting:
            step = waiting.pop()
            done.add(step)
            order.append(step)
            for other in after[step]:
                waits[other] -= 1
                if not waits[other] and other in early:
                    waiting.append(other)

    for node in nodes:
        if node.op == "placeholder":
            run(node)
    for node in [*ready, *nodes]:
        if node not in done:
            run(node)
    for earlier, later in itertools.pairwise(order):
        earlier.append(later)


def _refusing_nodes(nodes: list[Node], nested: Nested) -> list[Node]:
    """Return the operators that may refuse their values, without gradients of operators that have accepted the same indices."""
    accepted: set[tuple[str, Node, object]] = set()
    refusing = []
    for node in nodes:
        if not may_fail(node, nested) or node_metadata.OPTIMIZER in node.meta:
            continue
        name = node.target._opname if is_operator(node.target) else ""
        indices, lengths = [item for item in node.all_input_nodes if _is_integer(item)], _indexed_lengths(node, name)
        if indices and all((_FORWARD_OF.get(name, ""), item, lengths) in accepted for item in indices):
            continue
        accepted.update((name, item, lengths) for item in indices)
        refusing.append(node)
    return refusing


def _indexed_lengths(node: Node, name: str) -> object:
    """Return what limits the indices of an operator: the lengths of its first operand and the axis, or the number of rows of a table."""
    if name == "embedding_dense_backward":
        return node.args[2]
    if name.startswith("nll_loss"):
        return _shape(node.args[1 if name.endswith("backward") else 0])
    shape = _shape(node.args[0]) if node.args else ()
    if name == "embedding" and shape:
        return shape[0]
    axis = node.args[1] if len(node.args) > 1 else None
    return shape, tuple(item is None for item in axis) if isinstance(axis, (list, tuple)) else axis


def _shape(value: object) -> tuple[int, ...]:
    tensor = value.meta.get("val") if isinstance(value, Node) else None
    return tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else ()


def _is_integer(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and not value.dtype.is_floating_point and not value.dtype.is_complex


def _early_nodes(steps: list[Node], before: dict[Node, list[Node]]) -> set[Node]:
    """Return the updates, the optimizer's other operators before them, and their small operands that depend on small values only."""
    early, waiting = set(steps), list(steps)
    ancestors: set[Node] = set()
    while waiting:
        for other in before[waiting.pop()]:
            if other not in ancestors:
                ancestors.add(other)
                waiting.append(other)
    early |= {node for node in ancestors if node.meta.get(node_metadata.OPTIMIZER) and node.op == "call_function"}
    free: set[Node] = set()
    for node in before:
        if node.op == "placeholder":
            free.add(node)
        elif node in ancestors and node.op in ("call_function", "get_attr") and node.target is not operator.getitem \
                and size_of(node) <= _SMALL and all(other in free for other in before[node]):
            free.add(node)
            early.add(node)
    # A `getitem` node moves with the operator whose result it reads.
    return early | {node for node in ancestors if node.target is operator.getitem and node.args[0] in early}
