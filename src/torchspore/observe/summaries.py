"""The values that summary operators record for the open SummaryRecord; without one they do nothing."""
from __future__ import annotations

import itertools
import threading
from typing import Any

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import TensorBase, outside, raw, wrap
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.graph.report import provenance

MOST_NODES = 5_000
"""So many operators or Cells of a network are recorded."""

_lock = threading.Lock()


class _Summaries:
    """Number of open summaries."""

    def __init__(self) -> None:
        self.open_count = 0


_SUMMARIES = _Summaries()
_values: list[tuple[str, str, Any]] = []


def opened(by: int) -> None:
    """Counts the records that are open; graphs that were captured before hold no summaries, or too many."""
    with _lock:
        _SUMMARIES.open_count += by
        change_counters.generation += 1
        if not _SUMMARIES.open_count:
            _values.clear()


def keep(plugin: str, name: str, value: TensorBase) -> None:
    """Store the present values of a Tensor until `taken` reads them; the call continues in Python."""
    if not _SUMMARIES.open_count:
        return
    running_trace.ends_trace("keeps a summary", Kind.OTHER)
    t = raw(value).detach().clone()
    with outside(), _lock:
        _values.append((plugin, name, wrap(t)))


def taken() -> list[tuple[str, str, Any]]:
    """All that was kept since the last time: (plugin, name, Tensor); of one name the last one."""
    with _lock:
        latest = {(plugin, name): value for plugin, name, value in _values}
        _values.clear()
    return [(plugin, name, value) for (plugin, name), value in latest.items()]


@dataclass
class Node:
    """An operator of a captured graph, or a Cell without a graph: its scope's name, its type, the names that it reads."""

    name: str
    kind: str
    reads: list[str]
    about: str = ""


def expect_graph() -> None:
    """Make graphs that are captured from now on record their Cells."""
    provenance.keep_all()


def network(cell: Any) -> tuple[list[Node], str]:
    """The graph that was captured last for a Cell and how it came about; in PyNative mode, which has none, the Cells in it."""
    from torchspore.graph.save_graphs.snapshot import Taker
    from torchspore.graph.specialization.graph_table import table_of

    graphs = [graph for entry in table_of(cell).values() for graph in entry.graphs]
    if not graphs:
        inputs = [
            Node("Default" + "".join(f"/{part}" for part in name.split(".") if part), type(inner).__name__, [],
                 ", ".join(f"{p.name} {tuple(p.shape)}" for p in inner.get_parameters(expand=False)))
            for name, inner in itertools.islice(cell.cells_and_names(), MOST_NODES)
        ]
        return inputs, "the Cells; PyNative mode captures no graph"
    snapshot = Taker().snapshot(graphs[-1].module, "graph", None, "")
    names = {graph_input.name: graph_input.parameter or f"inputs/{graph_input.shown}" for graph_input in snapshot.inputs}
    names |= {call.name: call.full_name for call in snapshot.calls}
    nodes = [
        Node(names[graph_input.name], "Parameter" if graph_input.parameter else "Input", [], str(graph_input.kind))
        for graph_input in snapshot.inputs
    ]
    nodes += [
        Node(names[call.name], call.called or call.target.rpartition(".")[2], [names[n] for n in call.reads if n in names], str(call.kind))
        for call in snapshot.calls
    ]
    return nodes[:MOST_NODES], f"the graph that was captured, {len(snapshot.calls)} operators"
