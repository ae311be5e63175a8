"""Where a call of a Cell, a `@jit` function or a gradient transform is looked up, and run: as a graph, in parts, or by PyNative."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine import counters
from torchspore.engine import tensor as engine
from torchspore.engine.grad import GradFrame
from torchspore.engine.graph import log, thread_state
from torchspore.engine.graph.call import capturing
from torchspore.engine.graph.call.graph import Graph
from torchspore.engine.graph.call.table import Entry, look_up, table_of
from torchspore.engine.graph.capture import depth
from torchspore.engine.graph.capture.scalar_inputs import placed
from torchspore.engine.graph.refusal import Kind, Refusal
from torchspore.engine.graph.settings import settings_of
from torchspore.engine.number import Number
from torchspore.engine.tensor import TensorBase, transform

TRIED = 3
"""After so many refusals of one key the program's state is not asked any more whether it has changed."""

_COMPILED = Outcome.applied("calls in GRAPH_MODE compile, run nothing and give None")


def call(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `function(*args, **kwargs)` as a captured graph, captured now if need be; as PyNative where a graph can't hold it."""
    if thread_state.local.in_pynative:
        return function(*args, **kwargs)
    if STORE.get("precompile_only"):
        effects.report("precompile_only", _COMPILED)
        return compile(owner, function, args, kwargs)
    refused_in = table_of(owner).refused_in
    if refused_in is not None and refused_in == (counters.generation, STORE.snapshot()):
        return thread_state.in_parts(owner, function, args, kwargs)
    flat: list[TensorBase] = []
    found = find(owner, function, args, kwargs, flat)
    if isinstance(found, Graph):
        return run(found, flat, function, args, kwargs)
    syntax = settings_of(owner, function).syntax
    if syntax != "LAX":
        _refuse(owner, found, function, args, kwargs)
    if found.needs_room:
        return depth.with_room(lambda: thread_state.in_parts(owner, function, args, kwargs))
    return thread_state.in_parts(owner, function, args, kwargs)


def _refuse(
    owner: Any, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> None:
    """Raises the compile error for what was refused; where the program itself raises, its own error."""
    if refusal.kind is Kind.RAISES:
        thread_state.in_pynative(function, args, kwargs)
    raise capturing.compile_error(owner, settings_of(owner, function), refusal, function, args, kwargs)


def enter(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call that may lie inside other calls: as a graph at the top or in a call that runs in parts, else within what is around."""
    if thread_state.local.in_pynative or not (engine.frame() is None or is_recorded()):
        return function(*args, **kwargs)
    if thread_state.local.in_parts and (thread_state.local.in_parts > thread_state.DEEPEST or table_of(owner).is_small):
        return thread_state.in_pynative(function, args, kwargs)
    return call(owner, function, args, kwargs)


def is_recorded() -> bool:
    """Whether PyNative takes a gradient of first order around this call, and nothing else is around it."""
    around = engine.frame()
    return isinstance(around, GradFrame) and around.outer is None


def find(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph | Refusal:
    """The graph for a call, captured now if need be, or why there is none. Appends the Tensors among the arguments to `flat`."""
    found = look_up(owner, function, args, kwargs, flat)
    if isinstance(found, Refusal):
        capturing.refused(owner, found)
        return found
    if found.lifted:
        args, kwargs = placed((args, kwargs), found.lifted, flat)
    for graph in found.graphs:
        if graph.matches(counters.cells, flat):
            return graph
    if found.refusal is not None and (found.refused_at == counters.cells or found.refusals >= TRIED):
        return found.refusal
    made = capturing.capture(owner, found, function, args, kwargs, flat)
    if isinstance(made, Refusal) and found.is_open and not table_of(owner).keeps_changing():
        made = _of_this_length(owner, made, function, args, kwargs)
    if isinstance(made, Refusal):
        if found.lifted:
            table_of(owner).numbers.fix(found.form)
            flat.clear()
            plain_args, plain_kwargs = _plain(args, kwargs)
            return find(owner, function, plain_args, plain_kwargs, flat)
        found.refusal, found.refused_at, found.refusals = made, counters.cells, found.refusals + 1
        own = table_of(owner)
        if found.refusals >= TRIED and found.settings.syntax == "LAX" and not found.is_deep and not own.recent:
            own.refused_in = (counters.generation, STORE.snapshot())
        made.needs_room = found.is_deep
        capturing.refused(owner, made)
    return made


def _plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments with Python numbers in the places of lifted ones."""
    return transform((args, kwargs), lambda t: t._t.item() if isinstance(t, Number) else t)


def run(graph: Graph, flat: list[TensorBase], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs the graph.

    What a kernel refuses (an index beyond a table) is raised again by PyNative, which knows the operator and the line.
    """
    try:
        return graph.run(flat)
    except (IndexError, RuntimeError, ValueError, TypeError, ZeroDivisionError):
        thread_state.in_pynative(function, args, kwargs)
        raise


def compile(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Captures the graph for these arguments and runs nothing."""
    flat: list[TensorBase] = []
    found = look_up(owner, function, args, kwargs, flat)
    if isinstance(found, Entry) and not any(graph.matches(counters.cells, flat) for graph in found.graphs):
        made = capturing.capture(owner, found, function, args, kwargs, flat)
        if isinstance(made, Refusal):
            capturing.refused(owner, made)
            if found.settings.syntax != "LAX":
                raise capturing.compile_error(owner, found.settings, made, function, args, kwargs)


def graphs(owner: Any) -> list[Graph]:
    """All graphs captured of a Cell or function; `str` shows one."""
    own = getattr(owner, "__dict__", {}).get("_graphs", {})
    return [graph for entry in own.values() for graph in entry.graphs]


def _of_this_length(
    owner: Any, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> Graph | Refusal:
    """The graph for the lengths of now alone, where none can be made for all lengths."""
    log.event("again", f"{refusal.line}: {capturing.name_of(owner)} {refusal.reason}: one graph for each length")
    owner.__dict__.pop("_open_inputs", None)
    flat: list[TensorBase] = []
    found = find(owner, function, args, kwargs, flat)
    if isinstance(found, Graph):
        found.matches(counters.cells, flat)
    return found
