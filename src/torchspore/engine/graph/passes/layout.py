"""Images with channels last in memory, which oneDNN's and cuDNN's convolutions read without a rearrangement."""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

from torchspore.engine.private import is_operator

_aten = torch.ops.aten
_VIEWS = {_aten.view.default, _aten._unsafe_view.default}
_FLAT = {*_VIEWS, _aten.reshape.default, _aten.expand.default}
_CONVOLUTIONS = {_aten.convolution.default, _aten.convolution_backward.default}
_STRIDED = {_aten.as_strided.default, _aten.as_strided_.default, _aten.empty_strided.default, _aten.new_empty_strided.default}
_OPTIMIZERS = ("_fused_sgd_", "_fused_adam_", "_fused_adamw_")


def has_images(module: torch.fx.GraphModule) -> bool:
    """Whether the graph has convolutions of images, and nothing whose meaning hangs on strides or is not known here."""
    if any(node.op == "call_function" and not is_operator(node.target) and node.target is not operator.getitem
           for node in module.graph.nodes):
        return False
    targets = {node.target for node in module.graph.nodes}
    return not targets & _STRIDED and any(
        node.target is _aten.convolution.default and node.meta["val"].dim() == 4 for node in module.graph.nodes
    )


def channels_last(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With channels last wherever images begin; kernels hand the layout on. What leaves the graph has the strides that it had before."""
    for node in list(module.graph.nodes):
        if node.op == "output":
            node.args = ([_back(module, node, item) for item in node.args[0]],)
        elif node.op == "call_function":
            _turn(module, node)
    return module


def _turn(module: torch.fx.GraphModule, node: Node) -> None:
    if node.target in _VIEWS:
        node.target = _aten.reshape.default
    if _is_image(node) and node.target in _FLAT:
        _follow(module, node)
    elif node.target is _aten.convolution.default and _is_image(node) and _begins(node.args[0]):
        with module.graph.inserting_before(node):
            node.args = (_last(module, node.args[0]), *node.args[1:])  # type: ignore[arg-type]
    elif node.target is _aten.convolution_backward.default:
        with module.graph.inserting_before(node):
            node.args = tuple(_last(module, item) if place < 2 and _begins(item) and _is_image(item) else item  # type: ignore[arg-type]
                              for place, item in enumerate(node.args))
    elif getattr(node.target, "_opname", "") in _OPTIMIZERS:
        parameters, gradients, *others = node.args
        node.args = (
            parameters, [_like(module, node, p, g) for p, g in zip(parameters, gradients)], *others,  # type: ignore[arg-type]
        )


def _begins(item: object) -> bool:
    """Whether an image comes from outside, not from an operator that hands the layout on."""
    return isinstance(item, Node) and item.op in ("placeholder", "get_attr")


def _is_image(item: object) -> bool:
    value = item.meta.get("val") if isinstance(item, Node) else None
    return isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point()


def _last(module: torch.fx.GraphModule, item: Node) -> Node:
    new = module.graph.call_function(_aten.contiguous.default, (item,), {"memory_format": torch.channels_last})
    new.meta["val"] = item.meta["val"]
    return new


def _follow(module: torch.fx.GraphModule, node: Node) -> None:
    """Puts channels last after an operator that does not hand the layout on."""
    with module.graph.inserting_after(node):
        new = _last(module, node)
    node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)


def _back(module: torch.fx.GraphModule, before: Node, item: object) -> object:
    """The value with the strides that the graph promised."""
    if not _is_image(item) or not isinstance(item, Node) or item.op == "placeholder" or not item.meta["val"].is_contiguous():
        return item
    with module.graph.inserting_before(before):
        new = module.graph.call_function(_aten.contiguous.default, (item,))
    new.meta = dict(item.meta)
    return new


def _like(module: torch.fx.GraphModule, before: Node, parameter: Node, gradient: Node) -> Node:
    """A gradient laid out as its Parameter, which the fused optimizers expect."""
    back = _back(module, before, gradient) if parameter.meta["val"].is_contiguous() else gradient
    assert isinstance(back, Node)
    return back
