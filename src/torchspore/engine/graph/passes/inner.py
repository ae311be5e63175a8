"""Branches and loop bodies: graphs that a graph holds as arguments."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Module = torch.fx.GraphModule


def has_inner(module: Module) -> bool:
    """Whether the graph holds others."""
    return any(isinstance(item, Module) for node in module.graph.nodes for item in _flat(node.args))


def inner_of(module: Module) -> list[Module]:
    """The graphs among the arguments of its nodes."""
    return [item for node in module.graph.nodes for item in _flat(node.args) if isinstance(item, Module)]


def change_inner(module: Module, change: Callable[[Module], Module | None]) -> bool:
    """Gives each graph inside to `change` and puts what comes back in its place, None leaves it; says whether one was replaced."""
    replaced = False

    def one(value: Any) -> Any:
        nonlocal replaced
        if isinstance(value, Module):
            found = change(value)
            replaced = replaced or found is not None
            return value if found is None else found
        return type(value)(one(item) for item in value) if type(value) in (list, tuple) else value

    for node in module.graph.nodes:
        if any(isinstance(item, Module) for item in _flat(node.args)):
            node.args = tuple(one(item) for item in node.args)
    return replaced


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, (list, tuple)) else [value]
