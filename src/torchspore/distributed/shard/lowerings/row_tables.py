"""Tables that are split by rows: each device looks up its rows."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.split_layouts.device_layout import Axes, Layout

_aten = torch.ops.aten



def local_positions(partitioner: Any, indices: Node, axes: Axes, rows: int) -> tuple[Node, Node]:
    """Return the indexes relative to this device's rows, and a mask of those outside."""
    start = partitioner.call(nodes.position, (axes, rows, partitioner.mesh), {})
    index = partitioner.call(_aten.sub.Tensor, (indices, start), {}, val=indices.meta["val"])
    low, high = partitioner.call(_aten.lt.Scalar, (index, 0), {}), partitioner.call(_aten.ge.Scalar, (index, rows), {})
    outside = partitioner.call(_aten.logical_or.default, (low, high), {})
    return partitioner.call(_aten.masked_fill.Scalar, (index, outside, 0), {}), outside


def looked_up(partitioner: Any, indices: Node, rows: int, like: Node) -> Node:
    """Return a one for each index. The lookup covers all rows, so that an index beyond them is refused as on one device."""
    ones = partitioner.call(_aten.expand.default, (partitioner.call(_aten.new_ones.default, (like, [1]), {}), [rows]), {})
    shape = list(indices.meta["val"].shape)
    flat = indices if len(shape) == 1 else partitioner.call(_aten.reshape.default, (indices, [-1]), {})
    found = partitioner.call(_aten.index_select.default, (ones, 0, flat), {})
    return found if len(shape) == 1 else partitioner.call(_aten.reshape.default, (found, shape), {})


def keep_local_rows(partitioner: Any, rows: Node, outside: Node, indices: Node, table: Any) -> Node:
    """Return the rows, with zeros for indexes of other devices."""
    nowhere = partitioner.call(_aten.logical_not.default, (looked_up(partitioner, indices, table.shape[0], rows),), {})
    return zeroed(partitioner, rows, partitioner.call(_aten.logical_or.default, (outside, nowhere), {}))


def zeroed(partitioner: Any, rows: Node, outside: Node) -> Node:
    """Return the rows, with zeros where the mask `outside` is set."""
    for _ in range(rows.meta["val"].ndim - outside.meta["val"].ndim):
        outside = partitioner.call(_aten.unsqueeze.default, (outside, -1), {})
    return partitioner.call(_aten.masked_fill.Scalar, (rows, outside, 0), {})


@lowers("embedding")
def embedding(partitioner: Any, node: Node) -> Any:
    """Look up rows of a table (v, d) split along v: rows of other devices are zeros here, and the row is the sum over devices."""
    table, indices = partitioner.operands(node)[:2]
    axes = table.layout.dim_axes[0]
    if not axes or table.layout.partial:
        return None
    lies = Layout(tuple(tuple(axis for axis in axes_of_dim if axis not in table.layout.axes) for axes_of_dim in indices.layout.dim_axes))
    indices = partitioner.move(indices, lies)
    index, outside = local_positions(partitioner, indices.node, axes, table.node.meta["val"].shape[0])
    rows = partitioner.call(_aten.embedding.default, (table.node, index), {})
    local_rows = keep_local_rows(partitioner, rows, outside, indices.node, table)
    layout = Layout((*lies.dim_axes, table.layout.dim_axes[1]), tuple((axis, "sum") for axis in sorted(axes)))
    return partitioner.wrapped(local_rows, node, [layout])


@lowers("embedding_dense_backward")
def embedding_gradient(partitioner: Any, node: Node) -> Any:
    """The gradient of a table split along its rows: each device sums the gradients of its rows."""
    axes = required_rows(partitioner, node)
    if not axes:
        return None
    grad, indices = partitioner.operands(node)[:2]
    grad = partitioner.move(
        grad, Layout(tuple(tuple(axis for axis in axes_of_dim if axis not in axes) for axes_of_dim in grad.layout.dim_axes))
    )
    indices = partitioner.move(indices, Layout(grad.layout.dim_axes[:-1]))
    count, padding, by_frequency = arguments(node)[2:5]
    if by_frequency:
        return None
    rows = count // partitioner.mesh.product(axes)
    index, outside = local_positions(partitioner, indices.node, axes, rows)
    local_rows = zeroed(partitioner, grad.node, outside)
    result = partitioner.call(_aten.embedding_dense_backward.default, (local_rows, index, rows, -1, False), {})
    terms = tuple((axis, "sum") for axes_of_dim in grad.layout.dim_axes[:-1] for axis in axes_of_dim)
    if padding >= 0:
        return None
    return partitioner.wrapped(result, node, [Layout((axes, grad.layout.dim_axes[-1]), tuple(sorted(terms)))])


def required_rows(partitioner: Any, node: Node) -> Axes:
    """Return the axes along which the user of a gradient requests its rows split."""
    layout = partitioner.layout_of(node)
    return layout.dim_axes[0] if layout is not None else ()




@lowers("index_select")
def rows_taken(partitioner: Any, node: Node) -> Any:
    """Select rows (n) of a table (v, ..) split along v, like an embedding."""
    table, indices = partitioner.operands(node)[:2]
    axes = table.layout.dim_axes[0] if table.layout.dim_axes else ()
    if not axes or table.layout.partial or arguments(node)[1] != 0:
        return None
    indices = partitioner.move(
        indices, Layout(tuple(
            tuple(axis for axis in axes_of_dim if axis not in table.layout.axes) for axes_of_dim in indices.layout.dim_axes))
    )
    index, outside = local_positions(partitioner, indices.node, axes, table.node.meta["val"].shape[0])
    rows = partitioner.call(_aten.index_select.default, (table.node, 0, index), {})
    local_rows = keep_local_rows(partitioner, rows, outside, indices.node, table)
    layout = Layout((*indices.layout.dim_axes, *table.layout.dim_axes[1:]), tuple((axis, "sum") for axis in sorted(axes)))
    return partitioner.wrapped(local_rows, node, [layout])


@lowers("new_zeros", "new_ones", "new_full", "new_empty")
def new_full(partitioner: Any, node: Node) -> Any:
    """An operator that reads only the dtype of another value."""
    x, (_, shape, *rest) = partitioner.operands(node)[0], arguments(node)
    if tuple(shape) == x.shape or x.layout.is_unsplit:
        return None
    number = {"new_ones": 1, "new_full": rest[0] if rest else 0}.get(node.target._opname, 0)  # type: ignore[union-attr]
    val = node.meta["val"]
    result = partitioner.call(_aten.full.default, (list(shape), number), {"dtype": val.dtype, "device": val.device}, node)
    return partitioner.wrapped(result, node, [Layout(((),) * len(shape))])


_ZEROS = frozenset({"new_zeros", "zeros", "zeros_like"})


@lowers("index_add")
def rows_added(partitioner: Any, node: Node) -> Any:
    """Add rows (n, d) to a table of zeros (v, d): each device adds those in its part."""
    node_arguments = arguments(node)
    zeros, axis = node_arguments[0], node_arguments[1]
    if getattr(zeros.target, "_opname", "") not in _ZEROS or axis != 0 or len(node_arguments) > 4 or node.kwargs:
        return None
    table, indices, source = partitioner.operands(node)[:3]
    axes = required_rows(partitioner, node)
    source = partitioner.move(
        source, Layout(tuple(tuple(axis for axis in axes_of_dim if axis not in axes) for axes_of_dim in source.layout.dim_axes))
    )
    indices = partitioner.move(indices, Layout(source.layout.dim_axes[:1]))
    index, rows, source_node = indices.node, table.shape[0], source.node
    if axes:
        rows //= partitioner.mesh.product(axes)
        index, outside = local_positions(partitioner, indices.node, axes, rows)
        source_node = zeroed(partitioner, source_node, outside)
    shape = [rows, *source.layout.local(partitioner.mesh, source.shape)[1:]]
    empty = partitioner.call(_aten.full.default, (shape, 0), {"dtype": table.dtype, "device": table.node.meta["val"].device})
    result = partitioner.call(_aten.index_add.default, (empty, 0, index, source_node), {})
    terms = tuple((axis, "sum") for axis in sorted(source.layout.dim_axes[0]))
    return partitioner.wrapped(result, node, [Layout((axes, *source.layout.dim_axes[1:]), terms)])
