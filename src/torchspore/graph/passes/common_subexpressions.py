"""Elimination of common subexpressions: equal values are computed once."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import is_result, mutated_owners, owner_of
from torchspore.graph.fx.modules import transform_inner
from torchspore.graph.passes.cleanup import has_effect


def common_subexpressions(
    module: torch.fx.GraphModule, is_mergeable: Callable[[Node], bool] = lambda node: True,
) -> torch.fx.GraphModule:
    """Replace nodes that run the same operator on the same values by one node, in place. The results have equal bits.

    Writes, random operators, reads of mutated memory and intended recomputations are not merged. Two equal results of the graph are not
    merged either, because the program may write into one of them, nor are nodes of different pipeline stages, nor nodes for which
    `is_mergeable` returns False.
    """
    merge = functools.partial(_merge_equal_nodes, is_mergeable=is_mergeable)
    if any(node.op == "call_function" and not is_operator(node.target) for node in module.graph.nodes):       # a branch or loop
        transform_inner(module, merge)
    return merge(module)


def _merge_equal_nodes(module: torch.fx.GraphModule, is_mergeable: Callable[[Node], bool]) -> torch.fx.GraphModule:
    mutated: set[Node] | None = None
    seen: dict[Any, Node] = {}
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node_metadata.RECOMPUTED in node.meta:
            continue
        key = (_key((node.target, node.args, node.kwargs)), node.meta.get(node_metadata.STAGE))
        first = seen.setdefault(key, node)
        if first is node:
            continue
        mutated = mutated_owners(module) if mutated is None else mutated
        if not _is_pure(first, mutated):
            seen[key] = node
        elif _is_pure(node, mutated) and is_mergeable(node) and not (is_result(first) and is_result(node)):
            node.replace_all_uses_with(first)
            module.graph.erase_node(node)
    return module


def _is_pure(node: Node, mutated: set[Node]) -> bool:
    if node.target is not operator.getitem and (not is_operator(node.target) or has_effect(node)):
        return False
    return owner_of(node) not in mutated and not any(owner_of(item) in mutated for item in node.all_input_nodes)


def _key(value: Any) -> Any:
    """Return a hashable key that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    if isinstance(value, Node) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return (type(value), *[_key(item) for item in value])
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in sorted(value.items()))
    if isinstance(value, (int, float, complex)):
        return type(value), repr(value)
    return id(value) if value.__hash__ is None else value
