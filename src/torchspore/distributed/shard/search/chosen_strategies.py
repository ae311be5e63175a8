"""The result of a search, as strategies of the program's operators."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.fx.node import Node

from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.torch_internals import node_metadata

if TYPE_CHECKING:
    from torchspore.distributed.shard.sharded_capture import ShardedCapture


def strategies(sharded_capture: ShardedCapture, local: LocalGraph, lifted: Sequence[Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return, by its MindSpore name, the strategy of each operator of the forward pass that has a Parameter."""
    holders = [node for node in local.split_operators[0].node.graph.nodes if node.op == "placeholder"] if local.split_operators else []
    names = {node: str(item.name) for node, item in zip(holders, lifted) if hasattr(item, "name")}
    calls: dict[Any, list[Any]] = {}
    for placed in local.split_operators:
        meta = placed.node.meta
        if meta.get(node_metadata.CALLED) and not meta.get(node_metadata.GRADIENT) and not meta.get(node_metadata.OPTIMIZER):
            calls.setdefault(meta.get(node_metadata.CALL), []).append(placed)
    strategies: dict[str, tuple[tuple[int, ...], ...]] = {}
    for each in calls.values():
        node = {placed.node for placed in each}
        used: dict[Node, Layout] = {}
        for placed in each:
            for source, layout in placed.used.items():
                if source not in node and source not in used:
                    used[source] = layout
        name = next((names[source] for source in used if source in names), "")
        if name:
            called = str(each[0].node.meta[node_metadata.CALLED])
            cuts = {source: layout.counts(local.mesh) for source, layout in used.items()}
            for primitive_name, strategy in _named(called, name, cuts, names).items():
                strategies.setdefault(primitive_name, strategy)
    return {name: strategy for name, strategy in strategies.items() if name not in sharded_capture.strategies}


def _named(called: str, name: str, cuts: dict[Node, Any], names: dict[Node, str]) -> dict[str, Any]:
    """Return the strategies of a call by MindSpore's names: a Dense layer is a product and, with a bias, a sum."""
    if called == "Gather":                             # the table first, as the primitive takes it
        cuts = dict(sorted(cuts.items(), key=lambda item: item[0] not in names))
    if called != "Dense":
        return {f"{called}_{name}": tuple(cuts.values())}
    weights = [source for source in cuts if source in names]
    weight = next((source for source in weights if len(cuts[source]) == 2), None)
    x = next((source for source in cuts if source not in names), None)
    if weight is None or x is None:
        return {}
    strategies = {f"MatMul_{names[weight]}": (cuts[x], cuts[weight])}
    bias = next((source for source in weights if len(cuts[source]) == 1), None)
    if bias is not None:
        strategies[f"BiasAdd_{names[bias]}"] = ((*cuts[x][:-1], cuts[weight][0]), cuts[bias])
    return strategies
