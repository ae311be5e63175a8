"""Orders a step of one stage with micro batches: the backward pass of each micro batch directly follows its forward pass.

A program computes all micro batches before it takes the gradient, so the activations of all of them would be in memory at once. Here those
of one micro batch are freed before the next one begins.
"""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.pipeline_parallel import micro_batch_dependencies
from torchspore.distributed.shard.pipeline_parallel.step_order import COMMUNICATION, sorted_by_time
from torchspore.engine.autograd.recompute import SECOND_RUN
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.order import dependencies


def ordered(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return the graph in this order; unchanged if it has fewer than two micro batches, or no gradient of one."""
    parts = sorted({part for part in map(_part_of, module.graph.nodes) if part})
    if len(parts) < 2 or not any(_part_of(node) and node.meta.get(node_metadata.GRADIENT) for node in module.graph.nodes):
        return module
    micro_batch_dependencies.by_shape(module)
    micro_batch_dependencies.by_parts(module)
    rank_of = {part: rank for rank, part in enumerate(parts)}
    nodes = list(module.graph.nodes)
    before, _ = dependencies(nodes, COMMUNICATION | SECOND_RUN)
    turns: dict[Node, int] = {}
    for node in nodes:
        part = _part_of(node)
        if part:
            turn = 2 * rank_of[part] + bool(node.meta.get(node_metadata.GRADIENT))
        else:
            turn = 2 * len(parts) if node.meta.get(node_metadata.OPTIMIZER) else 0
        turns[node] = max((turn, *(turns[item] for item in before[node])))
    return sorted_by_time(module, turns)


def _part_of(node: Node) -> tuple[int, ...]:
    """Return the numbers of the micro batch that the node computes; empty if it computes none."""
    part: tuple[int, ...] = node.meta.get(node_metadata.PART) or ()
    return part if node.op == "call_function" else ()
