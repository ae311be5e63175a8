"""The graph of one rank: collectives along axes of the grid become torch.distributed collectives over this rank's groups."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.comm import groups, operators
from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard import node_builder
from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.distributed.shard.pipeline_parallel import stage_graph
from torchspore.engine.split_layouts.device_layout import Axes
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import graph_module

_aten, _c10d = torch.ops.aten, torch.ops._c10d_functional


class _Binder:
    """Writes the nodes of one rank."""

    def __init__(self, local: LocalGraph, rank: int, stages: int) -> None:
        self.mesh, self.module = local.mesh, local.module
        self.first = rank // self.mesh.count * self.mesh.count if stages > 1 else 0
        self.rank = rank - self.first
        self.graph = torch.fx.Graph()
        self.names: dict[Axes, str] = {}
        self.source: Node | None = None
        self.copies: dict[Node, Any] = {}

    def run(self) -> torch.fx.GraphModule:
        for node in self.module.graph.nodes:
            self.source = node
            make = _MAKERS.get(node.target)
            if make is None:
                self.copies[node] = self.graph.node_copy(node, lambda n: self.copies[n])
                continue
            args = tree.mapped(list(node.args), lambda leaf: self.copies[leaf] if isinstance(leaf, Node) else leaf)
            result = make(self, *args)
            self.copies[node] = result
        return graph_module(self.module, self.graph)

    def call(self, target: Any, *args: Any) -> Node:
        """Write a node for this operator, with the fake tensor of its result."""
        assert self.source is not None
        return node_builder.call(self.graph, target, args, self.source, around=self.module)

    def group(self, axes: Axes) -> str:
        """Return the name of this rank's group along these axes."""
        if axes not in self.names:
            self.names[axes] = groups.of_ranks(tuple(self.first + member for member in self.mesh.group(self.rank, axes))).key
        return self.names[axes]

    def sent(self, target: Any, *args: Any) -> Node:
        """Write a collective, and the wait for it."""
        return self.call(_c10d.wait_tensor.default, self.call(target, *args))

    def ordered(self, x: Node) -> Node:
        """Return the values contiguous in memory, as collectives require."""
        return x if x.meta["val"].is_contiguous() else self.call(_aten.clone.default, x)

    def chunks(self, x: Node, count: int, dim: int) -> list[Node]:
        """Return equal parts along a dimension."""
        size = x.meta["val"].shape[dim] // count
        parted = self.call(_aten.split.Tensor, x, size, dim)
        return [self.item(parted, at) for at in range(count)]

    def item(self, node: Node, at: int) -> Node:
        item = self.graph.call_function(operator.getitem, (node, at))
        item.meta = {**node.meta, "val": node.meta["val"][at]}
        return item


def _all_reduce(binder: _Binder, x: Node, axes: Axes, kind: str, mesh: Any) -> Node:
    out = binder.sent(_c10d.all_reduce.default, binder.ordered(x), "sum" if kind == "avg" else kind, binder.group(axes))
    return binder.call(_aten.div.Scalar, out, mesh.product(axes)) if kind == "avg" else out


def _reduce_scatter(binder: _Binder, x: Node, axes: Axes, kind: str, dim: int, mesh: Any) -> Node:
    count = mesh.product(axes)
    x = binder.ordered(x) if dim == 0 else binder.call(_aten.cat.default, binder.chunks(x, count, dim))
    out = binder.sent(_c10d.reduce_scatter_tensor.default, x, "sum" if kind == "avg" else kind, count, binder.group(axes))
    return binder.call(_aten.div.Scalar, out, count) if kind == "avg" else out


def _all_gather(binder: _Binder, x: Node, axes: Axes, dim: int, mesh: Any) -> Node:
    count = mesh.product(axes)
    out = binder.sent(_c10d.all_gather_into_tensor.default, binder.ordered(x), count, binder.group(axes))
    out.all_input_nodes[0].meta[node_metadata.SETTLED_GATHER] = True
    return out if dim == 0 else binder.call(_aten.cat.default, binder.chunks(out, count, 0), dim)


def _all_to_all(binder: _Binder, x: Node, axes: Axes, source: int, dim: int, mesh: Any) -> Node:
    count = mesh.product(axes)
    x = binder.ordered(x) if dim == 0 else binder.call(_aten.cat.default, binder.chunks(x, count, dim))
    sizes = [x.meta["val"].shape[0] // count] * count
    out = binder.sent(_c10d.all_to_all_single.default, x, sizes, sizes, binder.group(axes))
    return out if source == 0 else binder.call(_aten.cat.default, binder.chunks(out, count, 0), source)


def _neighbours(binder: _Binder, sends: tuple[Node, Node], axes: Axes, mesh: Any) -> tuple[Node | None, Node | None]:
    """Send one value to the previous and one to the next process; return what they sent, None at the ends."""
    group = mesh.group(binder.rank, axes)
    at, shapes = group.index(binder.rank), [tuple(node.meta["val"].shape) for node in sends]
    flat = [binder.call(_aten.reshape.default, node, [-1]) for node in sends]
    lengths = [node.meta["val"].numel() for node in sends]
    out, back = [0] * len(group), [0] * len(group)
    parts = []
    for step, local_index, other in ((-1, 0, 1), (1, 1, 0)):
        if 0 <= at + step < len(group):
            out[at + step], back[at + step] = lengths[local_index], lengths[other]
            parts.append(flat[local_index])
    joined = binder.ordered(binder.call(_aten.cat.default, parts))
    exchanged = binder.sent(_c10d.all_to_all_single.default, joined, back, out, binder.group(axes))
    borders: list[Node | None] = [None, None]
    start = 0
    for step, other in ((-1, 1), (1, 0)):
        if 0 <= at + step < len(group):
            piece = binder.call(_aten.slice.Tensor, exchanged, 0, start, start + lengths[other])
            borders[0 if step < 0 else 1] = binder.call(_aten.reshape.default, piece, list(shapes[other]))
            start += lengths[other]
    return borders[0], borders[1]


def _borders(binder: _Binder, x: Node, axes: Axes, dim: int, before: int, behind: int, mesh: Any) -> Node:
    size = x.meta["val"].shape[dim]
    first, last = binder.call(_aten.slice.Tensor, x, dim, 0, behind), binder.call(_aten.slice.Tensor, x, dim, size - before, size)
    ahead, after = _neighbours(binder, (first, last), axes, mesh)
    ahead = ahead if ahead is not None else binder.call(_aten.zeros_like.default, last)
    after = after if after is not None else binder.call(_aten.zeros_like.default, first)
    return binder.call(_aten.cat.default, [ahead, x, after], dim)


def _borders_sum(binder: _Binder, x: Node, axes: Axes, dim: int, before: int, behind: int, mesh: Any) -> Node:
    size = x.meta["val"].shape[dim] - before - behind
    part = [binder.call(_aten.slice.Tensor, x, dim, *ends) for ends in ((0, before), (before, before + size), (before + size, None))]
    ahead, after = _neighbours(binder, (part[0], part[2]), axes, mesh)
    local_part = part[1]
    for border, ends in ((ahead, (0, behind)), (after, (size - before, size))):
        if border is not None and ends[0] < ends[1]:
            local_part = binder.call(
                _aten.slice_scatter.default,
                local_part,
                binder.call(_aten.add.Tensor, binder.call(_aten.slice.Tensor, local_part, dim, *ends), border),
                dim,
                *ends,
            )
    return local_part


def _rotated(binder: _Binder, x: Node, axes: Axes, mesh: Any) -> Node:
    group, val = mesh.group(binder.rank, axes), x.meta["val"]
    at, length = group.index(binder.rank), val.numel()
    sent = [length if other == (at + 1) % len(group) else 0 for other in range(len(group))]
    received = [length if other == (at - 1) % len(group) else 0 for other in range(len(group))]
    flat = binder.call(_aten.reshape.default, binder.ordered(x), [-1])
    return binder.call(
        _aten.reshape.default, binder.sent(_c10d.all_to_all_single.default, flat, received, sent, binder.group(axes)), list(val.shape)
    )


def _cut(binder: _Binder, x: Node, axes: Axes, dim: int, mesh: Any) -> Node:
    size = x.meta["val"].shape[dim] // mesh.product(axes)
    at = mesh.position(binder.rank, axes)
    return binder.call(_aten.slice.Tensor, x, dim, at * size, (at + 1) * size)


def _position(binder: _Binder, axes: Axes, factor: int, mesh: Any) -> int:
    return int(mesh.position(binder.rank, axes) * factor)


def _sent(binder: _Binder, x: Node, target: int, number: int) -> Node:
    target_rank = binder.rank + target * binder.mesh.count
    return binder.call(operators.send, binder.ordered(x), target_rank, number, groups.world().key)


def _received(binder: _Binder, shape: list[int], dtype: Any, device: Any, source: int, number: int) -> Node:
    return binder.call(operators.receive, shape, dtype, device, binder.rank + source * binder.mesh.count, number, groups.world().key)


def _absent(binder: _Binder, val: torch.Tensor) -> Node:
    value = stage_graph.filler(val.dtype)
    filled = binder.call(_aten.full.default, [], value)
    filled.kwargs = {"dtype": val.dtype, "device": val.device}
    filled.meta["val"] = val.new_empty(())
    return binder.call(_aten.expand.default, filled, list(val.shape))


_MAKERS: dict[Any, Callable[..., Any]] = {
    nodes.all_reduce: _all_reduce, nodes.reduce_scatter: _reduce_scatter, nodes.all_gather: _all_gather, nodes.all_to_all: _all_to_all,
    nodes.cut: _cut, nodes.position: _position, nodes.borders: _borders, nodes.borders_sum: _borders_sum,
    nodes.rotated: _rotated,
    nodes.sent: _sent, nodes.received: _received, nodes.arrived: lambda to, x: to.call(_c10d.wait_tensor.default, x),
    stage_graph.absent: _absent,
}


def bound(local: LocalGraph, rank: int, stages: int = 1) -> torch.fx.GraphModule:
    """Return the graph of one rank; with pipeline stages, the graph of its stage."""
    module = _Binder(local, rank, stages).run()
    module.graph.lint()
    return module
