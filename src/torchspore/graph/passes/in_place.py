"""In-place operators: an operator overwrites an input that no other operator reads."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx.node import Node

_aten = torch.ops.aten
_IN_PLACE_FORMS = {_aten.relu.default: _aten.relu_.default, _aten.add.Tensor: _aten.add_.Tensor}
_OUT_FORMS = {
    _aten.threshold_backward.default: _aten.threshold_backward.grad_input, _aten.gelu_backward.default: _aten.gelu_backward.grad_input,
    _aten._log_softmax_backward_data.default: _aten._log_softmax_backward_data.out,
    _aten._softmax_backward_data.default: _aten._softmax_backward_data.out,
}
"""Gradients that read each element of their first input before they write that of their result, or each row for a softmax of rows."""
_SMALLEST_OUT = 1 << 20
"""The size in bytes from which an `out` form pays: its call takes longer than that of the plain form."""
_ALLOCATING = {
    _aten.convolution.default, _aten.addmm.default, _aten.mm.default, _aten.bmm.default, _aten.add.Tensor, _aten.mul.Tensor,
    _aten.sub.Tensor,
    _aten.div.Tensor, _aten.threshold_backward.default, _aten.convolution_backward.default, _aten.max_pool2d_with_indices.default,
    _aten.native_layer_norm.default, _aten._native_batch_norm_legit.default, _aten._native_batch_norm_legit.no_stats,
    _aten.native_batch_norm.default, torch.ops.mkldnn._linear_pointwise.default,
    _aten._softmax.default, _aten.native_batch_norm_backward.default, _aten.linear.default, _aten.matmul.default, _aten.layer_norm.default,
    _aten.nll_loss_backward.default, *_OUT_FORMS,
}
"""Operators that allocate memory for their results."""
_OVERWRITING = {*_IN_PLACE_FORMS.values(), *_OUT_FORMS.values()}


def overwrite(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace relu, add and some gradients by forms that write into their first input if it owns its memory and has no other reader.

    The results have equal bits and need less memory.
    """
    for node in module.graph.nodes:
        if overwrites(node):
            out_form = _OUT_FORMS.get(node.target)
            if out_form is None:
                node.target = _IN_PLACE_FORMS[node.target]
            else:
                node.target = out_form
                node.kwargs = {_out_name(out_form): node.args[0]}
    return module


def _out_name(form: Any) -> str:
    return next(argument.name for argument in form._schema.arguments if argument.is_out)


def overwrites(node: Node) -> bool:
    """Return whether `overwrite` replaces the node."""
    if node.op != "call_function" or node.kwargs or not (node.target in _IN_PLACE_FORMS or _has_out_form(node)):
        return False
    return _may_overwrite(node)


def _has_out_form(node: Node) -> bool:
    value = node.meta.get("val")
    if node.target not in _OUT_FORMS or not isinstance(value, torch.Tensor) or value.device.type != "cpu" or not value.dim():
        return False
    if value.numel() * value.element_size() < _SMALLEST_OUT:
        return False
    return "softmax" not in node.target._opname or node.args[2] in (-1, value.dim() - 1)


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
    while node.op == "call_function":
        if node.target is not operator.getitem:
            if node.target not in _OVERWRITING:
                return node.target in _ALLOCATING
            if not isinstance(node.args[0], Node) or len(node.args[0].users) > 1:
                return False
        node = node.args[0]  # type: ignore[assignment]
    return False                                   # an input: a Parameter, or a Tensor of the program


def _layout(t: torch.Tensor) -> Any:
    return t.shape, t.stride(), t.dtype, t.device
