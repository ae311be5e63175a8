"""Convolutions of oneDNN with packed weights as calls of our C++ convolutions, where these are faster."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.fx.node import Node

from torchspore.engine.native.convolutions import packed_operators

_mkldnn = torch.ops.mkldnn
_REORDER = _mkldnn._reorder_convolution_weight.default
_UNARY, _BINARY = _mkldnn._convolution_pointwise.default, _mkldnn._convolution_pointwise.binary


class Convolution(NamedTuple):
    """A convolution of float32 images (N, C, H, W) without groups: what its speed depends on."""

    image: tuple[int, ...]
    weight: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    has_bias: bool
    adds_image: bool
    has_relu: bool


Choice = Callable[[Convolution], "int | None"]
"""A function that returns the tile with which the C++ convolution is to be computed, None for oneDNN."""


def use_packed_convolutions(module: torch.fx.GraphModule, choose_tile: Choice) -> torch.fx.GraphModule:
    """Replace calls of oneDNN that `pack_weights` has built, in place. The results are channels-last images too."""
    operators = packed_operators()
    for node in list(module.graph.nodes) if operators is not None else ():
        described = _describe(node)
        tile = None if described is None else choose_tile(described[0])
        if described is None or tile is None or operators is None:
            continue
        convolution, (x, packed, bias, other) = described
        with module.graph.inserting_before(node):
            weights = module.graph.call_function(operators.pack, (packed.args[0], tile))
            new = module.graph.call_function(operators.convolve, (
                x, weights, bias, other, convolution.weight[0], list(convolution.weight[2:]), list(convolution.stride),
                list(convolution.padding), list(convolution.dilation), tile, convolution.has_relu,
            ))
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)
        if not packed.users:
            module.graph.erase_node(packed)
    return module


def _describe(node: Node) -> tuple[Convolution, tuple[Node, Node, Node | None, Node | None]] | None:
    """Return a convolution and its image, packed weight, bias and added image; None for other nodes and unsupported arguments."""
    if node.op != "call_function" or node.target not in (_UNARY, _BINARY):
        return None
    if node.target is _UNARY:
        x, packed, bias, padding, stride, dilation, groups, activation = node.args[:8]
        other = None
    else:
        x, other, packed, bias, padding, stride, dilation, groups, _, _, activation = node.args[:11]
    weight = packed.args[0] if isinstance(packed, Node) and packed.target is _REORDER else None
    if groups != 1 or activation not in (None, "none", "relu") or not all(map(_is_image, (x, weight, *([other] if other else [])))):
        return None
    window: list[tuple[int, ...]] = [tuple(item) for item in (stride, padding, dilation)]  # type: ignore[arg-type]
    if any(len(item) != 2 for item in window):
        return None
    image, size = (tuple(item.meta["val"].shape) for item in (x, weight))  # type: ignore[union-attr]
    convolution = Convolution(
        image, size, window[0], window[1], window[2], bias is not None, other is not None, activation == "relu",
    )
    return convolution, (x, packed, bias, other)  # type: ignore[return-value]


def _is_image(item: object) -> bool:
    value = item.meta.get("val") if isinstance(item, Node) else None
    return (
        isinstance(value, torch.Tensor) and value.dim() == 4 and value.dtype is torch.float32 and value.device.type == "cpu"
        and all(isinstance(size, int) and size > 0 for size in value.shape)
    )
