"""Pooling over heights and widths that are cut: where windows overlap the parts, each device is given the borders of its neighbours."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.distributed.shard.lowerings.windows import Side, each_of, extended, returned, sides, without_edges
from torchspore.engine.core.device_layout import Layout, unsplit

_aten = torch.ops.aten


def _pooled(to: Any, x: Any, out: tuple[int, ...], rest: tuple[Any, ...]) -> list[Side] | None:
    """The sides of a pooling that are cut; None where none is, or where its parts are not equal."""
    window, step, edge, spacing = (each_of(setting, 2) for setting in rest)
    if len(x.shape) != 4 or x.layout.partial or not any(x.layout.cuts[2:]):
        return None
    return sides(to, x, out, window, step or window, edge, spacing)


def _overlaps(found_sides: list[Side]) -> bool:
    """Return whether windows reach beyond a part."""
    return any(side.before or side.behind for side in found_sides)


def _pool_settings(arguments_: Any, first: int) -> tuple[Any, ...]:
    """The window, step, edge and spacing of a pooling's call, with what it leaves out."""
    given_settings = list(arguments_[first:first + 4])
    defaults: list[Any] = [None, [], [0, 0], [1, 1]]
    settings = [*given_settings, *defaults[len(given_settings):]]
    return (settings[0], settings[1] or settings[0], settings[2], settings[3])


def _on_parts(settings: tuple[Any, ...], found_sides: list[Side]) -> tuple[Any, ...]:
    """The settings of the call on parts: the borders are there already."""
    return (*settings[:2], without_edges(each_of(settings[2], 2), found_sides), *settings[3:])


# ---- the greatest

def _bordered(to: Any, x: Any, found_sides: list[Side]) -> Node:
    """The own part between its borders; what lies beyond the whole value is less than any number."""
    bordered = extended(to, x.node, found_sides)
    for side in found_sides:
        if side.before or side.behind:
            bordered = to.call(_aten.masked_fill.Scalar, (bordered, _beyond(to, x, bordered, side), _least(x.dtype)), {})
    return bordered


def _beyond(to: Any, x: Any, part: Node, side: Side) -> Node:
    """Which places of a part with borders no device has, in a shape that is broadcast over the other dimensions."""
    size = x.shape[side.dim]
    local_size = size // to.mesh.product(side.axes)
    local = to.call(_aten.arange.start, (-side.before, local_size + side.behind), {"device": part.meta["val"].device})
    start = to.call(nodes.position, (side.axes, local_size, to.mesh), {})
    at = to.call(_aten.add.Tensor, (local, start), {}, val=local.meta["val"])
    outside = to.call(_aten.logical_or.default, (
        to.call(_aten.lt.Scalar, (at, 0), {}), to.call(_aten.ge.Scalar, (at, size), {}),
    ), {})
    viewed: Node = to.call(_aten.view.default, (outside, [-1 if dim == side.dim else 1 for dim in range(4)]), {})
    return viewed


def _least(dtype: torch.dtype) -> float | int:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


@lowers("max_pool2d_with_indices")
def max_pool(to: Any, node: Node) -> Any:
    """Pool this device's part and the borders; the positions of the greatest values are those in the full value."""
    x = to.operands(node)[0]
    settings = _pool_settings(arguments(node), 1)
    ceils = len(arguments(node)) > 5 and arguments(node)[5]
    out = tuple(node.meta["val"][0].shape)
    found_sides = None if ceils else _pooled(to, x, out, settings)
    if found_sides is None:
        return None
    part = _bordered(to, x, found_sides)
    result = to.call(_aten.max_pool2d_with_indices.default, (part, *_on_parts(settings, found_sides)), {})
    index = _to_full_index(to, x, to.item(result, 1), part.meta["val"].shape[3], found_sides)
    return [to.value(result_node, x.layout, out) for result_node in (to.item(result, 0), index)]


def _to_full_index(to: Any, x: Any, index: Node, width: int, found_sides: list[Side]) -> Node:
    """Places in a part of this width, borders counted, as places of the whole value."""
    row = to.call(_aten.floor_divide.default, (index, width), {})
    column = to.call(_aten.sub.Tensor, (index, to.call(_aten.mul.Scalar, (row, width), {})), {})
    for side in found_sides:
        start = to.call(nodes.position, (side.axes, x.shape[side.dim] // to.mesh.product(side.axes), to.mesh), {})
        moved = to.call(_aten.add.Tensor, (row if side.dim == 2 else column, start), {}, val=index.meta["val"])
        if side.before:
            moved = to.call(_aten.sub.Tensor, (moved, side.before), {})
        row, column = (moved, column) if side.dim == 2 else (row, moved)
    full_index: Node = to.call(_aten.add.Tensor, (to.call(_aten.mul.Scalar, (row, x.shape[3]), {}), column), {})
    return full_index


@lowers("max_pool2d_with_indices_backward")
def max_pool_gradient(to: Any, node: Node) -> Any:
    """On each device, which finds again where the greatest of its own part lie; that of borders goes back to the neighbours."""
    grad, x = to.operands(node)[:2]
    settings, ceils = _pool_settings(arguments(node), 2), arguments(node)[6]
    found_sides = None if ceils else _pooled(to, x, grad.shape, settings)
    if found_sides is None:
        return None
    grad, part, settings = to.move(grad, x.layout), _bordered(to, x, found_sides), _on_parts(settings, found_sides)
    pooled_again = to.call(_aten.max_pool2d_with_indices.default, (part, *settings), {})
    gradient_arguments = (grad.node, part, *settings, False, to.item(pooled_again, 1))
    result = to.call(_aten.max_pool2d_with_indices_backward.default, gradient_arguments, {})
    return to.wrapped(returned(to, result, found_sides), node, [x.layout])


# ---- the mean

def _more(arguments_: Any, first: int) -> tuple[bool, bool, Any]:
    """Return (whether a mean's lengths are rounded up, whether it counts values beyond the edges, its divisor or None)."""
    given_settings = tuple(arguments_[first:])
    return (*given_settings, *(False, True, None)[len(given_settings):])


@lowers("avg_pool2d", "avg_pool2d_backward")
def average_pool(to: Any, node: Node) -> Any:
    """Each device over its own part and the borders; zeros beyond the whole value add nothing, and are counted where the call says so."""
    is_gradient = node.target._opname.endswith("backward")  # type: ignore[union-attr]
    operands, first = to.operands(node), 2 if is_gradient else 1
    x, node_arguments = operands[-1], arguments(node)
    settings = (*_pool_settings(node_arguments[:first + 3], first)[:3], [1, 1])
    ceils, counts_edges, divisor = _more(node_arguments, first + 3)
    out = operands[0].shape if is_gradient else tuple(node.meta["val"].shape)
    found_sides = None if ceils else _pooled(to, x, out, settings)
    if found_sides is None:
        return None
    numbers = None
    if _overlaps(found_sides) and any(settings[2]) and not counts_edges and divisor is None:
        numbers, divisor = _numbers(to, x, settings[:3]), 1
    part_settings = (*_on_parts(settings, found_sides)[:3], False, counts_edges or _overlaps(found_sides), divisor)
    if not is_gradient:
        result = to.call(_aten.avg_pool2d.default, (extended(to, x.node, found_sides), *part_settings), {})
        return to.wrapped(_divided(to, result, numbers), node, [x.layout])
    grad = _divided(to, to.move(operands[0], x.layout).node, numbers)
    shape = list(x.layout.local(to.mesh, x.shape))
    for side in found_sides:
        shape[side.dim] += side.before + side.behind
    blank = to.call(_aten.new_empty.default, (grad, shape), {})       # only its shape counts
    result = to.call(_aten.avg_pool2d_backward.default, (grad, blank, *part_settings), {})
    return to.wrapped(returned(to, result, found_sides), node, [x.layout])


def _numbers(to: Any, x: Any, settings: tuple[Any, ...]) -> Node:
    """How many places of the whole value each window sees, of the own part of the windows."""
    ones = to.call(_aten.full.default, ([1, 1, *x.shape[2:]], 1), {"dtype": x.dtype, "device": x.node.meta["val"].device})
    counts = to.call(_aten.avg_pool2d.default, (ones, *settings, False, True, 1), {})
    value = to.value(counts, unsplit(4), counts.meta["val"].shape)
    node: Node = to.move(value, Layout(((), (), *x.layout.cuts[2:]))).node
    return node


def _divided(to: Any, x: Node, numbers: Node | None) -> Node:
    mean: Node = x if numbers is None else to.call(_aten.div.Tensor, (x, numbers), {})
    return mean
