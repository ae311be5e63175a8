"""The graph of one rank: collectives along axes of the grid become those of torch.distributed over this rank's groups."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.comm import groups
from torchspore.engine.shard import collective_nodes as nodes
from torchspore.engine.shard import making
from torchspore.engine.shard.layout import Axes
from torchspore.engine.shard.localizing import LocalGraph
from torchspore.engine.shard.making import faking

_aten, _c10d = torch.ops.aten, torch.ops._c10d_functional


class _Binder:
    """Writes the nodes of one rank."""

    def __init__(self, local: LocalGraph, rank: int) -> None:
        self.mesh, self.rank, self.module = local.mesh, rank, local.module
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
            args = [self.copies[item] if isinstance(item, Node) else item for item in node.args]
            made = make(self, *args)
            self.copies[node] = made
        return torch.fx.GraphModule(self.module, self.graph)

    def call(self, target: Any, *args: Any) -> Node:
        """A node of this operator, with the stand-in of what it gives."""
        assert self.source is not None
        with faking(self.module):
            return making.call(self.graph, target, args, self.source)

    def group(self, axes: Axes) -> str:
        """The name of this rank's group along these axes."""
        if axes not in self.names:
            self.names[axes] = groups.of_ranks(self.mesh.group(self.rank, axes)).key
        return self.names[axes]

    def sent(self, target: Any, *args: Any) -> Node:
        """A collective, and the wait for it."""
        return self.call(_c10d.wait_tensor.default, self.call(target, *args))

    def ordered(self, x: Node) -> Node:
        """The same values one after the other in memory, as collectives want them."""
        return x if x.meta["val"].is_contiguous() else self.call(_aten.clone.default, x)

    def chunks(self, x: Node, count: int, dim: int) -> list[Node]:
        """Equal parts along a dimension."""
        size = x.meta["val"].shape[dim] // count
        parted = self.call(_aten.split.Tensor, x, size, dim)
        return [self.item(parted, at) for at in range(count)]

    def item(self, node: Node, at: int) -> Node:
        made = self.graph.call_function(operator.getitem, (node, at))
        made.meta = {**node.meta, "val": node.meta["val"][at]}
        return made


def _all_reduce(to: _Binder, x: Node, axes: Axes, kind: str, mesh: Any) -> Node:
    out = to.sent(_c10d.all_reduce.default, to.ordered(x), "sum" if kind == "avg" else kind, to.group(axes))
    return to.call(_aten.div.Scalar, out, mesh.product(axes)) if kind == "avg" else out


def _reduce_scatter(to: _Binder, x: Node, axes: Axes, kind: str, dim: int, mesh: Any) -> Node:
    count = mesh.product(axes)
    x = to.ordered(x) if dim == 0 else to.call(_aten.cat.default, to.chunks(x, count, dim))
    out = to.sent(_c10d.reduce_scatter_tensor.default, x, "sum" if kind == "avg" else kind, count, to.group(axes))
    return to.call(_aten.div.Scalar, out, count) if kind == "avg" else out


def _all_gather(to: _Binder, x: Node, axes: Axes, dim: int, mesh: Any) -> Node:
    count = mesh.product(axes)
    out = to.sent(_c10d.all_gather_into_tensor.default, to.ordered(x), count, to.group(axes))
    return out if dim == 0 else to.call(_aten.cat.default, to.chunks(out, count, 0), dim)


def _all_to_all(to: _Binder, x: Node, axes: Axes, source: int, dim: int, mesh: Any) -> Node:
    count = mesh.product(axes)
    x = to.ordered(x) if dim == 0 else to.call(_aten.cat.default, to.chunks(x, count, dim))
    sizes = [x.meta["val"].shape[0] // count] * count
    out = to.sent(_c10d.all_to_all_single.default, x, sizes, sizes, to.group(axes))
    return out if source == 0 else to.call(_aten.cat.default, to.chunks(out, count, 0), source)


def _cut(to: _Binder, x: Node, axes: Axes, dim: int, mesh: Any) -> Node:
    size = x.meta["val"].shape[dim] // mesh.product(axes)
    at = mesh.position(to.rank, axes)
    return to.call(_aten.slice.Tensor, x, dim, at * size, (at + 1) * size)


def _position(to: _Binder, axes: Axes, factor: int, mesh: Any) -> int:
    return int(mesh.position(to.rank, axes) * factor)


_MAKERS: dict[Any, Callable[..., Any]] = {
    nodes.all_reduce: _all_reduce, nodes.reduce_scatter: _reduce_scatter, nodes.all_gather: _all_gather, nodes.all_to_all: _all_to_all,
    nodes.cut: _cut, nodes.position: _position,
}


def bound(local: LocalGraph, rank: int) -> torch.fx.GraphModule:
    """The graph of one rank."""
    module = _Binder(local, rank).run()
    module.graph.lint()
    return module
