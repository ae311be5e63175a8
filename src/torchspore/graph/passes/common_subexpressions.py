"""Computes equal values once."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import is_operator
from torchspore.graph.fx.aliasing import changing, leaves, root
from torchspore.graph.fx.modules import change_inner
from torchspore.graph.passes.cleanup import acts


def common_subexpressions(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With one node for all that run the same operator on the same values; the numbers are the same bits.

    Writes, random numbers, reads of memory that changes, and values that are recomputed on purpose stay. Of two
    equal results of the graph both stay, because the program may write into one of them; and so do those of two stages of a pipeline.
    """
    change_inner(module, _changed)
    return _changed(module)


def _changed(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    moving = changing(module)
    seen: dict[Any, Node] = {}
    for node in list(module.graph.nodes):
        if not _is_steady(node, moving):
            continue
        key = (_key((node.target, node.args, node.kwargs)), node.meta.get(node_metadata.STAGE))
        first = seen.setdefault(key, node)
        if first is node or (leaves(first) and leaves(node)):
            continue
        node.replace_all_uses_with(first)
        module.graph.erase_node(node)
    return module


def _is_steady(node: Node, moving: set[Node]) -> bool:
    if node.op != "call_function" or node_metadata.RECOMPUTED in node.meta:
        return False
    if node.target is not operator.getitem and (not is_operator(node.target) or acts(node)):
        return False
    return root(node) not in moving and not any(root(item) in moving for item in node.all_input_nodes)


def _key(value: Any) -> Any:
    """The value as something that tells 1 from 1.0 and True, and 0.0 from -0.0."""
    if isinstance(value, Node) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return (type(value), *[_key(item) for item in value])
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in sorted(value.items()))
    if isinstance(value, (int, float, complex)):
        return type(value), repr(value)
    return id(value) if value.__hash__ is None else value
