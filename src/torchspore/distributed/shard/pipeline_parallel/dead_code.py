"""Removes nodes that a graph no longer needs after a split."""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.alias_conflicts import nodes_written_by
from torchspore.graph.fx.aliasing import owners
from torchspore.graph.passes.cleanup import has_effect


def prune(module: torch.fx.GraphModule, may_go: Callable[[Node], bool] = lambda node: True) -> None:
    """Remove unread values, and writes into memory that is not read afterwards; operators that print, draw or check remain."""
    owner = owners(module.graph)
    read: set[Node] = set()
    for node in reversed(list(module.graph.nodes)):
        targets = {owner[item] for item in nodes_written_by(node)}
        if targets:
            is_idle = not any(target_node.op == "placeholder" or target_node in read for target_node in targets)
        else:
            is_idle = not has_effect(node) or node.target in nodes.LOCAL
        if node.op == "call_function" and not node.users and is_idle and may_go(node):
            module.graph.erase_node(node)
        else:
            read.update(owner[item] for item in node.all_input_nodes)
