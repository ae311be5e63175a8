"""`enable_allreduce_slice_to_reducescatter`: an all-reduce whose result each device slices becomes a reduce-scatter."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.partitioner import LocalGraph

_OPTION = "enable_allreduce_slice_to_reducescatter"


def scattered(local: LocalGraph) -> None:
    """Replace each all-reduce whose only use is the device's slice by a reduce-scatter, if the context requests it."""
    if not STORE.get(_OPTION):
        return
    graph, count = local.module.graph, 0
    for node in list(graph.nodes):
        source: Any = node.args[0] if node.target is nodes.cut else None
        if not isinstance(source, torch.fx.Node) or source.target is not nodes.all_reduce or len(source.users) > 1:
            continue
        x, axes, kind, mesh = source.args
        if tuple(node.args[1]) != tuple(axes):                 # type: ignore[arg-type]
            continue
        with graph.inserting_before(node):
            scattered = graph.call_function(nodes.reduce_scatter, (x, axes, kind, node.args[2], mesh))
        scattered.meta = dict(node.meta)
        node.replace_all_uses_with(scattered)
        graph.erase_node(node)
        graph.erase_node(source)
        count += 1
    effects.report(_OPTION, Outcome.applied(f"{count} sums are made in parts") if count else Outcome.no_effect(
        "no sum of the last graph is sliced at once: partial sums are scattered without it"))
