"""Which values an operator writes into."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.private import is_operator

_BATCH_NORM = torch.ops.aten.native_batch_norm.default


def writes(node: Node) -> list[Node]:
    """The values that an operator writes into; batch norm in training writes its running statistics, though its schema does not say so."""
    if node.op != "call_function" or not is_operator(node.target):
        return []
    if node.target is _BATCH_NORM:
        return [item for item in node.args[3:5] if isinstance(item, Node)] if node.args[5] else []
    found: list[Node] = []
    if node.target._schema.is_mutable:
        for argument, value in zip(node.target._schema.arguments, node.args):
            if argument.alias_info is not None and argument.alias_info.is_write and not _only_reads(node, argument.name):
                found += [item for item in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(item, Node)]
        found += [value for key, value in node.kwargs.items() if isinstance(value, Node) and _is_written(node.target, key)]
    return found


def _only_reads(node: Node, name: str) -> bool:
    """Whether a fused optimizer reads these gradients, though its schema says that it writes them: it does where it scales them."""
    return name == "grads" and node.target._opname.startswith("_fused_") and node.kwargs.get("grad_scale") is None  # type: ignore[union-attr]


def _is_written(target: Any, name: str) -> bool:
    return any(a.name == name and a.alias_info is not None and a.alias_info.is_write for a in target._schema.arguments)
