"""Constant folding for inference: batch norms are folded into convolutions, and values of weights alone are computed once."""
from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch.fx.node import Node

from torchspore.graph.fx.aliasing import is_view, owner_of, writes
from torchspore.graph.fx.inputs import copied_input, new_input
from torchspore.graph.passes.cleanup import has_effect

_aten = torch.ops.aten
_CONVOLUTION = _aten.convolution.default
_NORM = _aten.native_batch_norm.default


def fold_norms(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace norm(conv(x, w, b)) by conv(x, w * s, (b - mean) * s + shift) with s = gain / sqrt(variance + eps), in place.

    Only the norm may read the convolution. The numbers are equal except for rounding. Transposed convolutions are not changed, because
    the axes of their weights have another order.
    """
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is _NORM and not node.args[5] and _is_foldable(node):
            _fold(module, node)
    return module


def _is_foldable(norm: Node) -> bool:
    conv = norm.args[0]
    return (
        isinstance(conv, Node) and conv.target is _CONVOLUTION and len(conv.users) == 1 and not conv.args[6]
        and all(isinstance(item, Node) for item in norm.args[3:5])
        and all(user.target is operator.getitem and user.args[1] == 0 for user in norm.users)
    )


def _fold(module: torch.fx.GraphModule, norm: Node) -> None:
    conv, gain, shift, mean, variance, _, _, eps = norm.args
    assert isinstance(conv, Node) and isinstance(mean, Node) and isinstance(variance, Node)
    x, weight, bias, *how = conv.args
    assert isinstance(weight, Node)
    channels = weight.meta["val"].shape[0]
    graph = module.graph
    with graph.inserting_before(norm):
        def call(target: object, *args: object, like: Node) -> Node:
            new = graph.call_function(target, args)  # type: ignore[arg-type]
            new.meta["val"] = like.meta["val"]
            return new

        scale = call(_aten.rsqrt.default, call(_aten.add.Tensor, variance, eps, like=variance), like=variance)
        if isinstance(gain, Node):
            scale = call(_aten.mul.Tensor, scale, gain, like=variance)
        wide = graph.call_function(_aten.view.default, (scale, [channels] + [1] * (weight.meta["val"].dim() - 1)))
        folded = call(_aten.mul.Tensor, weight, wide, like=weight)
        moved = call(_aten.sub.Tensor, bias, mean, like=mean) if isinstance(bias, Node) else call(_aten.neg.default, mean, like=mean)
        moved = call(_aten.mul.Tensor, moved, scale, like=mean)
        if isinstance(shift, Node):
            moved = call(_aten.add.Tensor, moved, shift, like=mean)
        new = call(_CONVOLUTION, x, folded, moved, *how, like=conv)
    for user in list(norm.users):
        user.replace_all_uses_with(new)
        graph.erase_node(user)
    graph.erase_node(norm)
    graph.erase_node(conv)


@dataclass
class Hoisted:
    """Two graphs: `first` computes values from the inputs at `input_indices`; `rest` receives all inputs, followed by these values."""

    first: torch.fx.GraphModule
    rest: torch.fx.GraphModule
    input_indices: list[int]


def constant_nodes(module: torch.fx.GraphModule, persistent: frozenset[int]) -> set[Node]:
    """Return the values that depend only on the inputs at the indices `persistent`, if the graph does not write into these inputs."""
    written_owners = {owner_of(item) for node in module.graph.nodes for item in writes(node)}
    nodes: set[Node] = set()
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in module.graph.nodes:
        if node.op == "placeholder":
            if inputs.index(node) in persistent and node not in written_owners:
                nodes.add(node)
        elif node.op == "get_attr":
            if node not in written_owners:
                nodes.add(node)
        elif node.op == "call_function" and all(item in nodes for item in node.all_input_nodes):
            if node.target is operator.getitem or not has_effect(node):
                nodes.add(node)
    return nodes


def hoist(module: torch.fx.GraphModule, persistent: frozenset[int], only: set[Node] | None = None) -> Hoisted | None:
    """Split the graph into a constant part and the rest; None if the constant part contains only views.

    With `only`, the constant part contains only values that depend on one of these nodes.
    """
    constant = constant_nodes(module, persistent)
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    work = {node for node in constant if node.op == "call_function" and node.all_input_nodes and not _is_cheap(node)}
    if only is not None:
        work &= only
    computed = [node for node in module.graph.nodes if node in constant and node.op == "call_function"
             and any(user not in constant for user in node.users) and _needs(node, work)]
    if not computed:
        return None
    first, copies = torch.fx.Graph(), dict[Node, Node]()
    ancestors = _ancestors(computed)
    taken = [index for index, node in enumerate(inputs) if node in ancestors]
    for node in module.graph.nodes:
        if node in ancestors:
            copies[node] = first.node_copy(node, lambda n: copies[n])
    first.output([copies[node] for node in computed])
    return Hoisted(torch.fx.GraphModule(module, first), _rest(module, computed, ancestors), taken)


def _rest(module: torch.fx.GraphModule, computed: list[Node], removed: set[Node]) -> torch.fx.GraphModule:
    graph, copies = torch.fx.Graph(), dict[Node, Node]()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            copies[node] = copied_input(graph, node)
    for index, node in enumerate(computed):
        copies[node] = new_input(graph, f"held{index}")
        copies[node].meta = dict(node.meta)
    for node in module.graph.nodes:
        if node not in copies:
            copies[node] = graph.node_copy(node, lambda n: copies[n])
    for node in reversed(list(graph.nodes)):      # nodes of the constant part without other readers
        if node.op in ("call_function", "get_attr") and not node.users and not has_effect(node):
            graph.erase_node(node)
    return torch.fx.GraphModule(module, graph)


def _is_cheap(node: Node) -> bool:
    return is_view(node) or node.target is operator.getitem


def _needs(node: Node, work: set[Node]) -> bool:
    return bool(_ancestors([node]) & work)


def _ancestors(nodes: list[Node]) -> set[Node]:
    ancestors: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in ancestors:
            ancestors.add(node)
            waiting += node.all_input_nodes
    return ancestors
