"""Exchanges in a graph: collectives, messages between two processes, and calls of the parameter server.

Every rank runs each collective once, in the same order.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals.custom_operators import EXCHANGES
from torchspore.engine.torch_internals.torch_private import is_operator


def is_exchange(node: Node) -> bool:
    """Return whether the node starts an exchange or waits for one."""
    target: Any = node.target
    if node.op != "call_function" or not is_operator(target):
        return False
    return target.namespace == "_c10d_functional" or (target.namespace == "torchspore" and target._opname in EXCHANGES)


def is_wait(node: Node) -> bool:
    """Return whether the node waits for an exchange and returns its result."""
    return is_exchange(node) and node.target._opname == "wait_tensor"  # type: ignore[union-attr]


def has_exchanges(module: torch.fx.GraphModule) -> bool:
    """Return whether a graph, or a branch or loop of it, contains an exchange."""
    for inner in module.modules():
        if isinstance(inner, torch.fx.GraphModule) and any(map(is_exchange, inner.graph.nodes)):
            return True
    return any(
        has_exchanges(item) for node in module.graph.nodes if node.op == "call_function" for item in node.args
        if isinstance(item, torch.fx.GraphModule)
    )


tracked_collectives: dict[str, Callable[..., Any]] = {}
"""By the name of each of torch's collective operators, the function that a graph at O0 calls instead: its errors name a missing process.

`distributed.comm.operators` fills this table.
"""
