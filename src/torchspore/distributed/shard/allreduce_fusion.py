"""Fuses all-reduces of gradients as `comm_fusion` says: sums over the same devices travel as one flat message."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.data_parallel import fusion
from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard import node_builder
from torchspore.distributed.shard.node_builder import faking
from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.engine.torch_internals import node_metadata

_aten = torch.ops.aten


def fused(local: LocalGraph) -> tuple[int, int]:
    """Fuse the sums that only the optimizer waits for. Return their number, and the number of messages that carry them."""
    graph = local.module.graph
    position_of = {node: at for at, node in enumerate(graph.nodes)}
    first = next((node for node in graph.nodes if node.meta.get(node_metadata.OPTIMIZER) and node.target is not nodes.all_reduce), None)
    if first is None:
        return 0, 0
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        if node.target is nodes.all_reduce and _is_late(node, position_of, position_of[first]):
            val = node.meta["val"]
            groups.setdefault((node.args[1], node.args[2], val.dtype, node.meta.get(node_metadata.RUNS_IN)), []).append(node)
    count = messages = 0
    rule = fusion.rule("allreduce")
    with faking(local.module):
        for sums in groups.values():
            count += len(sums)
            sizes = [node.meta["val"].numel() * node.meta["val"].element_size() for node in sums]
            for bucket in fusion.of_gradients([1] * len(sums), sizes, rule):
                messages += 1
                if len(bucket) > 1:
                    _join(graph, [sums[at] for at in bucket], first)
    return count, messages


def _is_late(node: Node, position_of: dict[Node, int], first: int) -> bool:
    """Return whether a sum can wait until the optimizer begins, and whether its operand exists by then."""
    source: Any = node.args[0]
    return position_of[source] < first and all(position_of[user] >= first for user in node.users) and bool(node.users)


def _join(graph: torch.fx.Graph, sums: list[Node], before: Node) -> None:
    """Replace several messages by one."""
    def put(target: Any, *args: Any) -> Node:
        return node_builder.call(graph, target, args, sums[0])

    with graph.inserting_before(before):
        rows = [put(_aten.reshape.default, node.args[0], [-1]) for node in sums]
        _, axes, kind, mesh = sums[0].args
        joined = put(nodes.all_reduce, put(_aten.cat.default, rows), axes, kind, mesh)
        start = 0
        for node in sums:
            val = node.meta["val"]
            part = put(_aten.slice.Tensor, joined, 0, start, start + val.numel())
            start += val.numel()
            node.replace_all_uses_with(put(_aten.reshape.default, part, list(val.shape)))
            graph.erase_node(node)
