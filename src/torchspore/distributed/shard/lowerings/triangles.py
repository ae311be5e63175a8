"""Triangles of matrices whose rows or columns are split: each device counts from the first row and column of its part."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.split_layouts.device_layout import Axes

_aten = torch.ops.aten


def _positions(partitioner: Any, length: int, axes: Axes, device: torch.device) -> Node:
    """Return the positions of the local elements along an axis of the full value."""
    local: Node = partitioner.call(_aten.arange.default, (length,), {"device": device})
    if not axes:
        return local
    start = partitioner.call(nodes.position, (axes, length, partitioner.mesh), {})
    shifted: Node = partitioner.call(_aten.add.Tensor, (local, start), {}, val=local.meta["val"])
    return shifted


@lowers("triu", "tril")
def triangle(partitioner: Any, node: Node) -> Any:
    """Keep the elements on one side of a diagonal; the layout stays the same."""
    x, (_, *rest) = partitioner.operands(node)[0], arguments(node)
    diagonal = rest[0] if rest else node.kwargs.get("diagonal", 0)
    cuts = x.layout.dim_axes
    if x.layout.partial or not (cuts[-1] or cuts[-2]) or isinstance(diagonal, Node):
        return None
    local = x.node.meta["val"]
    rows = partitioner.call(_aten.unsqueeze.default, (_positions(partitioner, local.shape[-2], cuts[-2], local.device), 1), {})
    columns = _positions(partitioner, local.shape[-1], cuts[-1], local.device)
    distance = partitioner.call(_aten.sub.Tensor, (columns, rows), {})
    compare = _aten.lt.Scalar if node.target._opname == "triu" else _aten.gt.Scalar  # type: ignore[union-attr]
    outside = partitioner.call(compare, (distance, diagonal), {})
    result = partitioner.call(_aten.masked_fill.Scalar, (x.node, outside, 0), {}, node)
    return partitioner.wrapped(result, node, [x.layout])
