"""Matrix products by oneDNN instead of the BLAS library that torch was built with."""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx.node import Node

_aten = torch.ops.aten
LINEAR = torch.ops.mkldnn._linear_pointwise.default
_T = _aten.t.default

Wanted = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], bool]
"""Says for the operands of one product (fake tensors: left, right, added vector) whether oneDNN shall compute it."""


def onednn_linears(module: torch.fx.GraphModule, wanted: Wanted) -> torch.fx.GraphModule:
    """With `mm` and `addmm` of float32 on the CPU as oneDNN's linear: the same products, summed in another order."""
    for node in list(module.graph.nodes):
        found = _operands(node)
        if found is None:
            continue
        left, right, added = found
        if not wanted(left.meta["val"], right.meta["val"], None if added is None else added.meta["val"]):
            continue
        with module.graph.inserting_before(node):
            turned = right.args[0] if right.target is _T else _with_meta(module.graph.call_function(_T, (right,)), right.meta["val"])
            new = module.graph.call_function(LINEAR, (left, turned, added, "none", [], ""))
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)
        if right.target is _T and not right.users:
            module.graph.erase_node(right)
    return module


def _with_meta(node: Node, source: torch.Tensor) -> Node:
    node.meta["val"] = source.t()
    return node


def _operands(node: Node) -> tuple[Node, Node, Node | None] | None:
    """Left, right and the vector that is added, of a product that oneDNN's linear can compute."""
    if node.op != "call_function" or node.kwargs:
        return None
    if node.target is _aten.mm.default:
        left, right, added = node.args[0], node.args[1], None
    elif node.target is _aten.addmm.default:
        added, left, right = node.args[:3]
    else:
        return None
    given = [item for item in (left, right, added) if item is not None]
    if not all(isinstance(item, Node) and _is_fit(item.meta.get("val")) for item in given):
        return None
    if isinstance(added, Node) and added.meta["val"].dim() != 1:
        return None
    return left, right, added  # type: ignore[return-value]


def _is_fit(value: object) -> bool:
    return (
        isinstance(value, torch.Tensor) and value.dtype is torch.float32 and value.device.type == "cpu"
        and all(isinstance(size, int) and size > 0 for size in value.shape)
    )


_RELU = {_aten.relu.default, _aten.relu_.default}


def fuse_activations(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With relu, gelu or the addition of a like tensor computed by the linear before it, where nobody else reads the linear's result."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.args and isinstance(node.args[0], Node):
            _fuse(module, node)
    return module


def _fuse(module: torch.fx.GraphModule, node: Node) -> None:
    linear = node.args[0]
    if not isinstance(linear, Node) or linear.target is not LINEAR or linear.args[3] != "none" or len(linear.users) != 1:
        return
    if node.target in _RELU:
        linear.args = (*linear.args[:3], "relu", [], "")
    elif node.target is _aten.gelu.default:
        linear.args = (*linear.args[:3], "gelu", [], node.kwargs.get("approximate", "none"))
    else:
        return
    node.replace_all_uses_with(linear)
    module.graph.erase_node(node)
