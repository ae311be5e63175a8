"""In-place operators: an operator overwrites an input that no other operator reads."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals.torch_private import is_operator

_aten = torch.ops.aten
_IN_PLACE_FORMS = {_aten.relu.default: _aten.relu_.default, _aten.add.Tensor: _aten.add_.Tensor}
_ALLOCATING = {
    _aten.convolution.default, _aten.addmm.default, _aten.mm.default, _aten.bmm.default, _aten.add.Tensor, _aten.mul.Tensor,
    _aten.sub.Tensor,
    _aten.div.Tensor, _aten.threshold_backward.default, _aten.convolution_backward.default, _aten.max_pool2d_with_indices.default,
    _aten.native_layer_norm.default, _aten._native_batch_norm_legit.default, _aten._native_batch_norm_legit.no_stats,
    _aten.native_batch_norm.default, torch.ops.mkldnn._linear_pointwise.default,
    _aten._softmax.default, _aten.native_batch_norm_backward.default, _aten.linear.default, _aten.matmul.default, _aten.layer_norm.default,
}
"""Operators that allocate memory for their results."""


def overwrite(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace relu and add by their in-place forms if the input owns its memory and has no other reader: equal numbers, less memory."""
    for node in module.graph.nodes:
        if overwrites(node):
            node.target = _IN_PLACE_FORMS[node.target]
    return module


def overwrites(node: Node) -> bool:
    """Return whether `overwrite` replaces the node by its in-place form."""
    return node.op == "call_function" and node.target in _IN_PLACE_FORMS and not node.kwargs and _may_overwrite(node)


def _may_overwrite(node: Node) -> bool:
    target = node.args[0]
    if not isinstance(target, Node) or len(target.users) != 1 or not _owns_memory(target):
        return False
    if sum(argument is target for argument in node.args) != 1:
        return False
    result_value, input_value = node.meta.get("val"), target.meta.get("val")
    return (
        isinstance(result_value, torch.Tensor) and isinstance(input_value, torch.Tensor) and _layout(result_value) == _layout(input_value)
    )


def _owns_memory(node: Node) -> bool:
    """Return whether the value owns its memory; it may be an item of several results."""
    if node.op != "call_function":
        return False
    if getattr(node.target, "__name__", "") == "getitem" and not is_operator(node.target):
        return _owns_memory(node.args[0])  # type: ignore[arg-type]
    return node.target in _ALLOCATING


def _layout(t: torch.Tensor) -> Any:
    return t.shape, t.stride(), t.dtype, t.device
