"""Writes the nodes of a local graph, and the exchanges that change the layout of a value."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard import node_builder, redistribution
from torchspore.distributed.shard.local_graph import Policy, SplitOperator, Value
from torchspore.distributed.shard.node_builder import faking
from torchspore.distributed.shard.redistribution import Step
from torchspore.engine.split_layouts.device_layout import Axes, Layout, Shape
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals import node_metadata


class GraphWriter:
    """Writes the local graph of a captured graph, node by node, for the devices of a mesh."""

    def __init__(self, module: torch.fx.GraphModule, mesh: Mesh, policy: Policy) -> None:
        self.module, self.mesh, self.policy = module, mesh, policy
        self.graph = torch.fx.Graph()
        self.split_operators: list[SplitOperator] = []
        self.current_node: Node | None = None
        """The node of the captured graph that is being split; new nodes get its metadata."""
        self.moved: dict[Node, dict[Layout, Value]] = {}
        """The values in other layouts, by the node of the original value."""

    def wrapped(self, result: Node, node: Node, layouts: Sequence[Layout]) -> Any:
        """Return the Value, or the list of Values, of a call's results."""
        val = node.meta.get("val")
        if isinstance(val, (list, tuple)):
            remaining_layouts = iter(layouts)
            return [
                self._item(result, at, out, next(remaining_layouts)) if isinstance(out, torch.Tensor) else None
                for at, out in enumerate(val)
            ]
        return Value(result, layouts[0], tuple(val.shape), val.dtype) if isinstance(val, torch.Tensor) else result

    def _item(self, result: Node, at: int, out: torch.Tensor, layout: Layout) -> Value:
        return Value(self.item(result, at), layout, tuple(out.shape), out.dtype)

    def call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], source: Node | None = None, val: Any = None) -> Node:
        """Write a call and return its node, whose metadata contain `val`, or else the computed fake result."""
        source = source if source is not None else self.current_node
        assert source is not None
        if val is None and target is not nodes.position:
            new_node = node_builder.call(self.graph, target, args, source, kwargs, self.module)
        else:
            new_node = self.graph.call_function(target, args, kwargs)
            new_node.meta = {name: value for name, value in source.meta.items() if name != "val"}
            if val is not None:
                new_node.meta["val"] = val
        if self.split_operators:
            self.split_operators[-1].nodes.append(new_node)
        return new_node

    def item(self, node: Node, at: int) -> Node:
        """Write a `getitem` that returns one of several results."""
        item_node = self.graph.call_function(operator.getitem, (node, at))
        item_node.meta = {**node.meta, "val": node.meta["val"][at]}
        return item_node

    def faking(self) -> AbstractContextManager[None]:
        """Return a context manager in which operators compute fake tensors in the mode of the captured graph."""
        return faking(self.module)

    def value(self, node: Node, layout: Layout, shape: Shape) -> Value:
        """Return the Value of a node with this layout and full shape."""
        return Value(node, layout, tuple(shape), node.meta["val"].dtype)

    def move(self, value: Value, layout: Layout, fresh: bool = False) -> Value:
        """Return the value in another layout, and write the collectives that change it.

        An earlier result for the same layout is reused, unless `fresh` requests a value with separate memory.
        """
        if value.layout == layout:
            return value
        moved_values, key = self.moved.setdefault(value.node, {}), layout
        if key in moved_values and not fresh:
            return moved_values[key]
        steps = redistribution.steps(self.mesh, value.shape, value.dtype.itemsize, value.layout, layout, self.policy.exchanges)
        node = value.node
        for step in steps:
            node = self._step_in_float32(node, step) if self._needs_float32(value, step) else self._write_step(node, step)
            if self.split_operators:
                self.split_operators[-1].steps.append((step, value.shape))
        moved = moved_values[key] = Value(node, layout, value.shape, value.dtype)
        return moved

    def record_exchange(self, kind: str, x: Node, axes: Axes, dim: int, count: int) -> None:
        """Record an exchange that a lowering wrote itself: of `count` indices of a dimension."""
        val = x.meta["val"]
        sent = val.element_size() * val.numel() // max(1, val.shape[dim]) * count
        self.split_operators[-1].steps.append((Step(kind, axes, dim, sent=sent), tuple(val.shape)))

    def _needs_float32(self, value: Value, step: Step) -> bool:
        """Return whether the context requests that half-precision terms are summed in float32, for gradients or for all values."""
        if step.kind not in (redistribution.REDUCE, redistribution.SCATTER) or value.dtype not in (torch.float16, torch.bfloat16):
            return False
        is_gradient = self.current_node is not None and bool(self.current_node.meta.get(node_metadata.GRADIENT))
        return self.policy.sums_wide or (self.policy.sums_gradients_wide and is_gradient)

    def _step_in_float32(self, x: Node, step: Step) -> Node:
        """Write a redistribution step that computes in float32."""
        wide = self.call(torch.ops.aten._to_copy.default, (x,), {"dtype": torch.float32})
        return self.call(torch.ops.aten._to_copy.default, (self._write_step(wide, step),), {"dtype": x.meta["val"].dtype})

    def _write_step(self, x: Node, step: Step) -> Node:
        if step.kind == redistribution.REDUCE:
            return self.call(nodes.all_reduce, (x, step.axes, step.reduction, self.mesh), {})
        if step.kind == redistribution.SCATTER:
            return self.call(nodes.reduce_scatter, (x, step.axes, step.reduction, step.dim, self.mesh), {})
        if step.kind == redistribution.GATHER:
            return self.call(nodes.all_gather, (x, step.axes, step.dim, self.mesh), {})
        if step.kind == redistribution.EXCHANGE:
            return self.call(nodes.all_to_all, (x, step.axes, step.source, step.dim, self.mesh), {})
        return self.call(nodes.cut, (x, step.axes, step.dim, self.mesh), {})
