"""Decides which nodes become one kernel: clusters of neighbours, divided if they are too large, joined if they are small and independent.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Hashable

import torch
from torch.fx.node import Node

from torchspore.engine.tensors import tree
from torchspore.graph.backend import kernel_operators
from torchspore.graph.fx import open_sizes
from torchspore.graph.fx.aliasing import is_view, writes
from torchspore.graph.fx.order import dependencies
from torchspore.graph.fx.unit_graph import UnitGraph
from torchspore.graph.passes.clusters import Cluster, build_clusters, cluster_of
from torchspore.graph.passes.joined_products import MAX_OPEN_GROUPS
from torchspore.graph.settings import Flags

FEWEST = 2
"""A kernel of fewer operators is not a fusion."""
SMALL = 1 << 16
"""Kernels whose results have no more values than this are joined though they share nothing but their shape."""


def groups(module: torch.fx.GraphModule, flags: Flags) -> list[Cluster]:
    """The clusters that become kernels, each of two operators or more."""
    return [
        cluster for cluster in all_groups(module, flags)
        if cluster.outputs and work(cluster) >= FEWEST and open_sizes.are_symbols_bound(cluster.inputs, cluster.nodes)
    ]


def all_groups(module: torch.fx.GraphModule, flags: Flags) -> list[Cluster]:
    """Return the groups, including those with one operator or none."""
    nodes = list(module.graph.nodes)
    groups = build_clusters(
        module, lambda node: kernel_operators.is_allowed(flags, node), kernel_operators.Apart(flags, nodes),
        (lambda node: may_wait(node, flags.extra_lifetime)) if flags.recompute else None,
    ) if flags.runs("graph_kernel_cluster", 1) else []
    groups = [part for cluster in groups for part in _limited(cluster, flags.limit)]
    index_of = {node: at for at, node in enumerate(nodes)}
    if flags.horizontal:
        groups = _together(groups, flags.limit, index_of, _readers)
    if flags.parallel:
        groups = _together(groups, flags.limit, index_of, _shapes)
    if flags.parallel and flags.is_global:
        groups = _joined_anywhere(groups, flags.limit, nodes, index_of)
    return groups


def work(cluster: Cluster) -> int:
    """Return how many operators of the cluster would be separate kernels without fusion."""
    return sum(kernel_operators.is_work(node) for node in cluster.nodes)


def bytes_of(node: Node) -> int:
    """The size of a value; with open lengths, the size that it had in the trace."""
    value = node.meta.get("val")
    return sum(open_sizes.bytes_of(v) for v in tree.listed(value) if isinstance(v, torch.Tensor))


def may_wait(node: Node, more: int) -> bool:
    """Return whether an elementwise operator may run later: its inputs then live longer, which may take `more` bytes beyond its result."""
    if not (is_view(node) or kernel_operators.is_plain(node)) or node.target is torch.ops.aten.split.Tensor:
        return False
    saved_bytes = sum(bytes_of(item) for item in node.all_input_nodes if item.op == "call_function")
    return saved_bytes <= bytes_of(node) + more


def _limited(cluster: Cluster, limit: int) -> list[Cluster]:
    """The cluster, or pieces of it with no more operators than the limit; each piece needs earlier ones alone."""
    if work(cluster) <= limit:
        return [cluster]
    piece_of: dict[Node, int] = {}
    piece = count = 0
    for node in cluster.nodes:
        if node.target is operator.getitem:
            piece_of[node] = piece_of.get(node.args[0], piece)  # type: ignore[arg-type]
            continue
        if kernel_operators.is_work(node):
            if count == limit:
                piece, count = piece + 1, 0
            count += 1
        piece_of[node] = piece
    # No layer: pieces wait for each other.
    return [cluster_of([node for node in cluster.nodes if piece_of[node] == at], -1) for at in range(piece + 1)]


# ---- joining

def _together(groups: list[Cluster], limit: int, index_of: dict[Node, int], alike: Callable[[Cluster], Hashable | None]) -> list[Cluster]:
    """Return the clusters with those of one layer merged if `alike` returns the same for them."""
    rest: list[Cluster] = []
    open_: dict[Hashable, Cluster] = {}
    for cluster in groups:
        key = alike(cluster) if cluster.layer >= 0 and work(cluster) and cluster.outputs and not any(map(writes, cluster.nodes)) else None
        if key is None:
            rest.append(cluster)
            continue
        before = open_.get((cluster.layer, key))
        if before is not None and work(before) + work(cluster) <= limit:
            cluster = cluster_of(sorted([*before.nodes, *cluster.nodes], key=index_of.__getitem__), cluster.layer)
        elif before is not None:
            rest.append(before)
        open_[cluster.layer, key] = cluster
    return sorted([*rest, *open_.values()], key=lambda cluster: index_of[cluster.nodes[0]])


def _joined_anywhere(groups: list[Cluster], limit: int, nodes: list[Node], index_of: dict[Node, int]) -> list[Cluster]:
    """Join small clusters of one shape in all layers, if none depends on another."""
    before, _ = dependencies(nodes)
    units = UnitGraph(before, [cluster.nodes for cluster in groups])
    rest: list[Cluster] = []
    open_groups: dict[Hashable, list[Cluster]] = {}
    for cluster in groups:
        key = _shapes(cluster) if work(cluster) and cluster.outputs and not any(map(writes, cluster.nodes)) else None
        if key is None:
            rest.append(cluster)
            continue
        alike = open_groups.setdefault(key, [])
        for at in range(max(0, len(alike) - MAX_OPEN_GROUPS), len(alike)):
            first = alike[at].nodes[0]
            if work(alike[at]) + work(cluster) <= limit and units.are_independent(first, cluster.nodes[0]):
                units.join(first, cluster.nodes[0])
                alike[at] = cluster_of(sorted([*alike[at].nodes, *cluster.nodes], key=index_of.__getitem__), -1)
                break
        else:
            alike.append(cluster)
    return sorted([*rest, *(item for alike in open_groups.values() for item in alike)], key=lambda cluster: index_of[cluster.nodes[0]])


def _shapes(cluster: Cluster) -> Hashable | None:
    """The shape of all its results, where they are small."""
    shapes = {(open_sizes.shape_of(v), v.device) for node in cluster.outputs for v in [node.meta.get("val")] if isinstance(v, torch.Tensor)}
    (shape,) = shapes if len(shapes) == 1 else [None]
    if shape is None or torch.Size(shape[0]).numel() > SMALL or any(map(kernel_operators.is_reduction, cluster.nodes)):
        return None
    return shape


def _readers(cluster: Cluster) -> Hashable | None:
    """The greatest value that it reads and the shapes of its results."""
    shape = {(open_sizes.shape_of(v), v.device) for node in cluster.outputs for v in [node.meta.get("val")] if isinstance(v, torch.Tensor)}
    read = max(cluster.inputs, key=bytes_of, default=None)
    return (read, frozenset(shape)) if read is not None and len(shape) == 1 else None
