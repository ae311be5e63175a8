"""Restores the dimensions of batched matrix products: torch joins the leading dimensions before `bmm` and separates them after it.

A batch and heads that are both split cannot be joined into one dimension with equal parts. As (batch, heads, m, n) they keep their layout.
"""
from __future__ import annotations

import math

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import node_builder
from torchspore.distributed.shard.node_builder import faking
from torchspore.engine.torch_internals.torch_private import OpOverload
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.passes import drop_dead

_aten = torch.ops.aten
_VIEWS = frozenset({_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default})


def widened(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy of the graph in which each `bmm` of joined dimensions is a `matmul` of the original dimensions."""
    if not any(node.target is _aten.bmm.default for node in module.graph.nodes):
        return module
    module = copy_module(module)
    with faking(module):
        _Widening(module).run()
    return drop_dead(module)


class _Widening:
    """Return, for each three-dimensional value, the value before its leading dimensions were joined."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self.graph = module.graph
        self.wide: dict[Node, Node] = {}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node.target in _VIEWS:
                self._view(node)
            elif node.target is _aten.transpose.int and node.args[0] in self.wide:
                self._transpose(node)
            elif node.target is _aten.bmm.default:
                self._product(node)

    def _view(self, node: Node) -> None:
        source: Node = node.args[0]  # type: ignore[assignment]
        before, after = _shape(source), _shape(node)
        if source in self.wide and _shape(self.wide[source]) == after:
            node.replace_all_uses_with(self.wide[source])
        elif len(before) > 3 and len(after) == 3 and after == (math.prod(before[:-2]), *before[-2:]):
            self.wide[node] = source

    def _transpose(self, node: Node) -> None:
        source: Node = node.args[0]  # type: ignore[assignment]
        if {axis % 3 for axis in node.args[1:]} == {1, 2}:  # type: ignore[operator]
            self.wide[node] = self._put(node, _aten.transpose.int, self.wide[source], -2, -1)

    def _product(self, node: Node) -> None:
        first, other = (self.wide.get(source) for source in node.all_input_nodes[:2]) if len(node.all_input_nodes) == 2 else (None, None)
        if first is None or other is None or _shape(first)[:-2] != _shape(other)[:-2]:
            return
        product = self._put(node, _aten.matmul.default, first, other)
        joined = self._put(node, _aten.reshape.default, product, list(_shape(node)))
        node.replace_all_uses_with(joined)
        self.wide[joined] = product

    def _put(self, before: Node, target: OpOverload, *args: object) -> Node:
        with self.graph.inserting_before(before):
            return node_builder.call(self.graph, target, args, before)


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)
