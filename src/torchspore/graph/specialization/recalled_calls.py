"""The graphs of the last calls, by the form of their arguments in C++: a call like an earlier one needs no key.

A call is recalled if its arguments are Tensors without attributes, and if nothing else in its key has changed. The graph
then checks the state of the program as after a lookup by key.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.store import STORE
from torchspore.engine.native import operators
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.graph.specialization.compiled_graph import Graph

_MOST_FORMS = 16
_argument_form = operators.short_path("argument_form")


def recall(owner: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> Graph | None:
    """Return the graph that served the last call with arguments of this form, if it still matches; else None."""
    state = owner.__dict__
    table = state.get("_graphs_")
    if table is None or not table.recalled or engine.active or state.get("_jit_config_"):
        return None
    form = _argument_form(*args)  # type: ignore[misc]
    if form is None:
        return None
    stored = table.recalled.get((form, getattr(function, "__func__", function)))
    if stored is None or stored[0] != (STORE.version, change_counters.generation, change_counters.processes):
        return None
    graph = stored[1]
    return graph if graph.matches(change_counters.cells, list(args)) else None


def remember(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], graph: Graph) -> None:
    """Store the graph of a call that a lookup by key has returned."""
    if _argument_form is None or engine.active or owner.__dict__.get("_jit_config_") or getattr(function, "_jit_config_", None):
        return
    form = _argument_form(*args)
    if form is not None:
        recalled = owner.__dict__["_graphs_"].recalled
        if len(recalled) >= _MOST_FORMS:
            recalled.clear()
        recalled[form, getattr(function, "__func__", function)] = (
            (STORE.version, change_counters.generation, change_counters.processes), graph,
        )
