"""Drops what keeps the state of random numbers for a second run that draws none."""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.engine.private import is_operator
from torchspore.engine.recompute import later, random_state, swap_state


def drop_idle_states(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Without pairs of `swap_state` that have no random operator between them, and `random_state` that nobody reads then."""
    for node in reversed(list(module.graph.nodes)):
        if node.target is swap_state and node.users:
            (back,) = node.users
            if not _draws_between(node, back):
                module.graph.erase_node(back)
                module.graph.erase_node(node)
        elif node.target is random_state and not node.users:
            module.graph.erase_node(node)
    return module


def _draws_between(first: Node, last: Node) -> bool:
    node = first.next
    while node is not last:
        if node.op == "call_function" and _may_draw(node):
            return True
        node = node.next
    return False


def _may_draw(node: Node) -> bool:
    target = node.target
    if is_operator(target):
        return torch.Tag.nondeterministic_seeded in target.tags
    return target not in (later, random_state, swap_state) and getattr(target, "__name__", "") != "getitem"
