"""Where a call of a Cell, a `@jit` function or a gradient transform becomes a graph: looked up, captured, run, or left to PyNative."""
from __future__ import annotations

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchspore.base.frames import user_frame, user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine import tensor as engine
from torchspore.engine.dtypes import FROM_TORCH
from torchspore.engine.grad import GradFrame
from torchspore.engine.graph import depth, levels, log, report, shapes
from torchspore.engine.graph.capture import Capture, Captured
from torchspore.engine.graph.control import strict
from torchspore.engine.graph.graph import Graph
from torchspore.engine.graph.key import signature
from torchspore.engine.graph.numbers import Numbers, placed
from torchspore.engine.graph.parts.recorded import RecordedCapture, RecordedGraph
from torchspore.engine.graph.refusal import Refusal
from torchspore.engine.number import Number
from torchspore.engine.tensor import TensorBase, transform

KEPT = 64
"""How many keys of one Cell or function are kept, least recently used first to go."""

WASTED = 8
"""After so many captures in a row that served one call each, new ones are not made: something keeps changing."""

FEW = 16
"""A graph of fewer operators gains less than its look-up costs: inside a call that runs in parts such Cells run as PyNative."""

DEEPEST = 16
"""So many calls that run in parts may lie in each other; what is deeper runs as PyNative, because each is tried as a graph first."""

TRIED = 3
"""After so many refusals of one key the program's state is not asked any more whether it has changed."""

version = 0
"""Counts what changes on Cells: while it stands still, their attributes need no look."""

_APPLIED = Outcome.applied("calls run as captured graphs; what a graph can't hold runs in parts")

_COMPILED = Outcome.applied("calls in GRAPH_MODE compile, run nothing and give None")

parting = 0
"""How many calls run in parts, in all threads."""

_counting = threading.Lock()

_NONE: frozenset[int] = frozenset()
_NO_AXES: dict[int, shapes.Axes] = {}

era = 0
"""Counts what makes all graphs void."""


@dataclass
class Entry:
    """What is known of one key: graphs for different states of the program, and why the last capture was refused."""

    settings: levels.Settings
    form: Any = None                       # what tells calls of this form from others, but for the values of numbers
    is_open: bool = False                  # some axes of the arguments may have any length
    lifted: frozenset[int] = _NONE         # the numbers among the arguments that are inputs of the graph
    graphs: list[Graph] = field(default_factory=list)
    refusal: Refusal | None = None
    refused_at: int = -1
    refusals: int = 0
    converts: bool = False                 # Tensors decide branches or loops, so its source is converted
    is_deep: bool = False                  # calls nest deeper than Python's own limit allows


class Table(OrderedDict[Any, Entry]):
    """The keys of one Cell or function, and the graphs that were captured last."""

    def __init__(self) -> None:
        super().__init__()
        self.recent: list[Graph] = []
        self.numbers = Numbers()
        self.refused_in: tuple[int, Any] | None = None
        """The era, and the state of the context, in which no call could be captured: they are no longer tried."""
        self.is_small = False      # all graphs here have too few operators to gain anything
        self.has_warned = False

    def keeps_changing(self) -> bool:
        """Whether the last captures served one call each."""
        return len(self.recent) == WASTED and all(graph.runs <= 1 for graph in self.recent)


class _Local(threading.local):
    in_pynative = False
    parted: Any = None             # the Cell whose construct is to run in parts
    in_parts = 0


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
    table = _table(owner)
    if table.refused_in is not None and table.refused_in == (era, STORE.snapshot()):
        return _in_parts(owner, function, args, kwargs)
    flat: list[TensorBase] = []
    found = find(owner, function, args, kwargs, flat)
    if isinstance(found, Graph):
        return run(found, flat, function, args, kwargs)
    syntax = levels.settings(owner, function).syntax
    if syntax != "LAX":
        _refuse(owner, found, function, args, kwargs, syntax)
    if found.needs_room:
        return depth.with_room(lambda: _in_parts(owner, function, args, kwargs))
    return _in_parts(owner, function, args, kwargs)


def _refuse(
    owner: Any, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], syntax: str,
) -> None:
    """Raises the compile error for what was refused; where the program itself raises, its own error."""
    if refusal.reason.startswith("raises"):
        in_pynative(function, args, kwargs)
    raise strict.error(_name(owner), refusal, syntax)


def enter(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call that may lie inside other calls: as a graph at the top or in a call that runs in parts, else within what is around."""
    if _local.in_pynative or not (engine.frame() is None or is_recorded()):
        return function(*args, **kwargs)
    if _local.in_parts and (_local.in_parts > DEEPEST or _table(owner).is_small):
        return in_pynative(function, args, kwargs)
    return call(owner, function, args, kwargs)


def is_recorded() -> bool:
    """Whether PyNative takes a gradient of first order around this call, and nothing else is around it."""
    around = engine.frame()
    return isinstance(around, GradFrame) and around.outer is None


def find(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph | Refusal:
    """The graph for a call, captured now if need be, or why there is none. Appends the Tensors among the arguments to `flat`."""
    found = _look_up(owner, function, args, kwargs, flat)
    if isinstance(found, Refusal):
        _report(owner, found)
        return found
    if found.lifted:
        args, kwargs = placed((args, kwargs), found.lifted, flat)
    for graph in found.graphs:
        if graph.matches(version, flat):
            return graph
    if found.refusal is not None and (found.refused_at == version or found.refusals >= TRIED):
        return found.refusal
    made = _capture(owner, found, function, args, kwargs, flat)
    if isinstance(made, Refusal):
        if found.lifted:
            _table(owner).numbers.fix(found.form)
            flat.clear()
            plain_args, plain_kwargs = _plain(args, kwargs)
            return find(owner, function, plain_args, plain_kwargs, flat)
        found.refusal, found.refused_at, found.refusals = made, version, found.refusals + 1
        table = _table(owner)
        if found.refusals >= TRIED and found.settings.syntax == "LAX" and not found.is_deep and not table.recent:
            table.refused_in = (era, STORE.snapshot())
        made.needs_room = found.is_deep
        _report(owner, made)
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
        in_pynative(function, args, kwargs)
        raise


def compile(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Captures the graph for these arguments and runs nothing."""
    flat: list[TensorBase] = []
    found = _look_up(owner, function, args, kwargs, flat)
    if isinstance(found, Entry) and not any(graph.matches(version, flat) for graph in found.graphs):
        made = _capture(owner, found, function, args, kwargs, flat)
        if isinstance(made, Refusal):
            _report(owner, made)
            if found.settings.syntax != "LAX":
                raise strict.error(_name(owner), made, found.settings.syntax)


def graphs(owner: Any) -> list[Graph]:
    """All graphs captured of a Cell or function; `str` shows one."""
    table = getattr(owner, "__dict__", {}).get("_graphs", {})
    return [graph for entry in table.values() for graph in entry.graphs]


def _look_up(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Entry | Refusal:
    numbers: list[Any] = []
    try:
        axes = shapes.declared(owner, args) if "_open_inputs" in owner.__dict__ and engine.frame() is None else _NO_AXES
        given = (signature(args, flat, numbers, axes), signature(kwargs, flat, numbers) if kwargs else None)
    except Refusal as refusal:
        return refusal
    settings = levels.settings(owner, function)
    form: Any = (getattr(function, "__func__", function), given, STORE.snapshot(), settings, era, engine.frame() is not None)
    table, lifted, key = _table(owner), _NONE, form
    if numbers:
        lifted = table.numbers.lifted(form, tuple(numbers))
        key = (form, lifted, *[value for place, value in enumerate(numbers) if place not in lifted])
    entry = table.get(key)
    if entry is None:
        entry = table[key] = Entry(settings, form=form, lifted=lifted, is_open=bool(axes))
        while len(table) > KEPT:
            table.popitem(last=False)
    elif len(table) > 1:
        table.move_to_end(key)
    return entry


def _table(owner: Any) -> Table:
    return owner.__dict__.setdefault("_graphs", Table())


def _capture(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph | Refusal:
    strict.report(entry.settings.syntax)
    table = _table(owner)
    if table.keeps_changing():
        refusal = Refusal(f"is called with something that keeps changing: {WASTED} captures in a row served one call each")
        if not getattr(owner, "is_piece", False):
            _warn(table, f"{refusal.line}: {_name(owner)} {refusal.reason}.\n\nhint: {_what_changes(table)}")
        return refusal
    why = report.why(entry, table)
    if entry.graphs:
        table.numbers.see(read for graph in entry.graphs for read in graph.changed())
    try:
        graph = _graph(owner, entry, function, args, kwargs, flat)
    except Refusal as refusal:
        if entry.is_open:
            return _of_this_length(owner, entry, refusal, function, args, kwargs, flat)
        if not table.numbers.lift(refusal.numbers) and not table.numbers.attributes:
            return refusal
        try:
            graph = _graph(owner, entry, function, args, kwargs, flat)
        except Refusal:
            table.numbers.fix_attributes()
            return refusal
    entry.graphs.insert(0, graph)
    del entry.graphs[8:]
    table.is_small = graph.operators < FEW and (table.is_small or not table.recent)
    table.recent = [*table.recent[1 - WASTED:], graph]
    _tell(owner, entry, graph, flat, why)
    effects.report("mode", _APPLIED)
    return graph


def _of_this_length(
    owner: Any, entry: Entry, refusal: Refusal, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    flat: list[TensorBase],
) -> Graph | Refusal:
    """The graph for the lengths of now alone, where none can be made for all lengths."""
    log.event("again", f"{refusal.line}: {_name(owner)} {refusal.reason}: one graph for each length")
    owner.__dict__.pop("_open_inputs", None)
    found = find(owner, function, args, kwargs, [])
    if isinstance(found, Graph):
        found.matches(version, flat)
    return found


def _warn(table: Table, text: str) -> None:
    if not table.has_warned:
        table.has_warned = True
        file, line, _ = user_frame() or ("<unknown>", 1, "")
        warnings.warn_explicit(text, UserWarning, file, line)


def _what_changes(table: Table) -> str:
    """What to write instead, for what kept a Cell or function from using a graph again."""
    reads = [read for graph in table.recent for read in graph.changed()]
    if reads:
        return f"the attribute {reads[-1].name!r} is another one at each call; make it a Tensor."
    return "pass what changes as a Tensor, or keep shapes the same from call to call."


def _graph(
    owner: Any, entry: Entry, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Graph:
    """Captures the call and compiles what was captured. Raises Refusal."""
    started = time.perf_counter()
    capture, captured = _captured(owner, entry, _table(owner).numbers, function, args, kwargs)
    strict.check(captured.watch.codes, entry.settings.syntax)
    seconds = time.perf_counter() - started
    if isinstance(capture, RecordedCapture):
        graph: Graph = RecordedGraph(captured, flat, seconds, entry.settings, capture)
    else:
        graph = Graph(captured, flat, seconds, entry.settings)
    if not graph.matches(version, flat):
        raise Refusal("reads state that it changes itself")
    return graph


def _captured(
    owner: Any, entry: Entry, numbers: Numbers, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> tuple[Capture, Captured]:
    """Captures the call; where Python's limit of nested calls is met, once more with a larger stack."""
    kind = RecordedCapture if engine.frame() is not None else Capture

    def new(converts: bool) -> Capture:
        made = kind()
        made.watch.converts = converts
        made.watch.says = converts and entry.settings.syntax == "COMPATIBLE"
        made.numbers = numbers.attributes
        made.axes = shapes.declared(owner, args) if entry.is_open else _NO_AXES
        return made

    def capture() -> tuple[Capture, Captured]:
        """As it stands; where a Tensor decides what it does, once more with its source converted."""
        made = new(entry.converts)
        try:
            return made, made.run(function, args, kwargs)
        except Refusal as refusal:
            may_help = refusal.needs_values or (entry.settings.syntax == "COMPATIBLE" and refusal.reason == "calls print")
            if entry.converts or not may_help:
                raise
            made = new(True)
            captured = made.run(function, args, kwargs)
        entry.converts = True
        return made, captured

    if not entry.is_deep:
        try:
            return capture()
        except Refusal as refusal:
            if not refusal.needs_room:
                raise
        entry.is_deep = True
    return depth.with_room(capture)


def _tell(owner: Any, entry: Entry, graph: Graph, flat: list[TensorBase], why: str) -> None:
    """Says in `explain` and in the log what was captured, and why not for the first time."""
    text = (
        f"{user_line()}: {_name(owner)}({_shapes(flat)}): {graph.operators} operators, {len(graph.inputs)} inputs, "
        f"{entry.settings.level}, ready in {graph.seconds:.2f} s{why and ', again because ' + why}"
    )
    effects.note("graphs", text)
    log.event("again" if why else "capture", text)


def _shapes(flat: list[TensorBase]) -> str:
    """The first arguments in a few words: what tells one graph of a Cell from another."""
    shown = [f"{FROM_TORCH[t._t.dtype]}{list(t._t.shape)}" for t in flat[:3]]
    return ", ".join(shown + ["..."] * (len(flat) > 3))


def _report(owner: Any, refusal: Refusal) -> None:
    effects.report("mode", _APPLIED)
    if not getattr(owner, "is_piece", False):
        text = f"{refusal.line}: {_name(owner)} {refusal.reason}{refusal.calls()}"
        effects.note("calls that run in parts", text)
        log.event("refused", text)


def _name(owner: Any) -> str:
    return getattr(owner, "__qualname__", None) or type(owner).__name__


def _in_parts(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call that no graph holds: what can't be captured in Python, the Cells and statements around it as graphs of their own."""
    global parting
    before = _local.parted
    with _counting:
        parting += 1
    _local.parted, _local.in_parts = owner, _local.in_parts + 1
    try:
        return _parts_of(function)(*args, **kwargs)
    finally:
        with _counting:
            parting -= 1
        _local.parted, _local.in_parts = before, _local.in_parts - 1


def _parts_of(function: Callable[..., Any]) -> Callable[..., Any]:
    from torchspore.engine.graph.parts.run import of  # it runs its pieces through this file

    return of(function)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which a call calls: in parts where that call runs in parts."""
    return _parts_of(function) if parting and _local.in_parts and not _local.in_pynative else function


def construct_of(cell: Any) -> Callable[..., Any]:
    """A Cell's construct: in parts where its call runs in parts."""
    if _local.parted is not cell or _local.in_pynative:
        return cell.construct
    _local.parted = None
    return _parts_of(cell.construct)


def in_pynative(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call operator by operator, whatever the mode."""
    before, _local.in_pynative = _local.in_pynative, True
    try:
        return function(*args, **kwargs)
    finally:
        _local.in_pynative = before


