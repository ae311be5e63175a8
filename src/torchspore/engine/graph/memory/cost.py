"""What an operator costs, in seconds on a middling processor: only the ratios count."""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

from torchspore.engine.graph.passes.views import shown
from torchspore.engine.private import is_operator

_BYTES, _STEPS = 1e10, 5e10
"""Bytes moved and arithmetic done in a second."""
_LEAST = 2e-6
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv"})


def seconds(node: Node) -> float:
    """An estimate for one operator; views are free."""
    if node.op != "call_function" or node.target is operator.getitem or shown(node) is not None:
        return 0.0
    moved = sum(t.numel() * t.element_size() for n in (node, *node.all_input_nodes) for t in _tensors(n.meta.get("val")))
    return _LEAST + moved / _BYTES + _arithmetic(node) / _STEPS


def _arithmetic(node: Node) -> float:
    """Multiplications and additions of products and convolutions; the others are bound by memory."""
    name = node.target._opname if is_operator(node.target) else ""
    values = [_tensors(n.meta.get("val")) for n in node.args if isinstance(n, Node)]
    shapes = [found[0].shape for found in values if found]
    if name in _PRODUCTS and len(shapes) > 1:
        a, b = shapes[-2], shapes[-1]
        return 2.0 * a.numel() * (b[-1] if len(b) > 1 else 1)
    if name == "convolution" and len(shapes) > 1:
        out = _tensors(node.meta.get("val"))
        return 2.0 * out[0].numel() * shapes[1][1:].numel() if out else 0.0
    if name == "convolution_backward" and len(shapes) > 2:
        return 4.0 * shapes[0].numel() * shapes[2][1:].numel()
    return 0.0


def _tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for t in value if isinstance(t, torch.Tensor)] if isinstance(value, (list, tuple)) else []
