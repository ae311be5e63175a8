"""Drops values that nobody reads."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.graph.control import records
from torchspore.engine.graph.passes.writes import writes
from torchspore.engine.private import is_operator


def drop_dead(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Without pure operators whose result is unused; writes, random operators and inputs stay."""
    for node in reversed(list(module.graph.nodes)):
        if node.op in ("call_function", "get_attr") and not node.users and not acts(node):
            module.graph.erase_node(node)
    return module


def acts(node: Node) -> bool:
    """Whether the node does something besides giving a value: writes, draws random numbers, or is unknown."""
    target = node.target
    if node.op == "get_attr":
        return False
    if not is_operator(target):
        arguments: tuple[Any, ...] = node.args
        graphs = [argument for argument in arguments if isinstance(argument, torch.fx.GraphModule)]
        if graphs:
            return any(acts(inner) for graph in graphs for inner in graph.graph.nodes if inner.op == "call_function")
        return getattr(target, "__name__", "") != "getitem"
    if target is torch.ops.torchspore.control.default:
        record = records.RECORDS[node.args[1]]  # type: ignore[index]
        return record.acts or any(acts(inner) for graph in record.graphs() for inner in graph.graph.nodes if inner.op == "call_function")
    return target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags or bool(writes(node))
