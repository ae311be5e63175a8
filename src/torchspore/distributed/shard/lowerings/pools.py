"""Pooling over split depths, heights and widths: if windows overlap the parts, each device receives the borders of its neighbours."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.distributed.shard.lowerings.windows import Side, each_of, extended, returned, sides, without_edges
from torchspore.engine.split_layouts.device_layout import Layout, unsplit

_aten = torch.ops.aten


def _pooled(partitioner: Any, x: Any, out: tuple[int, ...], rest: tuple[Any, ...], count: int = 2) -> list[Side] | None:
    """Return the split dimensions of a pooling of `count` dimensions; None if no dimension is split, or if its parts are not equal."""
    window, step, edge, spacing = (each_of(setting, count) for setting in rest)
    if len(x.shape) != count + 2 or x.layout.partial or not any(x.layout.dim_axes[2:]):
        return None
    return sides(partitioner, x, out, window, step or window, edge, spacing)


def _overlaps(found_sides: list[Side]) -> bool:
    """Return whether windows reach beyond a part."""
    return any(side.before or side.behind for side in found_sides)


def _pool_settings(arguments_: Any, first: int) -> tuple[Any, ...]:
    """Return the kernel size, stride, padding and dilation of a pooling call, with defaults for omitted arguments."""
    given_settings = list(arguments_[first:first + 4])
    defaults: list[Any] = [None, [], [0], [1]]
    settings = [*given_settings, *defaults[len(given_settings):]]
    return (settings[0], settings[1] or settings[0], settings[2], settings[3])


def _on_parts(settings: tuple[Any, ...], found_sides: list[Side], count: int = 2) -> tuple[Any, ...]:
    """Return the settings of the call on parts, which contain the borders already."""
    return (*settings[:2], without_edges(each_of(settings[2], count), found_sides), *settings[3:])


# ---- the greatest

def _bordered(partitioner: Any, x: Any, found_sides: list[Side]) -> Node:
    """Return this device's part between its borders; beyond the full value the border is -inf."""
    bordered = extended(partitioner, x.node, found_sides)
    for side in found_sides:
        if side.before or side.behind:
            bordered = partitioner.call(_aten.masked_fill.Scalar, (bordered, _beyond(partitioner, x, bordered, side), _least(x.dtype)), {})
    return bordered


def _beyond(partitioner: Any, x: Any, part: Node, side: Side) -> Node:
    """Return a mask of the positions in a part with borders that no device has, in a shape that broadcasts over the other dimensions."""
    size = x.shape[side.dim]
    local_size = size // partitioner.mesh.product(side.axes)
    local = partitioner.call(_aten.arange.start, (-side.before, local_size + side.behind), {"device": part.meta["val"].device})
    start = partitioner.call(nodes.position, (side.axes, local_size, partitioner.mesh), {})
    at = partitioner.call(_aten.add.Tensor, (local, start), {}, val=local.meta["val"])
    outside = partitioner.call(_aten.logical_or.default, (
        partitioner.call(_aten.lt.Scalar, (at, 0), {}), partitioner.call(_aten.ge.Scalar, (at, size), {}),
    ), {})
    viewed: Node = partitioner.call(_aten.view.default, (outside, [-1 if dim == side.dim else 1 for dim in range(4)]), {})
    return viewed


def _least(dtype: torch.dtype) -> float | int:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


@lowers("max_pool2d_with_indices")
def max_pool(partitioner: Any, node: Node) -> Any:
    """Pool this device's part and the borders; the positions of the greatest values are those in the full value."""
    x = partitioner.operands(node)[0]
    settings = _pool_settings(arguments(node), 1)
    ceils = len(arguments(node)) > 5 and arguments(node)[5]
    out = tuple(node.meta["val"][0].shape)
    found_sides = None if ceils else _pooled(partitioner, x, out, settings)
    if found_sides is None:
        return None
    part = _bordered(partitioner, x, found_sides)
    result = partitioner.call(_aten.max_pool2d_with_indices.default, (part, *_on_parts(settings, found_sides)), {})
    index = _to_full_index(partitioner, x, partitioner.item(result, 1), part.meta["val"].shape[3], found_sides)
    return [partitioner.value(result_node, x.layout, out) for result_node in (partitioner.item(result, 0), index)]


def _to_full_index(partitioner: Any, x: Any, index: Node, width: int, found_sides: list[Side]) -> Node:
    """Convert positions in a part of this width, borders included, to positions in the full value."""
    row = partitioner.call(_aten.floor_divide.default, (index, width), {})
    column = partitioner.call(_aten.sub.Tensor, (index, partitioner.call(_aten.mul.Scalar, (row, width), {})), {})
    for side in found_sides:
        start = partitioner.call(
            nodes.position, (side.axes, x.shape[side.dim] // partitioner.mesh.product(side.axes), partitioner.mesh), {}
        )
        moved = partitioner.call(_aten.add.Tensor, (row if side.dim == 2 else column, start), {}, val=index.meta["val"])
        if side.before:
            moved = partitioner.call(_aten.sub.Tensor, (moved, side.before), {})
        row, column = (moved, column) if side.dim == 2 else (row, moved)
    full_index: Node = partitioner.call(_aten.add.Tensor, (partitioner.call(_aten.mul.Scalar, (row, x.shape[3]), {}), column), {})
    return full_index


@lowers("max_pool2d_with_indices_backward")
def max_pool_gradient(partitioner: Any, node: Node) -> Any:
    """The gradient on each device: it finds the maxima of its part again; gradients of borders go back to the neighbours."""
    grad, x = partitioner.operands(node)[:2]
    settings, ceils = _pool_settings(arguments(node), 2), arguments(node)[6]
    found_sides = None if ceils else _pooled(partitioner, x, grad.shape, settings)
    if found_sides is None:
        return None
    grad, part, settings = partitioner.move(grad, x.layout), _bordered(partitioner, x, found_sides), _on_parts(settings, found_sides)
    pooled_again = partitioner.call(_aten.max_pool2d_with_indices.default, (part, *settings), {})
    gradient_arguments = (grad.node, part, *settings, False, partitioner.item(pooled_again, 1))
    result = partitioner.call(_aten.max_pool2d_with_indices_backward.default, gradient_arguments, {})
    return partitioner.wrapped(returned(partitioner, result, found_sides), node, [x.layout])


# ---- the mean

def _more(arguments_: Any, first: int) -> tuple[bool, bool, Any]:
    """Return (whether a mean's lengths are rounded up, whether it counts values beyond the edges, its divisor or None)."""
    given_settings = tuple(arguments_[first:])
    return (*given_settings, *(False, True, None)[len(given_settings):])


@lowers("avg_pool2d", "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward")
def average_pool(partitioner: Any, node: Node) -> Any:
    """Mean pooling: each device pools its part and the borders; zeros beyond the full value add nothing, and count if the call says so."""
    name = node.target._opname  # type: ignore[union-attr]
    is_gradient, count = name.endswith("backward"), 3 if "3d" in name else 2
    pool = getattr(_aten, name.removesuffix("_backward"))
    operands, first = partitioner.operands(node), 2 if is_gradient else 1
    x, node_arguments = operands[-1], arguments(node)
    settings = (*_pool_settings(node_arguments[:first + 3], first)[:3], [1])
    ceils, counts_edges, divisor = _more(node_arguments, first + 3)
    out = operands[0].shape if is_gradient else tuple(node.meta["val"].shape)
    found_sides = None if ceils else _pooled(partitioner, x, out, settings, count)
    if found_sides is None:
        return None
    numbers = None
    if _overlaps(found_sides) and any(settings[2]) and not counts_edges and divisor is None:
        numbers, divisor = _numbers(partitioner, x, settings[:3], pool), 1
    part_settings = (*_on_parts(settings, found_sides, count)[:3], False, counts_edges or _overlaps(found_sides), divisor)
    if not is_gradient:
        result = partitioner.call(pool.default, (extended(partitioner, x.node, found_sides), *part_settings), {})
        return partitioner.wrapped(_divided(partitioner, result, numbers), node, [x.layout])
    grad = _divided(partitioner, partitioner.move(operands[0], x.layout).node, numbers)
    shape = list(x.layout.local(partitioner.mesh, x.shape))
    for side in found_sides:
        shape[side.dim] += side.before + side.behind
    blank = partitioner.call(_aten.new_empty.default, (grad, shape), {})       # only its shape counts
    result = partitioner.call(node.target, (grad, blank, *part_settings), {})
    return partitioner.wrapped(returned(partitioner, result, found_sides), node, [x.layout])


def _numbers(partitioner: Any, x: Any, settings: tuple[Any, ...], pool: Any) -> Node:
    """Return how many positions of the full value each window of this device's part contains."""
    ones = partitioner.call(_aten.full.default, ([1, 1, *x.shape[2:]], 1), {"dtype": x.dtype, "device": x.node.meta["val"].device})
    counts = partitioner.call(pool.default, (ones, *settings, False, True, 1), {})
    value = partitioner.value(counts, unsplit(len(x.shape)), counts.meta["val"].shape)
    node: Node = partitioner.move(value, Layout(((), (), *x.layout.dim_axes[2:]))).node
    return node


def _divided(partitioner: Any, x: Node, numbers: Node | None) -> Node:
    mean: Node = x if numbers is None else partitioner.call(_aten.div.Tensor, (x, numbers), {})
    return mean
