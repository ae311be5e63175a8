"""Cancels views that undo each other."""
from __future__ import annotations

import torch
from torch.fx.node import Node

_T = torch.ops.aten.t.default


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
