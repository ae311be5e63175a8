"""Operators that reshape a value in place, as batching rules of `vmap` use them; here they become views, which have layouts like others."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.graph.fx.modules import copy_module

_aten = torch.ops.aten
_VIEWS: dict[Any, Any] = {
    _aten.squeeze_.default: _aten.squeeze.default, _aten.squeeze_.dim: _aten.squeeze.dim, _aten.squeeze_.dims: _aten.squeeze.dims,
    _aten.unsqueeze_.default: _aten.unsqueeze.default, _aten.t_.default: _aten.t.default, _aten.transpose_.default: _aten.transpose.int,
}


def as_views(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy of the graph in which such an operator returns a view, and later operators use the view."""
    if not any(node.target in _VIEWS for node in module.graph.nodes):
        return module
    module = copy_module(module)
    seen: set[Node] = set()
    for node in module.graph.nodes:
        seen.add(node)
        if node.op == "call_function" and node.target in _VIEWS:
            before = frozenset(seen)
            node.target = _VIEWS[node.target]
            node.args[0].replace_all_uses_with(node, delete_user_cb=lambda user, before=before: user not in before)
    return module
