"""Turns a call into a graph: captures it, compiles it, adds it to the graphs of its key, and reports it."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from torchspore.base import event_log
from torchspore.base.frames import user_line, warn
from torchspore.base.garbage_collection import garbage_collection_paused
from torchspore.base.interrupts import postponed
from torchspore.base.text import with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.errors import CompileError
from torchspore.graph import control_flow, forward_cache, passes
from torchspore.graph.capture import depth
from torchspore.graph.capture.capture import Capture, Captured
from torchspore.graph.control_flow import strict_syntax, support_binary
from torchspore.graph.refusal import Kind, Refusal
from torchspore.graph.report import outcomes, provenance
from torchspore.graph.save_graphs import failed_compilation, session
from torchspore.graph.settings import Settings
from torchspore.graph.specialization import assigned_numbers, graph_table, open_lengths
from torchspore.graph.specialization.compiled_graph import Graph
from torchspore.graph.specialization.gradient_graphs import RecordedCapture, RecordedGraph
from torchspore.graph.specialization.graph_table import Entry, Table
from torchspore.graph.specialization.number_inputs import NumberInputs
from torchspore.graph.specialization.rebuild_reasons import rebuild_reason
from torchspore.graph.splitter import splitter
from torchspore.translations import translate

FEW = 16
"""A graph of fewer operators gains less than its look-up costs: inside a call that runs in parts such Cells run as PyNative."""

APPLIED = Outcome.applied("calls run as captured graphs; a call that no graph can represent runs in parts")


def capture(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph | Refusal:
    """Return a new graph for the call. Raises a Refusal if the call cannot be a graph."""
    table = graph_table.table_of(owner)
    wasted = _wasted(owner, table, entry.settings.is_split)
    if wasted is not None:
        return wasted
    if entry.is_open and len(entry.graphs) >= open_lengths.SPLITS and "_open_inputs_" not in owner.__dict__:
        return Refusal("needs another graph for each length")
    why = rebuild_reason(entry, table)
    if entry.graphs:
        table.numbers.see(read for graph in entry.graphs for read in graph.changed())
    elif not table.recent:
        table.numbers.try_attributes(assigned_numbers.of_call(owner, function))
    try:
        graph = _graph(owner, entry, function, args, kwargs, flat, why)
    except Refusal as refusal:
        if table.numbers.drop_trial():
            return capture(owner, entry, function, args, kwargs, flat)
        if entry.is_open:
            return refusal
        if not table.numbers.lift(refusal.numbers) and not table.numbers.attributes:
            return refusal
        try:
            graph = _graph(owner, entry, function, args, kwargs, flat, why)
        except Refusal:
            table.numbers.fix_attributes()
            return refusal
    if STORE.get("auto_parallel.parameter_broadcast"):
        splitter().broadcast_parameters(item for item in graph.inputs if getattr(item, "__parameter__", False))
    entry.graphs.insert(0, graph)
    del entry.graphs[8:]
    table.is_small = graph.operators < FEW and (table.is_small or not table.recent)
    table.recent = [*table.recent[1 - graph_table.WATCHED:], graph]
    effects.report("mode", APPLIED)
    return graph


def _wasted(owner: Any, table: Table, is_split: bool) -> Refusal | None:
    """Why another capture is not worth its time, where the last ones were not. What is split over devices has no other way to run."""
    if table.keeps_changing():
        reason = translate("is called with something that keeps changing: {count} captures in a row served one call each")
        refusal = Refusal(reason.format(count=graph_table.WASTED))
        if not getattr(owner, "is_piece", False):
            text = translate("{line}: {name} {reason}.").format(line=refusal.line, name=name_of(owner), reason=refusal.reason)
            _warn(table, with_hint(text, _what_changes(table)))
        return None if is_split else refusal
    if table.costs_more() and not is_split:
        served = sum(graph.runs for graph in table.recent)
        reason = translate("runs as PyNative: its last {count} captures served {calls} calls, which costs more than it saves")
        refusal = Refusal(reason.format(count=len(table.recent), calls=served))
        refusal.as_pynative = True
        return refusal
    return None


def _warn(table: Table, text: str) -> None:
    if not table.has_warned:
        table.has_warned = True
        warn(text)


def _what_changes(table: Table) -> str:
    """Return a hint for the reason that kept a Cell or function from using a graph again."""
    reads = [read for graph in table.recent for read in graph.changed()]
    if reads:
        return translate("the attribute {name!r} is another one at each call; make it a Tensor").format(name=reads[-1].name)
    return translate("pass what changes as a Tensor, or keep shapes the same from call to call")


def _graph(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase], why: str,
) -> Graph:
    """Capture the call and compile the capture; save the stages if `save_graphs` requests it. Raises Refusal.

    `why` tells `explain` why the call has no graph yet; it is empty for the first graph.
    """
    name, keeps_lines = name_of(owner), entry.settings.debug or entry.settings.is_split or _talks()
    with session.compiling(name, entry.settings, keeps_lines):
        outcomes.syntax(entry.settings.syntax)
        graph = _build_graph(owner, entry, function, args, kwargs, flat)
        _report_capture(owner, entry, graph, flat, why)
        return graph


def _talks() -> bool:
    """Return whether this process is one of several: a graph with collectives can't be run again to report a kernel's error."""
    groups: Any = sys.modules.get("torchspore.distributed.comm.groups")        # imported where a program asks for communication
    return groups is not None and groups.is_started() and groups.size() > 1


def compile_error(
    owner: Any, settings: Settings, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> CompileError:
    """The error for a call that was refused and must be a graph; the graph up to there is saved, and the error says where."""
    def capture_again() -> None:
        _, captured = _captured(owner, Entry(settings), NumberInputs(), function, args, kwargs)
        if settings.syntax == "STRICT":
            strict_syntax.check(captured.watch.codes)

    path = failed_compilation.write(name_of(owner), refusal, settings.describe(), (function, args, kwargs), capture_again)
    return strict_syntax.error(name_of(owner), refusal, settings.syntax, path)


def only_captured(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], settings: Settings) -> Captured:
    """The trace of a call, which runs nothing and is kept nowhere. Raises Refusal where no single graph can hold it."""
    _, captured = _captured(owner, Entry(settings), NumberInputs(), function, args, {})
    return captured


def _build_graph(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph:
    started = time.perf_counter()
    capture, captured = _for_its_devices(owner, entry, function, args, kwargs)
    if entry.settings.syntax == "STRICT":
        strict_syntax.check(captured.watch.codes)
    seconds = time.perf_counter() - started
    if isinstance(capture, RecordedCapture):
        graph: Graph = RecordedGraph(captured, flat, seconds, entry.settings, capture)
    else:
        graph = Graph(captured, flat, seconds, entry.settings)
    if not graph.matches(change_counters.cells, flat):
        raise Refusal("reads state that it changes itself")
    return graph


def _for_its_devices(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> tuple[Capture, Captured]:
    """Captures the call, once for each number of pipeline stages that may be chosen."""
    numbers = graph_table.table_of(owner).numbers

    def trace(stages: int) -> tuple[Capture, Captured]:
        with provenance.of_stages(stages):
            return _captured(owner, entry, numbers, function, args, kwargs, stages)

    if entry.settings.is_split and splitter().chooses_stage_count():
        return splitter().cheapest_capture(trace, _parts)
    return _captured(owner, entry, numbers, function, args, kwargs)


def _parts(trace: tuple[Capture, Captured]) -> tuple[Any, Any, list[Any]]:
    """Return the graph of a trace without notes, which stays unchanged, its devices, and its inputs."""
    captured = trace[1]
    return passes.run(passes.CLEAN, captured.module, copies=True, keep=None), captured.sharded_capture, captured.lifted


def _captured(
    owner: Any, entry: Entry, numbers: NumberInputs, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    stages: int | None = None,
) -> tuple[Capture, Captured]:
    """Captures the call; where Python's limit of nested calls is met, once more with a larger stack."""
    kind, is_piece = RecordedCapture if engine.frame() is not None else Capture, bool(getattr(owner, "is_piece", False))

    def new(converts: bool, may_learn: bool) -> Capture:
        number_inputs = numbers.inputs()
        forwards = forward_cache.Calls(graph_table.table_of(owner).learned_forwards(), may_learn, is_piece) if kind is Capture else None
        capture = kind()
        capture.forwards, capture.numbers = forwards, number_inputs
        capture.watch.converter = control_flow if converts else None
        capture.watch.says = converts and entry.settings.syntax != "LAX"
        capture.is_piece, capture.is_strict = is_piece, entry.settings.syntax == "STRICT"
        if entry.settings.is_split:
            capture.sharded_capture = splitter().begin_capture(list(engine.tensors((args, kwargs))), stages)
        capture.axes = graph_table.open_axes(owner, args, kwargs) if entry.is_open else graph_table.NO_AXES
        return capture

    def shared(converts: bool) -> tuple[Capture, Captured]:
        """Capture with recorded forward passes for gradients inside; another trace learns whether Cells without `set_grad()` need them."""
        for attempt in range(3):
            capture = new(converts, may_learn=attempt < 2)
            try:
                captured = capture.run(function, args, kwargs)
            except Refusal as refusal:
                if not refusal.is_unrecorded:
                    raise
                continue
            finally:
                if STORE.get("support_binary"):
                    support_binary.keep(capture.watch.codes)
            if capture.forwards is None or not capture.forwards.learned():
                break
        return capture, captured

    def capture() -> tuple[Capture, Captured]:
        """Capture unchanged; if a Tensor decides about control flow, or a tuple is too long for its names, again with converted source."""
        try:
            return shared(entry.converts)
        except Refusal as refusal:
            may_help = refusal.needs_values or refusal.kind is Kind.PRINTS          # converted, a graph prints Tensors itself
            is_trial = bool(numbers.tried) or (entry.lifted and numbers.is_trial(entry.form))
            if entry.converts or not may_help or (refusal.needs_number and is_trial):
                raise
            capture_result = shared(True)
        entry.converts = True
        return capture_result

    with postponed(), garbage_collection_paused():     # Ctrl-C in the middle of a trace would leave its fake tensors in the program
        if not entry.is_deep:
            try:
                return capture()
            except Refusal as refusal:
                if not refusal.needs_room:
                    raise
            entry.is_deep = True
        return depth.with_room(capture)


def _report_capture(owner: Any, entry: Entry, graph: Graph, flat: list[TensorBase], why: str) -> None:
    """Report in `explain` and in the log what was captured, and why the graph is not the first one."""
    text = (translate("{call}: {operators} operators, {inputs} inputs, {level}, ready in {seconds:.2f} s, again because {reason}") if why
            else translate("{call}: {operators} operators, {inputs} inputs, {level}, ready in {seconds:.2f} s"))
    text = text.format(call=f"{user_line()}: {name_of(owner)}({_shapes(flat)})", operators=graph.operators, inputs=len(graph.inputs),
                       level=entry.settings.level, seconds=graph.seconds, reason=why)
    effects.note("graphs", text)
    event_log.event("again" if why else "capture", text)


def _shapes(flat: list[TensorBase]) -> str:
    """The first arguments in a few words: what tells one graph of a Cell from another."""
    shown = [f"{FROM_TORCH[t._t.dtype]}{list(t._t.shape)}" for t in flat[:3]]
    return ", ".join(shown + ["..."] * (len(flat) > 3))


def refused(owner: Any, refusal: Refusal) -> None:
    """Report in `explain` and in the log why a call is not a graph."""
    effects.report("mode", APPLIED)
    if not getattr(owner, "is_piece", False):
        text = f"{refusal.line}: {name_of(owner)} {refusal.reason}{refusal.calls()}"
        effects.note("calls that run in parts", text)
        event_log.event("refused", text)


def name_of(owner: Any) -> str:
    """Return the name by which a user knows a Cell or function."""
    return getattr(owner, "__qualname__", None) or type(owner).__name__
