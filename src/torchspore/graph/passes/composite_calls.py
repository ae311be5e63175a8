"""Calls of linear, matmul and layer_norm in place of the operators that torch's dispatcher splits them into.

A trace sees `linear` of three axes as view, t, addmm and view. torch runs the same kernels in one call, without the time that Python needs
for each operator. The pass runs last, when no other pass has to recognize the parts. The results have equal bits.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import current_operator
from torchspore.graph.fx.aliasing import is_result

_aten = torch.ops.aten
LINEAR, MATMUL, LAYER_NORM = _aten.linear.default, _aten.matmul.default, _aten.layer_norm.default
_VIEWS = {_aten.view.default, _aten._unsafe_view.default}
_DEVICES = ("cpu", "cuda", "meta")
"""Devices whose backends have no separate kernels for linear and matmul."""


def call_composites(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace the parts of linear, matmul and layer_norm by one call, and views that change nothing by their input, in place.

    While a dump is active the graph stays as it is: the dump needs the result of each operator.
    """
    if current_operator.followers:
        return module
    graph = module.graph
    for node in list(graph.nodes):
        change = _CHANGES.get(node.target) if node.op == "call_function" and not node.kwargs else None
        if change is not None:
            change(graph, node)
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in (_aten.expand.default, *_VIEWS):
            _shorten_views(graph, node)
    _erase_unused(graph, [node for node in graph.nodes if node.target is _aten.sym_size.int])
    return module


def _shorten_views(graph: torch.fx.Graph, node: Node) -> None:
    """Remove a view with the shape of its input; of two views in a row call the second only."""
    source = node.args[0]
    if not isinstance(source, Node) or is_result(node) or not isinstance(node.meta.get("val"), torch.Tensor):
        return
    if not isinstance(source.meta.get("val"), torch.Tensor):
        return
    if _have_equal_sizes(_shape(node), _shape(source)):
        node.replace_all_uses_with(source)
        graph.erase_node(node)
    elif node.target in _VIEWS and source.target in _VIEWS and len(source.users) == 1 and not source.kwargs:
        node.args = (source.args[0], *node.args[1:])
        graph.erase_node(source)


def _call_linear(graph: torch.fx.Graph, node: Node) -> None:
    """Replace `view(addmm(bias, view(x), t(weight)))`, or `mm` without a bias, by `linear(x, weight, bias)`."""
    arguments: tuple[Any, ...] = node.args
    bias, data, transposed = arguments if node.target is _aten.addmm.default else (None, *arguments)
    operands = (data, transposed) if bias is None else (data, transposed, bias)
    if not all(isinstance(operand, Node) and _is_on_supported_device(operand) for operand in operands):
        return
    if transposed.target is not _aten.t.default or (bias is not None and bias.meta["val"].dim() != 1):
        return
    weight, (source, last) = transposed.args[0], _unfolded(node, data)
    if source is data and bias is None:
        return                                     # mm and t: as fast as linear
    _replace(graph, node, last, LINEAR, (source, weight) if bias is None else (source, weight, bias), transposed)
    _erase_unused(graph, (transposed, data))


def _unfolded(product: Node, data: Any) -> tuple[Any, Node]:
    """Return the operand of more axes and the node of its result, if the product folds them to two; else the operand and the product."""
    if data.target not in _VIEWS or len(product.users) != 1:
        return data, product
    source, (last,) = data.args[0], product.users
    if last.target not in _VIEWS or not isinstance(source, Node):
        return data, product
    value, result = source.meta.get("val"), last.meta.get("val")
    if not isinstance(value, torch.Tensor) or not isinstance(result, torch.Tensor) or value.dim() < 3 or not _is_contiguous(value):
        return data, product
    expected = (*value.shape[:-1], product.meta["val"].shape[-1])
    is_folded = _have_equal_sizes((data.meta["val"].shape[-1],), (value.shape[-1],)) and _have_equal_sizes(_shape(last), expected)
    return (source, last) if is_folded else (data, product)


def _call_matmul(graph: torch.fx.Graph, node: Node) -> None:
    """Replace `view(bmm(view(a), view(b)))` by `matmul(a, b)`, where a and b have the same leading axes."""
    arguments: tuple[Any, ...] = node.args
    first, second = arguments
    if not isinstance(first, Node) or not isinstance(second, Node) or len(node.users) != 1:
        return
    (last,) = node.users
    operands: list[Any] = [folded.args[0] for folded in (first, second) if folded.target in _VIEWS and len(folded.users) == 1]
    if last.target not in _VIEWS or first is second or len(operands) != 2 or not all(map(_is_on_supported_device, operands)):
        return
    a, b = (operand.meta["val"] for operand in operands)
    if a.dim() != b.dim() or a.dim() < 4 or not _have_equal_sizes(a.shape[:-2], b.shape[:-2]):
        return
    is_batched = all(_have_equal_sizes(_shape(folded)[1:], tuple(value.shape[-2:])) for folded, value in ((first, a), (second, b)))
    if not is_batched or not _have_equal_sizes(_shape(last), (*a.shape[:-1], b.shape[-1])):
        return
    _replace(graph, node, last, MATMUL, tuple(operands), first)
    _erase_unused(graph, (first, second))


def _call_layer_norm(graph: torch.fx.Graph, node: Node) -> None:
    """Replace `native_layer_norm(...)[0]` by `layer_norm(...)` if nothing reads the mean and the deviation."""
    if len(node.users) != 1 or not _is_on_supported_device(node.args[0]):
        return
    (item,) = node.users
    if item.target is not operator.getitem or item.args[1] != 0:
        return
    _replace(graph, node, item, LAYER_NORM, node.args, node)


_CHANGES = {
    _aten.addmm.default: _call_linear, _aten.mm.default: _call_linear, _aten.bmm.default: _call_matmul,
    _aten.native_layer_norm.default: _call_layer_norm,
}


def _replace(graph: torch.fx.Graph, first: Node, last: Node, target: Any, arguments: tuple[Any, ...], earliest: Node) -> None:
    """Replace `last`, which reads `first` or is the same node, by a call at the position of `first`; remove both.

    The call has the name and the line of the earliest of the parts.
    """
    with graph.inserting_before(first):
        call = graph.call_function(target, arguments)
    call.meta = {**earliest.meta, "val": last.meta["val"]}
    last.replace_all_uses_with(call)
    graph.erase_node(last)
    if first is not last:
        graph.erase_node(first)


def _erase_unused(graph: torch.fx.Graph, nodes: Sequence[Node]) -> None:
    for node in nodes:
        if not node.users and node.op == "call_function":
            graph.erase_node(node)


def _is_on_supported_device(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, torch.Tensor) and value.device.type in _DEVICES


def _is_contiguous(value: torch.Tensor) -> bool:
    """Return whether the strides are those of a contiguous tensor. No guard is added for lengths that are symbols."""
    expected: Any = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride())):
        if not (isinstance(size, int) and size == 1):
            if not _have_equal_sizes((stride,), (expected,)):
                return False
            expected = expected * size
    return True


def _shape(node: Node) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)


def _have_equal_sizes(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether lengths are equal: numbers, or symbols with the same expression. No guard is added."""
    return len(first) == len(second) and all(map(_is_equal, first, second))


def _is_equal(first: Any, second: Any) -> bool:
    if isinstance(first, int) or isinstance(second, int):
        return isinstance(first, int) and isinstance(second, int) and first == second
    return bool(first.node.expr == second.node.expr)
