"""Removes needless dependencies between micro batches: the order of sums of gradients, and constants in the shape of a computed value."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.node_builder import faking
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import stage_of
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.aliasing import owners

_aten = torch.ops.aten
_add = _aten.add.Tensor
_SHAPED: dict[Any, float] = {_aten.ones_like.default: 1, _aten.zeros_like.default: 0}


def by_shape(module: torch.fx.GraphModule) -> None:
    """Create a constant from the shape alone if it reads only the shape of another value."""
    for node in list(module.graph.nodes):
        val = node.meta.get("val")
        if node.target not in _SHAPED or not isinstance(val, torch.Tensor) or val.layout is not torch.strided:
            continue
        with module.graph.inserting_before(node):
            new_node = module.graph.call_function(
                _aten.full.default, (list(val.shape), _SHAPED[node.target]), {"dtype": val.dtype, "device": val.device},
            )
        new_node.meta = dict(node.meta)
        with faking(module):
            new_node.meta["val"] = val.new_empty(val.shape)
        node.replace_all_uses_with(new_node)
        module.graph.erase_node(node)


def by_parts(module: torch.fx.GraphModule) -> None:
    """Sum the gradients of micro batches in their order, on each stage separately, so that each addition runs when its term exists.

    A sum over micro batches is a chain of additions in autograd's order; the terms are the same.
    """
    graph = module.graph
    root = owners(graph)
    sums = [node for node in graph.nodes if _is_sum(node) and not (len(node.users) == 1 and _is_sum(next(iter(node.users))))]
    position_of = {node: at for at, node in enumerate(graph.nodes)}
    for node in sums:
        terms = sorted(_terms(node), key=lambda term: (term.meta.get(node_metadata.PART) or (), position_of[term]))
        parts = {term.meta.get(node_metadata.PART) for term in terms}
        if len(terms) < 3 or len(parts) < 2 or len({root[term] for term in terms}) < len(terms):
            continue
        by_stage: dict[int, list[Node]] = {}
        for term in terms:
            by_stage.setdefault(stage_of(term), []).append(term)
        with graph.inserting_before(node), faking(module):
            sums_of_stages = [
                _chain(graph, stage_terms, {**node.meta, node_metadata.RUNS_IN: stage}) for stage, stage_terms in sorted(by_stage.items())
            ]
            node.replace_all_uses_with(_chain(graph, sums_of_stages, node.meta))
    for node in reversed(list(graph.nodes)):
        if node.target is _add and not node.users:
            graph.erase_node(node)


def _chain(graph: torch.fx.Graph, terms: list[Node], meta: dict[str, Any]) -> Node:
    """Write the sum of the terms, from the first on."""
    total = terms[0]
    for term in terms[1:]:
        total_node = graph.call_function(_add, (total, term))
        total_node.meta = {**meta, node_metadata.PART: term.meta.get(node_metadata.PART), "val": _add(total.meta["val"], term.meta["val"])}
        total = total_node
    return total


def _is_sum(node: Node) -> bool:
    """Return whether a node adds two gradients of one shape without a factor."""
    if node.target is not _add or node.kwargs or not node.meta.get(node_metadata.GRADIENT):
        return False
    first, other = (item.meta.get("val") if isinstance(item, Node) else None for item in node.args)
    return (
        isinstance(first, torch.Tensor) and isinstance(other, torch.Tensor) and first.shape == other.shape and first.dtype == other.dtype
        and first.is_floating_point()
    )


def _terms(node: Node) -> list[Node]:
    """Return the terms of a chain of additions."""
    terms: list[Node] = []
    open_ = [node]
    while open_:
        term = open_.pop()
        for item in term.args:
            if isinstance(item, Node) and _is_sum(item) and len(item.users) == 1:
                open_.append(item)
            elif isinstance(item, Node):
                terms.append(item)
    return terms
