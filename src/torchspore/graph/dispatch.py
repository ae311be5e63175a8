"""The way into graph mode: a call of a Cell, a `@jit` function or a gradient transform becomes a graph, graphs with breaks, or PyNative."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchspore.base import tracebacks
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.execution import current_operator, thread_state
from torchspore.engine.execution.training_start import TRAINING_START
from torchspore.engine.tensors import change_counters, torch_interop
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph import argument_copies, graph_breaks
from torchspore.graph.capture import depth
from torchspore.graph.capture.iterators import settled
from torchspore.graph.refusal import Kind, Refusal
from torchspore.graph.report import builtin_errors
from torchspore.graph.settings import settings_of
from torchspore.graph.specialization import compilation
from torchspore.graph.specialization.compiled_graph import Graph
from torchspore.graph.specialization.graph_table import table_of
from torchspore.graph.specialization.lookup import compile, find, run
from torchspore.graph.specialization.recalled_calls import recall, remember
from torchspore.graph.splitter import splitter

__all__ = ["call", "compile", "enter", "graphs", "is_recorded", "transforms_of"]

_COMPILED = Outcome.applied("calls in GRAPH_MODE compile, run nothing and return None")


def call(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `function(*args, **kwargs)` as a captured graph, captured now if need be; as PyNative where a graph can't hold it."""
    if thread_state.local.in_pynative:
        return function(*args, **kwargs)
    if torch_interop.has_recorded and engine.frame() is None and torch_interop.is_recorded_by_torch(args, kwargs):
        return _run_recorded(function, args, kwargs)
    if TRAINING_START.hook is not None and engine.frame() is None:
        TRAINING_START.hook()
    can_recall = not (kwargs or torch_interop.has_recorded or current_operator.followers)
    flat: list[TensorBase] = []
    if can_recall and (recalled := recall(owner, function, args, flat)) is not None:
        return run(recalled, flat, function, args, kwargs)
    table = table_of(owner)
    if not table:
        STORE.refresh_environment()
        effects.refresh_dump_settings()
    if STORE.get("precompile_only"):
        effects.report("precompile_only", _COMPILED)
        return compile(owner, function, args, kwargs)
    refused_in = table.refused_in
    if refused_in is not None and refused_in == (change_counters.generation, STORE.snapshot()):
        return _run_in_parts(owner, function, args, kwargs)
    graph = find(owner, function, args, kwargs, flat)
    if isinstance(graph, Graph):
        if torch_interop.has_recorded and engine.frame() is None and torch_interop.is_recorded_by_torch(graph.values_read(flat)):
            return _run_recorded(function, args, kwargs)
        if can_recall:
            remember(owner, function, args, graph)
        if not current_operator.followers:
            return run(graph, flat, function, args, kwargs)
        result = run(graph, flat, function, args, kwargs)
        current_operator.report_end_of_call()
        return result
    if graph.as_pynative:
        return argument_copies.run(owner, functools.partial(thread_state.in_pynative, function), args, kwargs)
    settings = settings_of(owner, function)
    if settings.is_split:
        if graph.error is not None:                # PyNative would compute with the parts of Parameters that this process holds
            raise graph.error.with_traceback(graph.trace)
        if graph.kind is Kind.RAISES:
            thread_state.in_pynative(function, args, kwargs)
        raise splitter().refusal_error(graph.line, graph.reason)
    syntax = settings.syntax
    if syntax != "LAX" and not graph.is_allowed:
        if graph.changes_arguments:
            return argument_copies.run(
                owner, lambda *copies: settled(thread_state.in_pynative(function, *copies)), args, kwargs, with_dicts=True,
            )
        _refuse(owner, graph, function, args, kwargs)
    if graph.needs_room:
        return depth.with_room(lambda: _run_in_parts(owner, function, args, kwargs))
    return _run_in_parts(owner, function, args, kwargs)


def _run_in_parts(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call that no graph holds. If no other such call is around it, it gets copies of the lists in its arguments."""
    if thread_state.local.breaks:
        return settled(graph_breaks.run(owner, function, args, kwargs))
    return argument_copies.run(owner, lambda *copies: settled(graph_breaks.run(owner, function, *copies)), args, kwargs)


def _run_recorded(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call that reads Tensors which torch.autograd records: operator by operator, so that the record continues."""
    effects.note("mode", "torch.autograd records a Tensor that a call reads; the call runs as PyNative, so that the record continues")
    return thread_state.in_pynative(function, args, kwargs)


def _refuse(
    owner: Any, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> None:
    """Raise the compile error of a refused call; if the program itself raises, its error."""
    if refusal.kind is Kind.RAISES:
        thread_state.in_pynative(function, args, kwargs)
    raise compilation.compile_error(owner, settings_of(owner, function), refusal, function, args, kwargs)


def enter(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call that may be nested: as a graph at the top level or in a call that runs in parts, otherwise inside the enclosing call."""
    if thread_state.local.in_pynative or not (engine.frame() is None or is_recorded()):
        return function(*args, **kwargs)
    if TRAINING_START.hook is not None:
        TRAINING_START.hook()
    if thread_state.local.breaks and (thread_state.local.breaks > graph_breaks.DEEPEST or table_of(owner).is_small):
        return thread_state.in_pynative(function, args, kwargs)
    return call_outermost(owner, function, args, kwargs)


def call_outermost(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call that no other call of a graph contains. Errors of Python have the text of MindSpore's compiler too."""
    try:
        return call(owner, function, args, kwargs)
    except Exception as error:
        tracebacks.shorten(error)
        in_mindspores_words = builtin_errors.translated(error)
        if isinstance(error, RecursionError):
            in_mindspores_words = builtin_errors.of_cycle((args, kwargs)) or in_mindspores_words
        if in_mindspores_words is not None:
            raise in_mindspores_words from None
        raise


def transforms_of(function: Any) -> dict[Any, Callable[..., Any]]:
    """The gradient functions of a function or Cell, by the arguments of their creation."""
    return table_of(function).transforms


def is_recorded() -> bool:
    """Return whether PyNative takes a gradient of first order around this call, and nothing else is around it."""
    around = engine.frame()
    return isinstance(around, GradFrame) and around.outer is None


def graphs(owner: Any) -> list[Graph]:
    """All graphs captured of a Cell or function; `str` shows one."""
    table = getattr(owner, "__dict__", {}).get("_graphs_", {})
    return [graph for entry in table.values() for graph in entry.graphs]
