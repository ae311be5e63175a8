"""Products of matrices of any rank, as torch's kernels take them."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.core.device_layout import Layout

_aten = torch.ops.aten


@lowers("matmul")
def matmul(to: Any, node: Node) -> Any:
    """Split by its rule; on each device the leading dimensions, now those of its part, are joined for `bmm`."""
    values = to.by_rule(node, lambda operands: _joined(to, *operands))
    return values


def _joined(to: Any, first: Node, other: Node) -> Node:
    lead = first.meta["val"].shape[:-2]
    flat = [to.call(_aten.reshape.default, (x, [math.prod(lead), *x.meta["val"].shape[-2:]]), {}) for x in (first, other)]
    product = to.call(_aten.bmm.default, tuple(flat), {})
    joined: Node = to.call(_aten.view.default, (product, [*lead, *product.meta["val"].shape[-2:]]), {})
    return joined


@lowers("addmm", "linear")
def product_and_sum(to: Any, node: Node) -> Any:
    """A product and a summand where what is summed is cut: each device adds its share of the summand, and has a term."""
    is_linear = node.target._opname == "linear"  # type: ignore[union-attr]
    if len(arguments(node)) != 3 or node.kwargs or any(not isinstance(item, Node) for item in arguments(node)):
        return None
    operands = to.operands(node)
    first, other, bias = operands if is_linear else (*operands[1:], operands[0])
    inner, after = first.layout.cuts[-1], other.layout.cuts[0 if is_linear else 1]
    ahead = {axis for cut_axes in first.layout.cuts[:-1] for axis in cut_axes}
    if not inner or inner != other.layout.cuts[1 if is_linear else 0] or ahead & set(after):
        return None
    if any(value.layout.partial for value in operands) or len(bias.shape) != 1 or not bias.dtype.is_floating_point:
        return None
    bias = to.move(bias, Layout((after,)))
    share = to.call(_aten.mul.Tensor, (bias.node, 1 / to.mesh.product(inner)), {})
    call_arguments = (first.node, other.node, share) if is_linear else (share, first.node, other.node)
    result = to.call(node.target, call_arguments, {})
    terms = tuple((axis, "sum") for axis in sorted(inner))
    return to.wrapped(result, node, [Layout((*first.layout.cuts[:-1], after), terms)])
