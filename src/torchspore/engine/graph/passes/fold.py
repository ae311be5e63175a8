"""Batch norm of inference computed by the convolution before it, whose weight and bias then hold scale and shift."""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

_aten = torch.ops.aten
_CONVOLUTION = _aten.convolution.default
_NORM = _aten.native_batch_norm.default


def fold_norms(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With norm(conv(x, w, b)) as conv(x, w * s, (b - mean) * s + shift), s = gain / sqrt(variance + eps), where only the norm reads it.

    Numbers are equal but for rounding. Transposed convolutions stay: their weights have the channels elsewhere.
    """
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is _NORM and not node.args[5] and _is_fit(node):
            _fold(module, node)
    return module


def _is_fit(norm: Node) -> bool:
    conv = norm.args[0]
    return (
        isinstance(conv, Node) and conv.target is _CONVOLUTION and len(conv.users) == 1 and not conv.args[6]
        and all(isinstance(item, Node) for item in norm.args[3:5])
        and all(user.target is operator.getitem and user.args[1] == 0 for user in norm.users)
    )


def _fold(module: torch.fx.GraphModule, norm: Node) -> None:
    conv, gain, shift, mean, variance, _, _, eps = norm.args
    assert isinstance(conv, Node) and isinstance(mean, Node) and isinstance(variance, Node)
    x, weight, bias, *how = conv.args
    assert isinstance(weight, Node)
    channels = weight.meta["val"].shape[0]
    graph = module.graph
    with graph.inserting_before(norm):
        def call(target: object, *args: object, like: Node) -> Node:
            new = graph.call_function(target, args)  # type: ignore[arg-type]
            new.meta["val"] = like.meta["val"]
            return new

        scale = call(_aten.rsqrt.default, call(_aten.add.Tensor, variance, eps, like=variance), like=variance)
        if isinstance(gain, Node):
            scale = call(_aten.mul.Tensor, scale, gain, like=variance)
        wide = graph.call_function(_aten.view.default, (scale, [channels] + [1] * (weight.meta["val"].dim() - 1)))
        folded = call(_aten.mul.Tensor, weight, wide, like=weight)
        moved = call(_aten.sub.Tensor, bias, mean, like=mean) if isinstance(bias, Node) else call(_aten.neg.default, mean, like=mean)
        moved = call(_aten.mul.Tensor, moved, scale, like=mean)
        if isinstance(shift, Node):
            moved = call(_aten.add.Tensor, moved, shift, like=mean)
        new = call(_CONVOLUTION, x, folded, moved, *how, like=conv)
    for user in list(norm.users):
        user.replace_all_uses_with(new)
        graph.erase_node(user)
    graph.erase_node(norm)
    graph.erase_node(conv)
