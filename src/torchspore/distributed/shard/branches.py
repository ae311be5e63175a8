"""Splits a branch that needs no value of another device, such as a step that is skipped on overflow: each device runs it on its parts."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.alias_conflicts import nodes_written_by
from torchspore.distributed.shard.plan import Plan
from torchspore.engine.split_layouts.device_layout import Layout, unsplit
from torchspore.engine.tensors import tree
from torchspore.graph.control_flow import execution


def split(partitioner: Any, node: Node) -> Any:
    """Return the results of a branch whose graphs were split for the layouts of its inputs, or None if that requires an exchange."""
    if node.target is not execution.branch:
        return None
    arguments: Any = node.args
    test, inputs, then, otherwise = arguments
    values, written_nodes = [partitioner.values[item] for item in inputs], set(nodes_written_by(node))
    if any(value.layout.partial for item, value in zip(inputs, values) if item in written_nodes):
        return None
    layouts = [value.layout.settled() for value in values]
    for graph in (then, otherwise):
        _share_meta_values(partitioner, graph)
    first = _local(partitioner, then, layouts, lambda at, out, layout, shape: layout)
    if first is None:
        return None
    results = [output[0] if output is not None else None for output in first.outputs]
    other = _local(partitioner, otherwise, layouts, lambda at, out, layout, shape: results[at] or unsplit(len(shape)))
    if other is None:
        return None
    moved = [partitioner.move(value, layout).node for value, layout in zip(values, layouts)]
    picked = partitioner.move(partitioner.values[test], unsplit(len(partitioner.values[test].shape))).node
    result = partitioner.call(
        execution.branch, (picked, moved, first.module, other.module), {}, node, [_val(out) for out in _outputs(first.module)]
    )
    return partitioner.wrapped(result, node, [layout or unsplit(0) for layout in results])


def _local(partitioner: Any, graph: torch.fx.GraphModule, layouts: list[Layout], output: Any) -> Any:
    """Return the local graph of one side of a branch; None if it contains exchanges or receives partial sums."""
    local_side = type(partitioner)(
        graph, partitioner.mesh, layouts, output, partitioner.policy, {}, {}, partitioner.replica_counts, Plan()
    ).run()
    sends = any(placed.target in nodes.SENDING or placed.target in nodes.LOCAL for placed in local_side.module.graph.nodes)
    return None if sends or any(layout.partial for layout, _ in local_side.inputs) else local_side


def _share_meta_values(partitioner: Any, graph: torch.fx.GraphModule) -> None:
    """Move the fake tensors of a side, which was traced separately, into the mode of the enclosing graph."""
    with partitioner.faking():
        for node in graph.graph.nodes:
            if "val" in node.meta:
                node.meta["val"] = tree.mapped(node.meta["val"], _like)


def _like(val: Any) -> Any:
    if not isinstance(val, torch.Tensor):
        return val
    return torch.empty_strided(tuple(val.shape), val.stride(), dtype=val.dtype, device=val.device)


def _outputs(module: torch.fx.GraphModule) -> Any:
    return module.graph.output_node().args[0]


def _val(out: Any) -> Any:
    return out.meta.get("val") if isinstance(out, Node) else out
