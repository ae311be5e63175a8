"""Exchanges between processes in a graph: every rank runs each of them once, in the same order."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core.torch_private import is_operator

_OURS = frozenset({"scatter", "gather", "exchange", "barrier", "pass_on", "take_over"})


def is_exchange(node: Node) -> bool:
    """Return whether the node is an exchange, or waits for one."""
    target: Any = node.target
    if node.op != "call_function" or not is_operator(target):
        return False
    return target.namespace == "_c10d_functional" or (target.namespace == "torchspore" and target._opname in _OURS)


def is_wait(node: Node) -> bool:
    """Return whether the node gives the value of an exchange when that is over."""
    return is_exchange(node) and node.target._opname == "wait_tensor"  # type: ignore[union-attr]


def exchanges(module: torch.fx.GraphModule) -> bool:
    """Return whether there is an exchange in a graph, or in a branch or loop of it."""
    for inner in module.modules():
        if isinstance(inner, torch.fx.GraphModule) and any(map(is_exchange, inner.graph.nodes)):
            return True
    return any(
        exchanges(item) for node in module.graph.nodes if node.op == "call_function" for item in node.args
        if isinstance(item, torch.fx.GraphModule)
    )


twins: dict[str, Callable[..., Any]] = {}
"""By the names of torch's collective operators, the functions that a graph at O0 calls instead: they name a process that is missing.

`distributed.comm.operators` enters them.
"""
