"""Products of matrices of any rank, as torch's kernels take them."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.split_layouts.device_layout import Layout

_aten = torch.ops.aten


@lowers("matmul")
def matmul(partitioner: Any, node: Node) -> Any:
    """Split a product by its rule; on each device the leading dimensions of its part are joined for `bmm`."""
    values = partitioner.split_by_rule(node, lambda operands: _joined(partitioner, *operands))
    return values


def _joined(partitioner: Any, first: Node, other: Node) -> Node:
    lead = first.meta["val"].shape[:-2]
    flat = [partitioner.call(_aten.reshape.default, (x, [math.prod(lead), *x.meta["val"].shape[-2:]]), {}) for x in (first, other)]
    product = partitioner.call(_aten.bmm.default, tuple(flat), {})
    joined: Node = partitioner.call(_aten.view.default, (product, [*lead, *product.meta["val"].shape[-2:]]), {})
    return joined


@lowers("addmm", "linear")
def product_and_sum(partitioner: Any, node: Node) -> Any:
    """A product with a bias and a split inner dimension: each device adds its share of the bias, and has a partial sum."""
    is_linear = node.target._opname == "linear"  # type: ignore[union-attr]
    if len(arguments(node)) != 3 or node.kwargs or any(not isinstance(item, Node) for item in arguments(node)):
        return None
    operands = partitioner.operands(node)
    first, other, bias = operands if is_linear else (*operands[1:], operands[0])
    inner, after = first.layout.dim_axes[-1], other.layout.dim_axes[0 if is_linear else 1]
    ahead = {axis for cut_axes in first.layout.dim_axes[:-1] for axis in cut_axes}
    if not inner or inner != other.layout.dim_axes[1 if is_linear else 0] or ahead & set(after):
        return None
    if any(value.layout.partial for value in operands) or len(bias.shape) != 1 or not bias.dtype.is_floating_point:
        return None
    bias = partitioner.move(bias, Layout((after,)))
    share = partitioner.call(_aten.mul.Tensor, (bias.node, 1 / partitioner.mesh.product(inner)), {})
    call_arguments = (first.node, other.node, share) if is_linear else (share, first.node, other.node)
    result = partitioner.call(node.target, call_arguments, {})
    terms = tuple((axis, "sum") for axis in sorted(inner))
    return partitioner.wrapped(result, node, [Layout((*first.layout.dim_axes[:-1], after), terms)])
