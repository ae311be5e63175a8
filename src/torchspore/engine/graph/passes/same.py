"""Drops operators that give their input back."""
from __future__ import annotations

import torch

_SAME = {torch.ops.aten.detach.default, torch.ops.aten.alias.default, torch.ops.aten.lift_fresh.default}


def drop_same(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Without detach and alias: under no gradient they are their input."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target in _SAME:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    return module
