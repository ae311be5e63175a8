"""Which memory of a graph may hold other values later on, so that a value read from it early and late may differ."""
from __future__ import annotations

import operator

import torch
from torch.fx.node import Node

from torchspore.engine.graph.passes.views import root
from torchspore.engine.graph.passes.writes import writes
from torchspore.engine.private import is_operator


def changing(module: torch.fx.GraphModule) -> set[Node]:
    """The nodes whose memory is written, or handed to what may write into it without saying so."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        found.update(root(item) for item in writes(node))
        if node.op == "call_function" and not is_operator(node.target) and node.target is not operator.getitem:
            found.update(root(item) for item in node.all_input_nodes)
    return found


def leaves(node: Node) -> bool:
    """Whether the value, or a view of it, is a result of the graph: the program may write into that later."""
    waiting, seen = [node], {node}
    while waiting:
        for user in waiting.pop().users:
            if user.op == "output":
                return True
            if user not in seen and root(user) is not user:
                seen.add(user)
                waiting.append(user)
    return False
