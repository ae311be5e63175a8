"""Where a call of a Cell, a `@jit` function or a gradient transform becomes a graph: looked up, captured, run, or left to PyNative."""
from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.dtypes import FROM_TORCH
from torchspore.engine.graph import depth, levels
from torchspore.engine.graph.capture import Capture, Captured
from torchspore.engine.graph.graph import Graph
from torchspore.engine.graph.key import signature
from torchspore.engine.graph.refusal import Refusal
from torchspore.engine.tensor import TensorBase

KEPT = 64
"""How many keys of one Cell or function are kept, least recently used first to go."""

WASTED = 8
"""After so many captures in a row that served one call each, new ones are not made: something keeps changing."""

version = 0
"""Counts what changes on Cells: while it stands still, their attributes need no look."""

_APPLIED = Outcome.applied("calls run as captured graphs; what a graph can't hold runs as PyNative")

_COMPILED = Outcome.applied("calls in GRAPH_MODE compile, run nothing and give None")

era = 0
"""Counts what makes all graphs void."""


@dataclass
class Entry:
    """What is known of one key: graphs for different states of the program, and why the last capture was refused."""

    settings: levels.Settings
    graphs: list[Graph] = field(default_factory=list)
    refusal: Refusal | None = None
    refused_at: int = -1
    converts: bool = False                 # Tensors decide branches or loops, so its source is converted
    is_deep: bool = False                  # calls nest deeper than Python's own limit allows


class Table(OrderedDict[Any, Entry]):
    """The keys of one Cell or function, and the graphs that were captured last."""

    def __init__(self) -> None:
        super().__init__()
        self.recent: list[Graph] = []

    def keeps_changing(self) -> bool:
        """Whether the last captures served one call each."""
        return len(self.recent) == WASTED and all(graph.runs <= 1 for graph in self.recent)


class _Local(threading.local):
    in_pynative = False


_local = _Local()


def changed() -> None:
    """Is told whenever an attribute, a Parameter or a Cell is set on a Cell."""
    global version
    version += 1


def forget() -> None:
    """Is told what changes how Cells are called (hooks, another dtype to compute in): no graph captured before is used again."""
    global version, era
    version += 1
    era += 1


def is_graph_mode() -> bool:
    """Whether this thread runs in GRAPH_MODE, and not the insides of a call that a graph can't hold."""
    return STORE.graph_mode and not _local.in_pynative


def call(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `function(*args, **kwargs)` as a captured graph, captured now if need be; as PyNative where a graph can't hold it."""
    if _local.in_pynative:
        return function(*args, **kwargs)
    if STORE.get("precompile_only"):
        effects.report("precompile_only", _COMPILED)
        return compile(owner, function, args, kwargs)
    flat: list[TensorBase] = []
    found = _look_up(owner, function, args, kwargs, flat)
    if isinstance(found, Refusal):
        _report(owner, found)
        return _in_pynative(function, args, kwargs)
    for graph in found.graphs:
        if graph.matches(version, flat):
            return _run(graph, flat, function, args, kwargs)
    if found.refusal is not None and found.refused_at == version:
        return _in_pynative(function, args, kwargs, found.is_deep)
    graph_or_refusal = _capture(owner, found, function, args, kwargs, flat)
    if isinstance(graph_or_refusal, Graph):
        return _run(graph_or_refusal, flat, function, args, kwargs)
    out = _in_pynative(function, args, kwargs, found.is_deep)
    found.refusal, found.refused_at = graph_or_refusal, version
    _report(owner, graph_or_refusal)
    return out


def _run(graph: Graph, flat: list[TensorBase], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs the graph.

    What a kernel refuses (an index beyond a table) is raised again by PyNative, which knows the operator and the line.
    """
    try:
        return graph.run(flat)
    except (IndexError, RuntimeError, ValueError, TypeError):
        _in_pynative(function, args, kwargs)
        raise


def compile(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Captures the graph for these arguments and runs nothing."""
    flat: list[TensorBase] = []
    found = _look_up(owner, function, args, kwargs, flat)
    if isinstance(found, Entry) and not any(graph.matches(version, flat) for graph in found.graphs):
        made = _capture(owner, found, function, args, kwargs, flat)
        if isinstance(made, Refusal):
            _report(owner, made)


def graphs(owner: Any) -> list[Graph]:
    """All graphs captured of a Cell or function; `str` shows one."""
    table = getattr(owner, "__dict__", {}).get("_graphs", {})
    return [graph for entry in table.values() for graph in entry.graphs]


def _look_up(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Entry | Refusal:
    try:
        given = (signature(args, flat), signature(kwargs, flat) if kwargs else None)
    except Refusal as refusal:
        return refusal
    settings = levels.settings(owner, function)
    key = (getattr(function, "__func__", function), given, STORE.snapshot(), settings, era)
    table: Table = owner.__dict__.setdefault("_graphs", Table())
    entry = table.get(key)
    if entry is None:
        entry = table[key] = Entry(settings)
        while len(table) > KEPT:
            table.popitem(last=False)
    elif len(table) > 1:
        table.move_to_end(key)
    return entry


def _capture(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph | Refusal:
    started = time.perf_counter()
    table: Table = owner.__dict__["_graphs"]
    if table.keeps_changing():
        return Refusal(f"is called with something that keeps changing: {WASTED} captures in a row served one call each")
    try:
        captured = _captured(entry, function, args, kwargs)
        graph = Graph(captured, flat, time.perf_counter() - started, entry.settings)
        if not graph.matches(version, flat):
            return Refusal("reads state that it changes itself")
    except Refusal as refusal:
        return refusal
    entry.graphs.insert(0, graph)
    del entry.graphs[8:]
    table.recent = [*table.recent[1 - WASTED:], graph]
    effects.note(
        "graphs",
        f"{_name(owner)}({_shapes(flat)}) at {user_line()}: "
        f"{graph.operators} operators, {len(captured.lifted)} inputs, captured in {graph.seconds:.2f} s",
    )
    effects.report("mode", _APPLIED)
    return graph


def _captured(entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
    """Captures the call; where Python's limit of nested calls is met, once more with a larger stack."""
    if not entry.is_deep:
        try:
            return _captured_once(entry, function, args, kwargs)
        except Refusal as refusal:
            if not refusal.needs_room:
                raise
        entry.is_deep = True
    return depth.with_room(lambda: _captured_once(entry, function, args, kwargs))


def _captured_once(entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
    """Captures the call as it stands; where a Tensor decides what it does, once more with its source converted."""
    try:
        return Capture(converts=entry.converts).run(function, args, kwargs)
    except Refusal as refusal:
        if entry.converts or not refusal.needs_values:
            raise
    captured = Capture(converts=True).run(function, args, kwargs)
    entry.converts = True
    return captured


def _shapes(flat: list[TensorBase]) -> str:
    """The first arguments in a few words: what tells one graph of a Cell from another."""
    shown = [f"{FROM_TORCH[t._t.dtype]}{list(t._t.shape)}" for t in flat[:3]]
    return ", ".join(shown + ["..."] * (len(flat) > 3))


def _report(owner: Any, refusal: Refusal) -> None:
    effects.report("mode", _APPLIED)
    effects.note("calls that run as PyNative", f"{refusal.line}: {_name(owner)} {refusal.reason}")


def _name(owner: Any) -> str:
    return getattr(owner, "__qualname__", None) or type(owner).__name__


def _in_pynative(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], is_deep: bool = False) -> Any:
    if is_deep:
        return depth.with_room(lambda: _in_pynative(function, args, kwargs))
    with _pynative():
        return function(*args, **kwargs)


@contextmanager
def _pynative() -> Any:
    before, _local.in_pynative = _local.in_pynative, True
    try:
        yield
    finally:
        _local.in_pynative = before


