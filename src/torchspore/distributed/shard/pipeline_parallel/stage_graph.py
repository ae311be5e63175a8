"""The graph of one stage."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.pipeline_parallel.dead_code import prune
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.engine.torch_internals.torch_private import graph_module

ON_THEIR_WAY = 8
"""How many values may be on their way to a stage before the first is waited for."""


def of_stage(module: torch.fx.GraphModule, stage: int, count: int) -> torch.fx.GraphModule:
    """Return the part of a graph with transfers that one of `count` stages runs.

    It contains the stage's nodes, the nodes of all stages that it needs, and its half of each transfer. A result that belongs to another
    stage is `absent` here.
    """
    return _Cutter(module, stage, count).run()


def absent(val: torch.Tensor) -> torch.Tensor:
    """Return a placeholder for a value of other processes: the same shape, and one number in memory, nan if the dtype has it."""
    return torch.full((), filler(val.dtype), dtype=val.dtype, device=val.device).expand(val.shape)


def filler(dtype: torch.dtype) -> Any:
    """Return the value that fills missing memory: nan, or the smallest number."""
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan
    return False if dtype is torch.bool else torch.iinfo(dtype).min


class _Cutter:
    def __init__(self, module: torch.fx.GraphModule, stage: int, count: int) -> None:
        self.module, self.stage, self.count = module, stage, count
        self.graph = torch.fx.Graph()
        self.copies: dict[Node, Node] = {}
        self.begun: dict[int, list[Node]] = {}                  # pending transfers to each stage
        self.waited: dict[Node, Node] = {}                      # received values, by the node that began the transfer

    def run(self) -> torch.fx.GraphModule:
        number = -1
        for node in self.module.graph.nodes:
            number += node.target is nodes.passed
            if node.op == "output":
                self._output(node)
            elif node.target is nodes.passed:
                self._transfer(node, number)
            elif stage_of(node) in (self.stage, ALL) or node.op == "placeholder":
                self.copies[node] = self.graph.node_copy(node, self._copy)
        stage_module = graph_module(self.module, self.graph)
        prune(stage_module, lambda node: stage_of(node) == ALL and node.target not in (nodes.sent, nodes.arrived))
        return stage_module

    def _copy(self, node: Node) -> Node:
        """Copy a node into the stage's graph; a received value is waited for at its first use."""
        copied = self.copies[node]
        if copied.target is nodes.received:
            if copied not in self.waited:
                self.waited[copied] = self._call(nodes.arrived, (copied,), node.meta)
            return self.waited[copied]
        return copied

    def _transfer(self, node: Node, number: int) -> None:
        """Write this stage's half of a transfer; a transfer to all stages becomes one to each of the others."""
        item: Any = node.args[0]
        transfer: Any = node.args[1:]
        source, target = transfer
        if source == self.stage:
            for other in range(self.count) if target == ALL else [target]:
                if other != self.stage:
                    self._send(item, other, number, node)
            if target == ALL:
                self.copies[node] = self._copy(item)
        elif target in (self.stage, ALL):
            val = node.meta["val"]
            self.copies[node] = self._call(nodes.received, (list(val.shape), val.dtype, val.device, source, number), node.meta)

    def _send(self, item: Node, target: int, number: int, node: Node) -> None:
        begun = self.begun.setdefault(target, [])
        if len(begun) == ON_THEIR_WAY:
            self._call(nodes.arrived, (begun.pop(0),), node.meta)
        begun.append(self._call(nodes.sent, (self._copy(item), target, number), node.meta))

    def _output(self, node: Node) -> None:
        outputs: list[Any] = []
        results: Any = node.args[0]
        for item in results:
            if not isinstance(item, Node):
                outputs.append(item)
            elif item in self.copies:
                outputs.append(self._copy(item))
            else:
                outputs.append(self._call(absent, (item.meta["val"],), item.meta))
        for sent in (sent for begun in self.begun.values() for sent in begun):
            self._call(nodes.arrived, (sent,), sent.meta)
        self.graph.output(outputs).meta = dict(node.meta)

    def _call(self, target: Any, args: tuple[Any, ...], meta: Any) -> Node:
        new_node = self.graph.call_function(target, args)
        new_node.meta = dict(meta)
        return new_node
