"""Values that share memory with others, and views that undo each other."""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

_aten = torch.ops.aten
_T = _aten.t.default
_VIEWS = {_aten.view.default, _aten._unsafe_view.default, _aten.permute.default, _aten.transpose.int, _T, _aten.expand.default,
          _aten.unsqueeze.default, _aten.squeeze.dim, _aten.slice.Tensor, _aten.select.int, _aten.split.Tensor, _aten.reshape.default}


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


def cancel_views(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With `t(t(x))` as `x`: both name the same memory, so that writes stay where they were."""
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not _T:
            continue
        inner = node.args[0]
        if isinstance(inner, Node) and inner.op == "call_function" and inner.target is _T:
            node.replace_all_uses_with(inner.args[0])
            module.graph.erase_node(node)
    return module
