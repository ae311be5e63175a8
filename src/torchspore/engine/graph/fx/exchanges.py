"""The exchanges between processes that a graph holds."""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.engine.private import is_operator

_FUNCTIONAL = "_c10d_functional"
_OURS = ("broadcast", "scatter", "gather", "exchange", "barrier")


def is_exchange(node: Node) -> bool:
    """Whether other processes take part in this operator."""
    if node.op != "call_function" or not is_operator(node.target):
        return False
    namespace, _, name = node.target._schema.name.partition("::")
    return (namespace == _FUNCTIONAL and name != "wait_tensor") or (namespace == "torchspore" and name in _OURS)


def is_wait(node: Node) -> bool:
    """Whether the operator waits for an exchange that was started."""
    return node.op == "call_function" and is_operator(node.target) and node.target._schema.name == f"{_FUNCTIONAL}::wait_tensor"


def holds(module: torch.fx.GraphModule) -> bool:
    """Whether other processes take part in a graph, in its branches and loops too: nobody may run it alone, to measure it."""
    return any(
        is_exchange(node) for part in module.modules() if isinstance(part, torch.fx.GraphModule) for node in part.graph.nodes
    )
