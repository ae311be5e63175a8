"""Computes cheap values again in each kernel that reads them, so that no kernel has to write them and none waits for them."""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.backend import kernel_operators
from torchspore.graph.fx.aliasing import is_view, mutated_owners, owner_of
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.graph_kernels.partition import FEWEST, all_groups, bytes_of, work
from torchspore.graph.passes.cleanup import drop_dead
from torchspore.graph.passes.clusters import Cluster
from torchspore.graph.settings import Flags

CHEAP = kernel_operators.EXACT - kernel_operators.MOVES
"""Operators of a few instructions a value."""
LONGEST = 4
"""So many operators in a row are computed again at most."""


def recomputed(module: torch.fx.GraphModule, flags: Flags) -> torch.fx.GraphModule:
    """Give each kernel that reads a cheap value a copy of it, if nothing else reads the value; the bits are equal."""
    module = copy_module(module)
    groups = all_groups(module, flags)
    home = {node: at for at, cluster in enumerate(groups) for node in cluster.nodes}
    index_of = {node: at for at, node in enumerate(module.graph.nodes)}
    moving = mutated_owners(module)
    changed = False
    for at, cluster in enumerate(groups):
        for node in cluster.outputs:
            readers = {home.get(user, -1) for user in node.users} - {at}
            if not readers or -1 in readers or any(work(groups[reader]) + 1 < FEWEST for reader in readers):
                continue
            chain = _chain(node, cluster, flags)
            if chain is None or any(owner_of(item) in moving for link in chain for item in link.all_input_nodes):
                continue
            if not _stays_in_memory(chain, [user for user in node.users if home[user] in readers], index_of, flags.extra_lifetime):
                continue
            for reader in sorted(readers):
                first, copies = _copy(module, chain, node, groups[reader])
                home.update(dict.fromkeys(copies, reader))         # they are asked about like all others from here on
                index_of.update(dict.fromkeys(copies, index_of[first]))
            changed = True
    return drop_dead(module) if changed else module


def _chain(node: Node, cluster: Cluster, flags: Flags) -> list[Node] | None:
    """The operators of the cluster that lead to the value, first ones first; None where they are many, dear or too small to matter."""
    if bytes_of(node) < flags.smallest:
        return None
    inside = set(cluster.nodes)
    chain: list[Node] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here in chain:
            continue
        if not ((kernel_operators.is_work(here) and here.target._opname in CHEAP) or is_view(here)):  # type: ignore[union-attr]
            return None
        chain.append(here)
        if sum(map(kernel_operators.is_work, chain)) > LONGEST:
            return None
        waiting += [item for item in here.all_input_nodes if item in inside]
    if not any(map(kernel_operators.is_work, chain)):
        return None
    order = {item: at for at, item in enumerate(cluster.nodes)}
    return sorted(chain, key=order.__getitem__)


def _stays_in_memory(chain: list[Node], readers: list[Node], index_of: dict[Node, int], more: int) -> bool:
    """Return whether what the chain reads is there until its readers run, but for `more` bytes beyond the size of the value itself."""
    last = max(index_of[reader] for reader in readers)
    inside = set(chain)
    outer = {item for node in chain for item in node.all_input_nodes if item not in inside and item.op == "call_function"}
    longer = [item for item in outer if all(index_of[user] < last for user in item.users if user not in inside)]
    return sum(map(bytes_of, longer)) <= bytes_of(chain[-1]) * bool(longer) + more


def _copy(module: torch.fx.GraphModule, chain: list[Node], value: Node, reader: Cluster) -> tuple[Node, list[Node]]:
    """Give the operators of `reader` a copy of the chain; return the node before which it stands."""
    users = [node for node in reader.nodes if value in node.all_input_nodes]
    names: dict[Node, Node] = {}
    with module.graph.inserting_before(users[0]):
        for node in chain:
            names[node] = module.graph.node_copy(node, lambda n: names.get(n, n))
            names[node].meta[node_metadata.RECOMPUTED] = True
    for user in users:
        user.replace_input_with(value, names[value])
    at = reader.nodes.index(users[0])
    reader.nodes[at:at] = names.values()
    return users[0], list(names.values())
