"""Matrix products and convolutions as calls of oneDNN, with fused activations and packed weights."""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx.node import Node

_aten = torch.ops.aten
LINEAR = torch.ops.mkldnn._linear_pointwise.default
_T = _aten.t.default

Preference = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], bool]
"""A function of the operands of a product (fake tensors: left, right, bias) that returns whether oneDNN should compute it."""


def onednn_linears(module: torch.fx.GraphModule, prefers_onednn: Preference) -> torch.fx.GraphModule:
    """Replace `mm` and `addmm` of float32 on the CPU by oneDNN's linear, in place. It sums the products in another order."""
    for node in list(module.graph.nodes):
        operands = _operands(node)
        if operands is None:
            continue
        a, right, added = operands
        if not prefers_onednn(a.meta["val"], right.meta["val"], None if added is None else added.meta["val"]):
            continue
        with module.graph.inserting_before(node):
            transposed = (
                right.args[0] if right.target is _T else _with_transposed_meta(module.graph.call_function(_T, (right,)), right.meta["val"])
            )
            new = module.graph.call_function(LINEAR, (a, transposed, added, "none", [], ""))
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)
        if right.target is _T and not right.users:
            module.graph.erase_node(right)
    return module


def _with_transposed_meta(node: Node, source: torch.Tensor) -> Node:
    node.meta["val"] = source.t()
    return node


def _operands(node: Node) -> tuple[Node, Node, Node | None] | None:
    """Return left, right and bias of a product that oneDNN's linear can compute; None for other nodes."""
    if node.op != "call_function" or node.kwargs:
        return None
    if node.target is _aten.mm.default:
        a, right, added = node.args[0], node.args[1], None
    elif node.target is _aten.addmm.default:
        added, a, right = node.args[:3]
    else:
        return None
    operands = [item for item in (a, right, added) if item is not None]
    if not all(isinstance(item, Node) and _is_supported(item.meta.get("val")) for item in operands):
        return None
    if isinstance(added, Node) and added.meta["val"].dim() != 1:
        return None
    return a, right, added  # type: ignore[return-value]


def _is_supported(value: object) -> bool:
    return (
        isinstance(value, torch.Tensor) and value.dtype is torch.float32 and value.device.type == "cpu"
        and all(isinstance(size, int) and size > 0 for size in value.shape)
    )


_RELU = {_aten.relu.default, _aten.relu_.default}


def fuse_activations(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Fuse relu and gelu into the linear before them if they are the only reader of its result, in place."""
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


_aten, _mkldnn = torch.ops.aten, torch.ops.mkldnn
_CONVOLUTION = _aten.convolution.default
_PACKED = _mkldnn._convolution_pointwise.default
_RELU = {_aten.relu.default, _aten.relu_.default}


def pack_weights(module: torch.fx.GraphModule, persistent: set[Node], images: bool = True) -> torch.fx.GraphModule:
    """Pack the weights in `persistent`, in place, and fuse relu and the addition of an equally shaped image into the convolutions.

    oneDNN's convolution with packed weights returns channels-last images. Without `images` only the weights of linears are packed.
    """
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if images and node.target is _CONVOLUTION and _is_packable(node) and node.args[1] in persistent:
            _pack_convolution(module, node)
        elif node.target is LINEAR and node.args[1] in persistent:
            _pack_linear(module, node)
    _fuse_packed(module)
    return module


def _is_packable(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dim() == 4 and value.dtype is torch.float32 and not node.args[6]


def _pack_convolution(module: torch.fx.GraphModule, node: Node) -> None:
    x, weight, bias, stride, padding, dilation, _, _, groups = node.args
    size = list(x.meta["val"].shape)  # type: ignore[union-attr]
    with module.graph.inserting_before(node):
        packed = module.graph.call_function(
            _mkldnn._reorder_convolution_weight.default, (weight, padding, stride, dilation, groups, size),
        )
        new = module.graph.call_function(_PACKED, (x, packed, bias, padding, stride, dilation, groups, "none", [], ""))
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    module.graph.erase_node(node)


def _pack_linear(module: torch.fx.GraphModule, node: Node) -> None:
    x, weight, *rest = node.args
    with module.graph.inserting_before(node):
        packed = module.graph.call_function(_mkldnn._reorder_linear_weight.default, (weight, x.meta["val"].shape[0]))  # type: ignore[union-attr]
    node.args = (x, packed, *rest)


# ---- fusion of the operators after a convolution

def _fuse_packed(module: torch.fx.GraphModule) -> None:
    index_of = {node: index for index, node in enumerate(module.graph.nodes)}
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is _aten.add.Tensor and not node.kwargs:
            _fuse_add(module, node, index_of)
        elif node.target in _RELU:
            _fuse_relu(module, node)


def _fuse_relu(module: torch.fx.GraphModule, node: Node) -> None:
    producer = node.args[0]
    if not isinstance(producer, Node) or len(producer.users) != 1:
        return
    if producer.target is _PACKED and producer.args[7] == "none":
        producer.args = (*producer.args[:7], "relu", [], "")
    elif producer.target is _mkldnn._convolution_pointwise.binary and producer.args[10] is None:
        producer.args = (*producer.args[:10], "relu", [], "")
    else:
        return
    node.replace_all_uses_with(producer)
    module.graph.erase_node(node)


def _fuse_add(module: torch.fx.GraphModule, node: Node, index_of: dict[Node, int]) -> None:
    """Fuse conv(x) + other into one call. Of two convolutions, the later one computes the addition."""
    products = [item for item in node.args[:2] if isinstance(item, Node) and item.target is _PACKED and item.args[7] == "none"
             and len(item.users) == 1]
    if not products or node.args[0] is node.args[1]:
        return
    conv = max(products, key=lambda item: index_of.get(item, 0))
    other = node.args[1] if node.args[0] is conv else node.args[0]
    if not isinstance(other, Node) or other.op == "placeholder" or other.meta["val"].shape != conv.meta["val"].shape:
        return
    x, weight, bias, padding, stride, dilation, groups = conv.args[:7]
    with module.graph.inserting_before(node):
        new = module.graph.call_function(_mkldnn._convolution_pointwise.binary, (
            x, other, weight, bias, padding, stride, dilation, groups, "add", 1.0, None, [], None,
        ))
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    module.graph.erase_node(node)
    module.graph.erase_node(conv)
