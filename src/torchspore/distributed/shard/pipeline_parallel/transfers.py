"""The transfers between stages: one for each value that an operator of another stage reads."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.distributed.shard.alias_conflicts import nodes_written_by
from torchspore.distributed.shard.collective_nodes import passed
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.aliasing import owners

Everywhere = Callable[[int, Node], bool]
_COPIED = (node_metadata.LINE, node_metadata.GRADIENT, node_metadata.PART, node_metadata.STACK)


def put(graph: torch.fx.Graph, everywhere: Everywhere) -> None:
    """Insert transfers into a graph whose nodes have stages.

    A value goes to each stage once, unless its memory was written in between. `everywhere(place, node)` says whether a result of one stage
    goes to all others; if not, the result stays on its stage. Raises ValueError for a value that cannot be sent.
    """
    _Passing(graph, everywhere).run()


class _Passing:
    def __init__(self, graph: torch.fx.Graph, everywhere: Everywhere) -> None:
        self.graph, self.everywhere = graph, everywhere
        self.owners = owners(graph)
        self.writes: dict[Node, int] = {}
        self.sent: dict[tuple[Node, int, int], Node] = {}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node.op == "output":
                self._results(node)
            elif node.op == "call_function":
                for item in node.all_input_nodes:
                    if stage_of(item) not in (stage_of(node), ALL):
                        node.replace_input_with(item, self._sent(item, stage_of(node), node))
            for item in nodes_written_by(node):
                owner = self.owners[item]
                self.writes[owner] = self.writes.get(owner, 0) + 1

    def _sent(self, item: Node, target: int, before: Node) -> Node:
        """Return the value on another stage."""
        owner = self.owners[item]
        key = (item, target, self.writes.get(owner, 0))
        if key not in self.sent:
            val = item.meta.get("val")
            if not isinstance(val, torch.Tensor):
                line = before.meta.get(node_metadata.LINE) or item.meta.get(node_metadata.LINE, "")
                raise ValueError(f"{line}: " + message(
                    f"pipeline stage {target} needs what stage {stage_of(item)} creates and is not a Tensor", "Tensors between stages",
                ))
            with self.graph.inserting_before(before):
                transfer = self.graph.call_function(passed, (item, stage_of(item), target))      # ALL: to each of the others
            transfer.meta = {key: item.meta[key] for key in _COPIED if key in item.meta}
            transfer.meta.update({"val": torch.empty_like(val, memory_format=torch.contiguous_format), node_metadata.RUNS_IN: target})
            self.sent[key] = transfer
        return self.sent[key]

    def _results(self, node: Node) -> None:
        """Send results to all stages that receive them."""
        results: Any = node.args[0]
        for output_index, item in enumerate(results):
            if isinstance(item, Node) and stage_of(item) != ALL and self.everywhere(output_index, item):
                node.replace_input_with(item, self._sent(item, ALL, node))
