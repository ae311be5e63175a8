"""Pooling over heights and widths that are cut: where windows overlap the parts, each device is given the borders of its neighbours."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.distributed.shard.lowerings.windows import Side, each_of, extended, returned, sides, without_edges
from torchspore.engine.core.device_layout import Layout, whole

_aten = torch.ops.aten


def _pooled(to: Any, x: Any, out: tuple[int, ...], rest: tuple[Any, ...]) -> list[Side] | None:
    """The sides of a pooling that are cut; None where none is, or where its parts are not equal."""
    window, step, edge, spacing = (each_of(one, 2) for one in rest)
    if len(x.shape) != 4 or x.layout.partial or not any(x.layout.cuts[2:]):
        return None
    return sides(to, x, out, window, step or window, edge, spacing)


def _overlaps(found: list[Side]) -> bool:
    """Return whether windows reach beyond a part."""
    return any(side.before or side.behind for side in found)


def _pool_settings(given: Any, first: int) -> tuple[Any, ...]:
    """The window, step, edge and spacing of a pooling's call, with what it leaves out."""
    written = list(given[first:first + 4])
    defaults: list[Any] = [None, [], [0, 0], [1, 1]]
    found = [*written, *defaults[len(written):]]
    return (found[0], found[1] or found[0], found[2], found[3])


def _on_parts(settings: tuple[Any, ...], found: list[Side]) -> tuple[Any, ...]:
    """The settings of the call on parts: the borders are there already."""
    return (*settings[:2], without_edges(each_of(settings[2], 2), found), *settings[3:])


# ---- the greatest

def _bordered(to: Any, x: Any, found: list[Side]) -> Node:
    """The own part between its borders; what lies beyond the whole value is less than any number."""
    made = extended(to, x.node, found)
    for side in found:
        if side.before or side.behind:
            made = to.call(_aten.masked_fill.Scalar, (made, _beyond(to, x, made, side), _least(x.dtype)), {})
    return made


def _beyond(to: Any, x: Any, part: Node, side: Side) -> Node:
    """Which places of a part with borders no device has, in a shape that is broadcast over the other dimensions."""
    size = x.shape[side.dim]
    own = size // to.mesh.product(side.axes)
    local = to.call(_aten.arange.start, (-side.before, own + side.behind), {"device": part.meta["val"].device})
    start = to.call(nodes.position, (side.axes, own, to.mesh), {})
    at = to.call(_aten.add.Tensor, (local, start), {}, val=local.meta["val"])
    outside = to.call(_aten.logical_or.default, (
        to.call(_aten.lt.Scalar, (at, 0), {}), to.call(_aten.ge.Scalar, (at, size), {}),
    ), {})
    made: Node = to.call(_aten.view.default, (outside, [-1 if dim == side.dim else 1 for dim in range(4)]), {})
    return made


def _least(dtype: torch.dtype) -> float | int:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


@lowers("max_pool2d_with_indices")
def max_pool(to: Any, node: Node) -> Any:
    """Pool this device's part and the borders; the positions of the greatest values are those in the full value."""
    x = to.operands(node)[0]
    settings = _pool_settings(arguments(node), 1)
    ceils = len(arguments(node)) > 5 and arguments(node)[5]
    out = tuple(node.meta["val"][0].shape)
    found = None if ceils else _pooled(to, x, out, settings)
    if found is None:
        return None
    part = _bordered(to, x, found)
    made = to.call(_aten.max_pool2d_with_indices.default, (part, *_on_parts(settings, found)), {})
    place = _in_the_whole(to, x, to.item(made, 1), part.meta["val"].shape[3], found)
    return [to.value(one, x.layout, out) for one in (to.item(made, 0), place)]


def _in_the_whole(to: Any, x: Any, place: Node, width: int, found: list[Side]) -> Node:
    """Places in a part of this width, borders counted, as places of the whole value."""
    row = to.call(_aten.floor_divide.default, (place, width), {})
    column = to.call(_aten.sub.Tensor, (place, to.call(_aten.mul.Scalar, (row, width), {})), {})
    for side in found:
        start = to.call(nodes.position, (side.axes, x.shape[side.dim] // to.mesh.product(side.axes), to.mesh), {})
        moved = to.call(_aten.add.Tensor, (row if side.dim == 2 else column, start), {}, val=place.meta["val"])
        if side.before:
            moved = to.call(_aten.sub.Tensor, (moved, side.before), {})
        row, column = (moved, column) if side.dim == 2 else (row, moved)
    made: Node = to.call(_aten.add.Tensor, (to.call(_aten.mul.Scalar, (row, x.shape[3]), {}), column), {})
    return made


@lowers("max_pool2d_with_indices_backward")
def max_pool_gradient(to: Any, node: Node) -> Any:
    """On each device, which finds again where the greatest of its own part lie; that of borders goes back to the neighbours."""
    grad, x = to.operands(node)[:2]
    settings, ceils = _pool_settings(arguments(node), 2), arguments(node)[6]
    found = None if ceils else _pooled(to, x, grad.shape, settings)
    if found is None:
        return None
    grad, part, settings = to.move(grad, x.layout), _bordered(to, x, found), _on_parts(settings, found)
    again = to.call(_aten.max_pool2d_with_indices.default, (part, *settings), {})
    given = (grad.node, part, *settings, False, to.item(again, 1))
    made = to.call(_aten.max_pool2d_with_indices_backward.default, given, {})
    return to.wrapped(returned(to, made, found), node, [x.layout])


# ---- the mean

def _more(given: Any, first: int) -> tuple[bool, bool, Any]:
    """Return (whether a mean's lengths are rounded up, whether it counts values beyond the edges, its divisor or None)."""
    written = tuple(given[first:])
    return (*written, *(False, True, None)[len(written):])


@lowers("avg_pool2d", "avg_pool2d_backward")
def average_pool(to: Any, node: Node) -> Any:
    """Each device over its own part and the borders; zeros beyond the whole value add nothing, and are counted where the call says so."""
    is_gradient = node.target._opname.endswith("backward")  # type: ignore[union-attr]
    operands, first = to.operands(node), 2 if is_gradient else 1
    x, given = operands[-1], arguments(node)
    settings = (*_pool_settings(given[:first + 3], first)[:3], [1, 1])
    ceils, counts_edges, divisor = _more(given, first + 3)
    out = operands[0].shape if is_gradient else tuple(node.meta["val"].shape)
    found = None if ceils else _pooled(to, x, out, settings)
    if found is None:
        return None
    numbers = None
    if _overlaps(found) and any(settings[2]) and not counts_edges and divisor is None:
        numbers, divisor = _numbers(to, x, settings[:3]), 1
    own = (*_on_parts(settings, found)[:3], False, counts_edges or _overlaps(found), divisor)
    if not is_gradient:
        made = to.call(_aten.avg_pool2d.default, (extended(to, x.node, found), *own), {})
        return to.wrapped(_divided(to, made, numbers), node, [x.layout])
    grad = _divided(to, to.move(operands[0], x.layout).node, numbers)
    shape = list(x.layout.local(to.mesh, x.shape))
    for side in found:
        shape[side.dim] += side.before + side.behind
    blank = to.call(_aten.new_empty.default, (grad, shape), {})       # only its shape counts
    made = to.call(_aten.avg_pool2d_backward.default, (grad, blank, *own), {})
    return to.wrapped(returned(to, made, found), node, [x.layout])


def _numbers(to: Any, x: Any, settings: tuple[Any, ...]) -> Node:
    """How many places of the whole value each window sees, of the own part of the windows."""
    ones = to.call(_aten.full.default, ([1, 1, *x.shape[2:]], 1), {"dtype": x.dtype, "device": x.node.meta["val"].device})
    made = to.call(_aten.avg_pool2d.default, (ones, *settings, False, True, 1), {})
    value = to.value(made, whole(4), made.meta["val"].shape)
    node: Node = to.move(value, Layout(((), (), *x.layout.cuts[2:]))).node
    return node


def _divided(to: Any, x: Node, numbers: Node | None) -> Node:
    made: Node = x if numbers is None else to.call(_aten.div.Tensor, (x, numbers), {})
    return made
