"""Convolutions and pooling over heights and widths that are cut: each device is given the borders of its neighbours."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.shard import collective_nodes as nodes
from torchspore.engine.shard.layout import Axes, Layout
from torchspore.engine.shard.lowerings.table import arguments, lowers

_aten = torch.ops.aten


@dataclass(frozen=True)
class Side:
    """One dimension that is cut: how many places before and behind the own part the windows reach."""

    dim: int
    axes: Axes
    before: int
    behind: int


def sides(
    to: Any, x: Any, out: tuple[int, ...], window: list[int], step: list[int], edge: list[int], spacing: list[int],
) -> list[Side] | None:
    """The dimensions behind the second that are cut; None where the parts of the result would not be equal, or windows reach too far."""
    found = []
    for at in range(len(window)):
        dim, axes = at + 2, x.layout.cuts[at + 2]
        if not axes:
            continue
        count = to.mesh.product(axes)
        own, reach = x.shape[dim] // count, (window[at] - 1) * spacing[at] + 1
        behind = reach - step[at] - edge[at]
        if out[dim] % count or out[dim] // count * step[at] != own or edge[at] >= reach or max(edge[at], behind) > own:
            why = f"{x.shape[dim]} places in {count} parts give no equal parts of {out[dim]}, or windows reach too far"
            to.placed[-1].why = f"{why}: they are gathered"
            return None
        found.append(Side(dim, axes, edge[at], max(0, behind)))
    return found


def sides_of_wider(
    to: Any, x: Any, out: tuple[int, ...], window: list[int], step: list[int], edge: list[int], spacing: list[int],
) -> list[Side] | None:
    """The same of a transposed convolution: how far what a part computes reaches beyond that part of the result."""
    found = []
    for at in range(len(window)):
        dim, axes = at + 2, x.layout.cuts[at + 2]
        if not axes:
            continue
        count = to.mesh.product(axes)
        behind = (window[at] - 1) * spacing[at] + 1 - step[at] - edge[at]
        if out[dim] != x.shape[dim] * step[at] or behind < 0 or max(edge[at], behind) > out[dim] // count:
            to.placed[-1].why = f"{x.shape[dim]} places in {count} parts give no equal parts of {out[dim]}: they are gathered"
            return None
        found.append(Side(dim, axes, edge[at], behind))
    return found


def extended(to: Any, x: Node, found: list[Side]) -> Node:
    """The own part with the borders of the neighbours around it; zeros where there is none."""
    for side in found:
        if side.before or side.behind:
            to.noted("borders", x, side.axes, side.dim, side.before + side.behind)
            x = to.call(nodes.borders, (x, side.axes, side.dim, side.before, side.behind, to.mesh), {})
    return x


def _returned(to: Any, grad: Node, found: list[Side]) -> Node:
    """The way back: what was computed of borders is added where they came from."""
    for side in reversed(found):
        if side.before or side.behind:
            to.noted("borders", grad, side.axes, side.dim, side.before + side.behind)
            grad = to.call(nodes.borders_sum, (grad, side.axes, side.dim, side.before, side.behind, to.mesh), {})
    return grad


def _without_edges(edge: list[int], found: list[Side]) -> list[int]:
    """The padding of the call on parts: the borders are there already."""
    cut = {side.dim - 2 for side in found}
    return [0 if at in cut else one for at, one in enumerate(edge)]


def _each(value: Any, count: int) -> list[int]:
    return list(value) if len(value) == count else list(value) * count


@dataclass(frozen=True)
class _Window:
    """How the parts of a convolution lie."""

    sides: list[Side]
    rows: Axes
    before: Axes
    after: Axes
    places: tuple[Axes, ...]
    transposed: bool

    @property
    def weight(self) -> Layout:
        """The layout of the kernel, whose window is whole."""
        channels = (self.before, self.after) if self.transposed else (self.after, self.before)
        return Layout((*channels, *((),) * len(self.places)))

    def settings(self, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Those of the call on parts: the borders are there already."""
        padding, more = (_without_edges(_each(one, len(self.places)), self.sides) for one in (rest[1], rest[4]))
        return (rest[0], padding, *rest[2:4], more, rest[5])


def _window(to: Any, x: Any, weight: Any, out: tuple[int, ...], rest: tuple[Any, ...]) -> _Window | None:
    stride, padding, dilation, transposed, _, groups = rest
    count = len(x.shape) - 2
    if x.layout.partial or weight.layout.partial or not any(x.layout.cuts[2:]) or (groups != 1 and x.layout.cuts[1]):
        return None
    settings = (_each(one, count) for one in (stride, padding, dilation))
    found = (sides_of_wider if transposed else sides)(to, x, out, list(weight.shape[2:]), *settings)
    if found is None:
        return None
    after = tuple(axis for axis in weight.layout.cuts[1 if transposed else 0] if axis not in x.layout.axes) if groups == 1 else ()
    return _Window(found, x.layout.cuts[0], x.layout.cuts[1], after, x.layout.cuts[2:], transposed)


@lowers("convolution")
def convolution(to: Any, node: Node) -> Any:
    """On each device over its part and the borders of the neighbours; a transposed one gives the neighbours what it computed for them."""
    operands, rest = to.operands(node), tuple(arguments(node)[3:])
    x, weight = operands[:2]
    window = _window(to, x, weight, tuple(node.meta["val"].shape), rest)
    if window is None:
        return None
    weight = to.move(weight, window.weight)
    bias = None
    if len(operands) > 2:
        bias = to.move(operands[2], Layout((window.after,))).node
        if window.before:                      # each device adds its share
            bias = to.call(_aten.mul.Tensor, (bias, 1 / to.mesh.product(window.before)), {})
    if window.transposed:                      # the summand after the borders, which would get it twice
        made = to.call(_aten.convolution.default, (x.node, weight.node, None, *window.settings(rest)), {})
        made = _returned(to, made, window.sides)
        if bias is not None:
            made = to.call(_aten.add.Tensor, (made, to.call(_aten.view.default, (bias, [1, -1, *[1] * len(window.places)]), {})), {})
    else:
        made = to.call(_aten.convolution.default, (extended(to, x.node, window.sides), weight.node, bias, *window.settings(rest)), {})
    terms = tuple((axis, "sum") for axis in sorted(window.before))
    return to.wrapped(made, node, [Layout((window.rows, window.after, *window.places), terms)])


@lowers("convolution_backward")
def convolution_gradient(to: Any, node: Node) -> Any:
    """The gradient of the borders goes back to the neighbours; those of the kernel are sums over all parts."""
    grad, x, weight = to.operands(node)[:3]
    _, *rest, mask = arguments(node)[3:]
    window = _window(to, x, weight, grad.shape, tuple(rest))
    if window is None:
        return None
    grad = to.move(grad, Layout((window.rows, window.after, *window.places)))
    weight = to.move(weight, window.weight)
    edges = (grad.node, x.node)
    edges = (extended(to, edges[0], window.sides), edges[1]) if window.transposed else (edges[0], extended(to, edges[1], window.sides))
    given = (*edges, weight.node, None, *window.settings(tuple(rest)), [*mask[:2], False])
    made = to.call(_aten.convolution_backward.default, given, {})
    own = tuple((axis, "sum") for axis in sorted(window.after))
    every = tuple((axis, "sum") for axis in sorted((*window.rows, *(axis for axes in window.places for axis in axes))))
    found: list[Any] = [None, None, None]
    if mask[0]:
        back = to.item(made, 0) if window.transposed else _returned(to, to.item(made, 0), window.sides)
        found[0] = to.value(back, Layout(x.layout.cuts, own), x.shape)
    if mask[1]:
        found[1] = to.value(to.item(made, 1), Layout(weight.layout.cuts, every), weight.shape)
    if mask[2]:
        total = to.call(_aten.sum.dim_IntList, (grad.node, [0, *range(2, len(grad.shape))]), {})
        found[2] = to.value(total, Layout((window.after,), every), grad.shape[1:2])
    return found


def _pooled(to: Any, node: Node, x: Any, out: tuple[int, ...], rest: tuple[Any, ...]) -> list[Side] | None:
    """The sides of a pooling whose windows do not overlap the parts; None for any other."""
    window, step, edge, spacing = (_each(one, 2) for one in rest)
    if len(x.shape) != 4 or x.layout.partial or not any(x.layout.cuts[2:]):
        return None
    found = sides(to, x, out, window, step or window, edge, spacing)
    return None if found is None or any(side.before or side.behind for side in found) else found


def _pool_settings(given: Any, first: int) -> tuple[Any, ...]:
    """The window, step, edge and spacing of a pooling's call, with what it leaves out."""
    written = list(given[first:first + 4])
    defaults: list[Any] = [None, [], [0, 0], [1, 1]]
    found = [*written, *defaults[len(written):]]
    return (found[0], found[1] or found[0], found[2], found[3])


@lowers("max_pool2d_with_indices")
def max_pool(to: Any, node: Node) -> Any:
    """Each device over its own part; where the greatest lie is told in places of the whole."""
    x = to.operands(node)[0]
    settings = _pool_settings(arguments(node), 1)
    ceils = len(arguments(node)) > 5 and arguments(node)[5]
    out = tuple(node.meta["val"][0].shape)
    found = None if ceils else _pooled(to, node, x, out, settings)
    if found is None:
        return None
    made = to.call(_aten.max_pool2d_with_indices.default, (x.node, *settings), {})
    place, width = to.item(made, 1), x.layout.local(to.mesh, x.shape)[3]
    row = to.call(_aten.floor_divide.default, (place, width), {})
    column = to.call(_aten.sub.Tensor, (place, to.call(_aten.mul.Scalar, (row, width), {})), {})
    parts = x.layout.local(to.mesh, x.shape)
    for dim, axes in ((2, x.layout.cuts[2]), (3, x.layout.cuts[3])):
        if axes:
            start = to.call(nodes.position, (axes, parts[dim], to.mesh), {})
            moved = to.call(_aten.add.Tensor, (row if dim == 2 else column, start), {}, val=place.meta["val"])
            row, column = (moved, column) if dim == 2 else (row, moved)
    place = to.call(_aten.add.Tensor, (to.call(_aten.mul.Scalar, (row, x.shape[3]), {}), column), {})
    return [to.value(one, x.layout, out) for one in (to.item(made, 0), place)]


@lowers("max_pool2d_with_indices_backward")
def max_pool_gradient(to: Any, node: Node) -> Any:
    """On each device, which finds again where the greatest of its own part lie."""
    x = to.operands(node)[1]
    settings, ceils = _pool_settings(arguments(node), 2), arguments(node)[6]
    grad = to.operands(node)[0]
    if ceils or _pooled(to, node, x, grad.shape, settings) is None:
        return None
    grad = to.move(grad, x.layout)
    again = to.call(_aten.max_pool2d_with_indices.default, (x.node, *settings), {})
    given = (grad.node, x.node, *settings, False, to.item(again, 1))
    return to.wrapped(to.call(_aten.max_pool2d_with_indices_backward.default, given, {}), node, [x.layout])


@lowers("avg_pool2d", "avg_pool2d_backward")
def average_pool(to: Any, node: Node) -> Any:
    """Each device over its own part, where windows do not reach beyond it."""
    is_gradient = node.target._opname.endswith("backward")  # type: ignore[union-attr]
    operands, first = to.operands(node), 2 if is_gradient else 1
    x, given = operands[-1], arguments(node)
    settings = (*_pool_settings(given[:first + 3], first)[:3], [1, 1])
    ceils = len(given) > first + 3 and given[first + 3]
    out = operands[0].shape if is_gradient else tuple(node.meta["val"].shape)
    if ceils or _pooled(to, node, x, out, settings) is None:
        return None
    inputs = (to.move(operands[0], x.layout).node, x.node) if is_gradient else (x.node,)
    made = to.call(node.target, (*inputs, *settings[:3], *given[first + 3:]), {})
    return to.wrapped(made, node, [x.layout])
