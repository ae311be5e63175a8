"""Rows of a table that is cut by rows: each device looks up those that it has."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.shard import collective_nodes as nodes
from torchspore.engine.shard.layout import Axes, Layout
from torchspore.engine.shard.lowerings.table import arguments, lowers

_aten = torch.ops.aten



def _own_places(to: Any, indices: Node, axes: Axes, rows: int) -> tuple[Node, Node]:
    """The indices within the own rows, and which lie outside of them."""
    start = to.call(nodes.position, (axes, rows, to.mesh), {})
    place = to.call(_aten.sub.Tensor, (indices, start), {}, val=indices.meta["val"])
    low, high = to.call(_aten.lt.Scalar, (place, 0), {}), to.call(_aten.ge.Scalar, (place, rows), {})
    outside = to.call(_aten.logical_or.default, (low, high), {})
    return to.call(_aten.masked_fill.Scalar, (place, outside, 0), {}), outside


@lowers("embedding")
def embedding(to: Any, node: Node) -> Any:
    """A table (v, d) cut along v: rows that lie elsewhere are zeros here, and the sum over devices is the row."""
    table, indices = to.operands(node)[:2]
    axes = table.layout.cuts[0]
    if not axes or table.layout.partial:
        return None
    lies = Layout(tuple(tuple(axis for axis in own if axis not in table.layout.axes) for own in indices.layout.cuts))
    indices = to.move(indices, lies)
    place, outside = _own_places(to, indices.node, axes, table.node.meta["val"].shape[0])
    found = to.call(_aten.embedding.default, (table.node, place), {})
    kept = to.call(_aten.masked_fill.Scalar, (found, to.call(_aten.unsqueeze.default, (outside, -1), {}), 0), {})
    layout = Layout((*lies.cuts, table.layout.cuts[1]), tuple((axis, "sum") for axis in sorted(axes)))
    return to.wrapped(kept, node, [layout])


@lowers("embedding_dense_backward")
def embedding_gradient(to: Any, node: Node) -> Any:
    """The gradient of a table that is cut along its rows: each device sums those of its own."""
    axes = _wanted_rows(to, node)
    if not axes:
        return None
    grad, indices = to.operands(node)[:2]
    grad = to.move(grad, Layout(tuple(tuple(axis for axis in own if axis not in axes) for own in grad.layout.cuts)))
    indices = to.move(indices, Layout(grad.layout.cuts[:-1]))
    count, padding, by_frequency = arguments(node)[2:5]
    if by_frequency:
        return None
    rows = count // to.mesh.product(axes)
    place, outside = _own_places(to, indices.node, axes, rows)
    kept = to.call(_aten.masked_fill.Scalar, (grad.node, to.call(_aten.unsqueeze.default, (outside, -1), {}), 0), {})
    made = to.call(_aten.embedding_dense_backward.default, (kept, place, rows, -1, False), {})
    terms = tuple((axis, "sum") for own in grad.layout.cuts[:-1] for axis in own)
    if padding >= 0:
        return None
    return to.wrapped(made, node, [Layout((axes, grad.layout.cuts[-1]), tuple(sorted(terms)))])


def _wanted_rows(to: Any, node: Node) -> Axes:
    """Along which axes the one who uses a gradient wants its rows cut."""
    wanted = to.wanted(node)
    return wanted.cuts[0] if wanted is not None else ()


