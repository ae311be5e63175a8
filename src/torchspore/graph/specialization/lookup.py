"""The graph for a call: looked up, captured now if need be, and run."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base import event_log, tracebacks
from torchspore.context.store import STORE
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.execution import thread_state
from torchspore.engine.memory import limit
from torchspore.engine.native import allocator
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import TensorBase, transform
from torchspore.errors import StrategyRefused
from torchspore.graph.refusal import Refusal
from torchspore.graph.settings import settings_of
from torchspore.graph.specialization import compilation, first_run, kernel_errors, open_lengths
from torchspore.graph.specialization.compiled_graph import REFUSALS, Graph
from torchspore.graph.specialization.graph_table import Entry, look_up, table_of
from torchspore.graph.specialization.number_inputs import placed
from torchspore.graph.specialization.open_arguments import other_lengths, with_lengths
from torchspore.graph.splitter import splitter
from torchspore.graph.tiers import reasons_to_wait

TRIED = 3
"""After so many refusals of one key the program's state is not asked any more whether it has changed."""


def find(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph | Refusal:
    """The graph for a call, captured now if need be, or why there is none. Appends the Tensors among the arguments to `flat`."""
    entry = look_up(owner, function, args, kwargs, flat)
    if isinstance(entry, Refusal):
        compilation.refused(owner, entry)
        return entry
    if entry.lifted:
        args, kwargs = placed((args, kwargs), entry.lifted, flat)
    for graph in entry.graphs:
        if graph.matches(change_counters.cells, flat):
            return graph
    if entry.refusal is not None and (entry.refused_at == change_counters.cells or entry.refusals >= TRIED):
        return entry.refusal
    made = compilation.capture(owner, entry, function, args, kwargs, flat)
    allocator.tidy()
    if isinstance(made, Refusal) and entry.is_open and not made.as_pynative and not table_of(owner).keeps_changing():
        made = _of_this_length(owner, made, function, args, kwargs)
    if isinstance(made, Refusal):
        if entry.lifted:
            table_of(owner).numbers.fix(entry.form)
            flat.clear()
            plain_args, plain_kwargs = _plain(args, kwargs)
            return find(owner, function, plain_args, plain_kwargs, flat)
        entry.refusal, entry.refused_at, entry.refusals = made, change_counters.cells, entry.refusals + 1
        table = table_of(owner)
        is_lax = entry.settings.syntax == "LAX" and not entry.settings.is_split
        if entry.refusals >= TRIED and is_lax and not entry.is_deep and not table.recent:
            table.refused_in = (change_counters.generation, STORE.snapshot())
        made.needs_room = entry.is_deep
        compilation.refused(owner, made)
    return made


def _plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments with Python numbers in place of lifted ones."""
    return transform((args, kwargs), lambda t: t._t.item() if isinstance(t, Number) else t)


def run(graph: Graph, flat: list[TensorBase], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs the graph.

    PyNative raises an error of a kernel (an index beyond a table) again, because it knows the operator and the line; it starts with the
    state that the call found. Where that could not be kept the graph's own error is raised, and what it has written stays written once.
    """
    try:
        if graph.runs:
            return graph.run(flat)
        with first_run.waiting(graph.nodes, graph.operators):
            return graph.run(flat)
    except REFUSALS as error:
        if graph.settings.is_split or not graph.can_rerun(error):
            raise limit.error(error) or kernel_errors.describe_error(error, graph.unsplit_module) from None
        return thread_state.in_pynative(function, args, kwargs)


def compile(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Captures the graph for these arguments and runs nothing.

    Raises the error that the call itself would raise before any kernel runs, and StrategyRefused for a call that can't be split.
    """
    declared, has_open_lengths = (args, kwargs), False
    if settings_of(owner, function).is_split:
        (args, kwargs), has_open_lengths = with_lengths(declared)
    with reasons_to_wait.compiling_ahead():
        refusal = _capture_for(owner, function, args, kwargs)
    if refusal is None:
        return
    if has_open_lengths:                                   # other lengths than the representative ones may fit
        with reasons_to_wait.compiling_ahead():
            _capture_for_other_lengths(owner, function, declared)
        return
    if refusal.error is not None:
        raise tracebacks.raised_at(refusal.error, refusal.line) from None
    settings = settings_of(owner, function)
    if settings.is_split:
        raise splitter().refusal_error(refusal.line, refusal.reason)
    if settings.syntax != "LAX":
        raise compilation.compile_error(owner, settings, refusal, function, args, kwargs)


def _capture_for_other_lengths(owner: Any, function: Callable[..., Any], declared: Any) -> None:
    """Capture a graph for the first lengths that fit together, if there are any. Raises StrategyRefused if strategies fit none of them."""
    refused: StrategyRefused | None = None
    for length in other_lengths(owner, declared):
        (args, kwargs), _ = with_lengths(declared, length)
        try:
            if _capture_for(owner, function, args, kwargs) is None:
                return
        except StrategyRefused as error:
            refused = error
    if refused is not None:
        raise refused


def _capture_for(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Refusal | None:
    """Capture the graph for these arguments unless there is one. Return the reason if that is not possible."""
    flat: list[TensorBase] = []
    entry = look_up(owner, function, args, kwargs, flat)
    if isinstance(entry, Entry) and not any(graph.matches(change_counters.cells, flat) for graph in entry.graphs):
        graph = compilation.capture(owner, entry, function, args, kwargs, flat)
        if isinstance(graph, Refusal):
            compilation.refused(owner, graph)
            return graph
    return None


def _of_this_length(
    owner: Any, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> Graph | Refusal:
    """Return a graph for the present lengths alone, if none is possible for all lengths."""
    event_log.event("again", f"{refusal.line}: {compilation.name_of(owner)} {refusal.reason}: one graph for each length")
    open_lengths.close(owner)
    table_of(owner).lengths.close()
    flat: list[TensorBase] = []
    graph = find(owner, function, args, kwargs, flat)
    if isinstance(graph, Graph):
        graph.matches(change_counters.cells, flat)
    return graph


def can_record() -> bool:
    """Return whether a graph may be a step of what is around this call: it has a gradient of first order and none of a higher one."""
    around, transforms = engine.frame(), 0
    while around is not None:
        transforms += isinstance(around, GradFrame)
        around = around.outer
    return transforms < 2
