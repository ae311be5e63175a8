"""Passes that every level runs first: constants, unused random states and values, operators that return their input."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.autograd.recompute import later, random_state, swap_state
from torchspore.engine.execution import printing
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import FakeTensor, is_operator
from torchspore.graph.fx import control_flow
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.fx.exchanges import is_exchange
from torchspore.graph.refusal import Refusal


def drop_dead(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Remove pure operators with unused results; keep writes, random operators and inputs."""
    for node in reversed(list(module.graph.nodes)):
        if node.op in ("call_function", "get_attr") and not node.users and not has_effect(node):
            module.graph.erase_node(node)
    return module


def has_effect(node: Node) -> bool:
    """Return whether the node has an effect besides its result: it writes, draws random numbers, is an exchange, may raise an error that
    nothing else raises, or is unknown."""
    target = node.target
    if node.op == "get_attr":
        return False
    if node_metadata.KEPT_FOR_ERRORS in node.meta:
        return True
    if not is_operator(target):
        arguments: tuple[Any, ...] = node.args
        graphs = [argument for argument in arguments if isinstance(argument, torch.fx.GraphModule)]
        if graphs:
            return any(has_effect(inner) for graph in graphs for inner in graph.graph.nodes if inner.op == "call_function")
        return getattr(target, "__name__", "") != "getitem"
    if target in printing.OPERATORS:
        return True
    if target is torch.ops.torchspore.control.default:
        record = control_flow.RECORDS[node.args[1]]  # type: ignore[index]
        return record.acts or any(
            has_effect(inner) for graph in record.graphs() for inner in graph.graph.nodes if inner.op == "call_function"
        )
    return is_exchange(node) or target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags or bool(writes(node))


_T = torch.ops.aten.t.default
_COPIES = {torch.ops.aten.detach.default, torch.ops.aten.alias.default, torch.ops.aten.lift_fresh.default}


def drop_copies(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace detach and alias by their input; without a gradient they do nothing."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target in _COPIES:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    return module


def cancel_views(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace `t(t(x))` by `x`. Both refer to the same memory, so writes have the same effect."""
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not _T:
            continue
        inner = node.args[0]
        if isinstance(inner, Node) and inner.op == "call_function" and inner.target is _T:
            node.replace_all_uses_with(inner.args[0])
            module.graph.erase_node(node)
    return module


def real_constants(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replace fake constants that an operator created from a Python number by real tensors. Raises Refusal if the values are unknown."""
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        value = getattr(module, node.target)
        if isinstance(value, FakeTensor):
            if value.constant is None:
                raise Refusal("makes a constant whose values are not known while capturing")
            setattr(module, node.target, value.constant)
    return module


def drop_idle_states(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Remove pairs of `swap_state` without a random operator between them, and then unused `random_state` nodes."""
    for node in reversed(list(module.graph.nodes)):
        if node.target is swap_state and node.users:
            (back,) = node.users
            if not _has_random_between(node, back):
                module.graph.erase_node(back)
                module.graph.erase_node(node)
        elif node.target is random_state and not node.users:
            module.graph.erase_node(node)
    return module


def _has_random_between(first: Node, last: Node) -> bool:
    node = first.next
    while node is not last:
        if node.op == "call_function" and _may_be_random(node):
            return True
        node = node.next
    return False


def _may_be_random(node: Node) -> bool:
    target = node.target
    if is_operator(target):
        return torch.Tag.nondeterministic_seeded in target.tags
    return target not in (later, random_state, swap_state) and getattr(target, "__name__", "") != "getitem"
