"""The graphs of the last calls, by the form of their arguments in C++: a call like an earlier one needs no key.

A call is recalled if its arguments are Tensors without attributes, or tuples and lists of them, and if nothing else in its key has changed.
The lengths of open axes do not count. The graph then checks lengths and the state of the program as after a lookup by key.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.store import STORE
from torchspore.engine.native import operators
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.graph.capture.dynamic_shapes import Axes
from torchspore.graph.specialization import graph_table
from torchspore.graph.specialization.compiled_graph import Graph

_MOST_FORMS = 16
_LAST_AXIS = 7
_NO_AXES = b""
_argument_form = operators.short_path("argument_form")


def recall(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], flat: list[Any]) -> Graph | None:
    """Return the graph that served the last call with arguments of this form, if it still matches; else None.

    Appends the Tensors among the arguments to `flat`, an empty list, if there is a graph.
    """
    state = owner.__dict__
    table = state.get("_graphs_")
    if table is None or not table.recalled or engine.active or state.get("_jit_config_"):
        return None
    ran = getattr(function, "__func__", function)
    for axes in (table.open_axes, _NO_AXES) if table.open_axes else (_NO_AXES,):
        form = _argument_form(args, axes, flat)  # type: ignore[misc]
        stored = None if form is None else table.recalled.get((form, ran))
        if stored is not None:
            graph = stored[1]
            if stored[0] == _state(table) and graph.matches(change_counters.cells, flat):
                return graph
            break
        flat.clear()
    flat.clear()
    return None


def remember(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], graph: Graph) -> None:
    """Store the graph of a call that a lookup by key has returned."""
    if _argument_form is None or engine.active or owner.__dict__.get("_jit_config_") or getattr(function, "_jit_config_", None):
        return
    table, axes = owner.__dict__["_graphs_"], _NO_AXES
    flat: list[Any] = []
    form = _argument_form(args, axes, flat)
    if form is not None and graph.has_open_lengths:
        if "_open_inputs_" in owner.__dict__:            # each call checks the declaration
            return
        axes = _open_axes(flat, graph_table.open_axes(owner, args, {}))
        if not any(axes):
            return
        table.open_axes = axes
        form = _argument_form(args, axes, [])
    if form is not None:
        recalled = table.recalled
        if len(recalled) >= _MOST_FORMS:
            recalled.clear()
        recalled[form, getattr(function, "__func__", function)] = _state(table), graph


def _state(table: graph_table.Table) -> tuple[int, ...]:
    """Return the counts of changes that are in no form of arguments."""
    return STORE.version, change_counters.generation, change_counters.processes, table.lengths.changes


def _open_axes(flat: list[Any], axes: dict[int, Axes]) -> bytes:
    """Return a byte for each Tensor, with a bit for each axis of any length; no bytes if an axis has no bit."""
    if any(axis > _LAST_AXIS for open_axes in axes.values() for axis in open_axes):
        return _NO_AXES
    return bytes(sum(1 << axis for axis in axes.get(id(tensor), ())) for tensor in flat)
