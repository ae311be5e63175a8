"""Convolutions over split heights and widths: each device receives the borders of its neighbours."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.split_layouts.device_layout import Axes, Layout

_aten = torch.ops.aten


@dataclass(frozen=True)
class Side:
    """A split dimension, with how many positions before and after the part the windows reach."""

    dim: int
    axes: Axes
    before: int
    behind: int


def sides(
    partitioner: Any, x: Any, out: tuple[int, ...], window: list[int], step: list[int], edge: list[int], spacing: list[int],
) -> list[Side] | None:
    """Return the split dimensions after the second; None if the parts of the result would differ, or if windows reach too far."""
    found_sides = []
    for at in range(len(window)):
        dim, axes = at + 2, x.layout.dim_axes[at + 2]
        if not axes:
            continue
        count = partitioner.mesh.product(axes)
        local_size, reach = x.shape[dim] // count, (window[at] - 1) * spacing[at] + 1
        behind = reach - step[at] - edge[at]
        if out[dim] % count or out[dim] // count * step[at] != local_size or edge[at] >= reach or max(edge[at], behind) > local_size:
            why = f"{x.shape[dim]} positions in {count} parts do not give equal parts of {out[dim]}, or windows reach too far"
            partitioner.split_operators[-1].why = f"{why}: they are gathered"
            return None
        found_sides.append(Side(dim, axes, edge[at], max(0, behind)))
    return found_sides


def sides_of_wider(
    partitioner: Any, x: Any, out: tuple[int, ...], window: list[int], step: list[int], edge: list[int], spacing: list[int],
) -> list[Side] | None:
    """The same for a transposed convolution: how far the result of a part extends beyond that part of the result."""
    found_sides = []
    for at in range(len(window)):
        dim, axes = at + 2, x.layout.dim_axes[at + 2]
        if not axes:
            continue
        count = partitioner.mesh.product(axes)
        behind = (window[at] - 1) * spacing[at] + 1 - step[at] - edge[at]
        if out[dim] != x.shape[dim] * step[at] or behind < 0 or max(edge[at], behind) > out[dim] // count:
            partitioner.split_operators[
                -1
            ].why = f"{x.shape[dim]} positions in {count} parts do not give equal parts of {out[dim]}: they are gathered"
            return None
        found_sides.append(Side(dim, axes, edge[at], behind))
    return found_sides


def extended(partitioner: Any, x: Node, found_sides: list[Side]) -> Node:
    """Return the part extended by the borders of the neighbours, or by zeros at the ends."""
    for side in found_sides:
        if side.before or side.behind:
            partitioner.record_exchange("borders", x, side.axes, side.dim, side.before + side.behind)
            x = partitioner.call(nodes.borders, (x, side.axes, side.dim, side.before, side.behind, partitioner.mesh), {})
    return x


def returned(partitioner: Any, grad: Node, found_sides: list[Side]) -> Node:
    """The gradient of extending: gradients of borders are added to the parts that they came from."""
    for side in reversed(found_sides):
        if side.before or side.behind:
            partitioner.record_exchange("borders", grad, side.axes, side.dim, side.before + side.behind)
            grad = partitioner.call(nodes.borders_sum, (grad, side.axes, side.dim, side.before, side.behind, partitioner.mesh), {})
    return grad


def without_edges(edge: list[int], found_sides: list[Side]) -> list[int]:
    """Return the padding of the call on parts, which contain the borders already."""
    cut = {side.dim - 2 for side in found_sides}
    return [0 if at in cut else width for at, width in enumerate(edge)]


def each_of(value: Any, count: int) -> list[int]:
    """Return a setting for each dimension; a single number applies to all."""
    return list(value) if len(value) == count else list(value) * count


@dataclass(frozen=True)
class _Window:
    """The layouts of the parts of a convolution."""

    sides: list[Side]
    rows: Axes
    before: Axes
    after: Axes
    spatial: tuple[Axes, ...]
    transposed: bool

    @property
    def weight(self) -> Layout:
        """Return the layout of the kernel, whose window is unsplit."""
        channels = (self.before, self.after) if self.transposed else (self.after, self.before)
        return Layout((*channels, *((),) * len(self.spatial)))

    def settings(self, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of the call on parts, which contain the borders already."""
        padding, more = (without_edges(each_of(setting, len(self.spatial)), self.sides) for setting in (rest[1], rest[4]))
        return (rest[0], padding, *rest[2:4], more, rest[5])


def _window(partitioner: Any, x: Any, weight: Any, out: tuple[int, ...], rest: tuple[Any, ...]) -> _Window | None:
    stride, padding, dilation, transposed, _, groups = rest
    count = len(x.shape) - 2
    if x.layout.partial or weight.layout.partial or not any(x.layout.dim_axes[2:]) or (groups != 1 and x.layout.dim_axes[1]):
        return None
    settings = (each_of(setting, count) for setting in (stride, padding, dilation))
    found_sides = (sides_of_wider if transposed else sides)(partitioner, x, out, list(weight.shape[2:]), *settings)
    if found_sides is None:
        return None
    after = tuple(axis for axis in weight.layout.dim_axes[1 if transposed else 0] if axis not in x.layout.axes) if groups == 1 else ()
    return _Window(found_sides, x.layout.dim_axes[0], x.layout.dim_axes[1], after, x.layout.dim_axes[2:], transposed)


@lowers("convolution")
def convolution(partitioner: Any, node: Node) -> Any:
    """Convolve each device's part and its borders; a transposed convolution sends the results beyond the part to the neighbours."""
    operands, rest = partitioner.operands(node), tuple(arguments(node)[3:])
    x, weight = operands[:2]
    window = _window(partitioner, x, weight, tuple(node.meta["val"].shape), rest)
    if window is None:
        return None
    weight = partitioner.move(weight, window.weight)
    bias = None
    if len(operands) > 2:
        bias = partitioner.move(operands[2], Layout((window.after,))).node
        if window.before:                      # each device adds its share
            bias = partitioner.call(_aten.mul.Tensor, (bias, 1 / partitioner.mesh.product(window.before)), {})
    if window.transposed:                      # the summand after the borders, which would get it twice
        result = partitioner.call(_aten.convolution.default, (x.node, weight.node, None, *window.settings(rest)), {})
        result = returned(partitioner, result, window.sides)
        if bias is not None:
            result = partitioner.call(
                _aten.add.Tensor, (result, partitioner.call(_aten.view.default, (bias, [1, -1, *[1] * len(window.spatial)]), {})), {}
            )
    else:
        result = partitioner.call(
            _aten.convolution.default, (extended(partitioner, x.node, window.sides), weight.node, bias, *window.settings(rest)), {}
        )
    terms = tuple((axis, "sum") for axis in sorted(window.before))
    return partitioner.wrapped(result, node, [Layout((window.rows, window.after, *window.spatial), terms)])


@lowers("convolution_backward")
def convolution_gradient(partitioner: Any, node: Node) -> Any:
    """The gradient: that of the borders goes back to the neighbours; those of the kernel are sums over all parts."""
    grad, x, weight = partitioner.operands(node)[:3]
    _, *rest, mask = arguments(node)[3:]
    window = _window(partitioner, x, weight, grad.shape, tuple(rest))
    if window is None:
        return None
    grad = partitioner.move(grad, Layout((window.rows, window.after, *window.spatial)))
    weight = partitioner.move(weight, window.weight)
    edges = (grad.node, x.node)
    edges = (
        (extended(partitioner, edges[0], window.sides), edges[1])
        if window.transposed
        else (edges[0], extended(partitioner, edges[1], window.sides))
    )
    call_arguments = (*edges, weight.node, None, *window.settings(tuple(rest)), [*mask[:2], False])
    result = partitioner.call(_aten.convolution_backward.default, call_arguments, {})
    terms = tuple((axis, "sum") for axis in sorted(window.after))
    every = tuple((axis, "sum") for axis in sorted((*window.rows, *(axis for axes in window.spatial for axis in axes))))
    results: list[Any] = [None, None, None]
    if mask[0]:
        back = partitioner.item(result, 0) if window.transposed else returned(partitioner, partitioner.item(result, 0), window.sides)
        results[0] = partitioner.value(back, Layout(x.layout.dim_axes, terms), x.shape)
    if mask[1]:
        results[1] = partitioner.value(partitioner.item(result, 1), Layout(weight.layout.dim_axes, every), weight.shape)
    if mask[2]:
        total = partitioner.call(_aten.sum.dim_IntList, (grad.node, [0, *range(2, len(grad.shape))]), {})
        results[2] = partitioner.value(total, Layout((window.after,), every), grad.shape[1:2])
    return results
