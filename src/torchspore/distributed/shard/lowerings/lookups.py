"""Lookups by indexes with several axes, and their gradients (`multi_axis_lookups`): each device joins the axes of its part."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.distributed.shard.lowerings.row_tables import keep_local_rows, local_positions, required_rows, zeroed
from torchspore.engine.split_layouts.device_layout import Axes, Layout

_aten = torch.ops.aten


def _without(cuts: tuple[Axes, ...], used: Any) -> tuple[Axes, ...]:
    return tuple(tuple(axis for axis in axes if axis not in used) for axes in cuts)


@lowers("look_up")
def look_up(partitioner: Any, node: Node) -> Any:
    """Look up slices of a table, which may be split along every axis; along the axis of the lookup only if that is the first."""
    (x, index), dim = partitioner.operands(node)[:2], arguments(node)[1]
    cuts = tuple(axes if at != dim or dim == 0 else () for at, axes in enumerate(x.layout.dim_axes))
    x = partitioner.move(x, Layout(cuts))
    index = partitioner.move(index, Layout(_without(index.layout.dim_axes, x.layout.axes)))
    local, axes = x.node.meta["val"], cuts[dim]
    flat = partitioner.call(_aten.reshape.default, (index.node, [-1]), {})
    at, outside = local_positions(partitioner, flat, axes, local.shape[0]) if axes else (flat, None)
    rows = partitioner.call(_aten.index_select.default, (x.node, dim, at), {})
    if outside is not None:
        rows = keep_local_rows(partitioner, rows, outside, flat, x)
    shape = [*local.shape[:dim], *index.node.meta["val"].shape, *local.shape[dim + 1:]]
    result = partitioner.call(_aten.reshape.default, (rows, shape), {})
    terms = tuple((axis, "sum") for axis in sorted(axes))
    return partitioner.wrapped(result, node, [Layout((*cuts[:dim], *index.layout.dim_axes, *cuts[dim + 1:]), terms)])


@lowers("add_rows")
def add_rows(partitioner: Any, node: Node) -> Any:
    """Add slices to a table of zeros: each device adds its slices, and the table is the sum over devices."""
    (source, index), (_, dim, _, length) = partitioner.operands(node)[:2], arguments(node)
    axes = required_rows(partitioner, node) if dim == 0 else ()
    source = partitioner.move(source, Layout(_without(source.layout.dim_axes, axes)))
    count = len(index.shape)
    index = partitioner.move(index, Layout(source.layout.dim_axes[dim:dim + count]))
    local = source.node.meta["val"]
    before, behind = list(local.shape[:dim]), list(local.shape[dim + count:])
    joined = partitioner.call(_aten.reshape.default, (source.node, [*before, math.prod(local.shape[dim:dim + count]), *behind]), {})
    flat = partitioner.call(_aten.reshape.default, (index.node, [-1]), {})
    rows = length // partitioner.mesh.product(axes)
    if axes:
        flat, outside = local_positions(partitioner, flat, axes, rows)
        joined = zeroed(partitioner, joined, outside)
    zeros = partitioner.call(_aten.full.default, ([*before, rows, *behind], 0), {"dtype": source.dtype, "device": local.device})
    result = partitioner.call(_aten.index_add.default, (zeros, dim, flat, joined), {})
    terms = tuple((axis, "sum") for axis in sorted(axis for part in index.layout.dim_axes for axis in part))
    cuts = source.layout.dim_axes
    return partitioner.wrapped(result, node, [Layout((*cuts[:dim], axes, *cuts[dim + count:]), terms)])
