"""Converts torch's events to operators, steps and memory.

Events of a thread are nested. MindSpore's operators are found from the outside inwards: a mark of torchspore, a node of the running graph,
otherwise the outermost of torch's events. Events of the backward pass are named after the forward operator to which torch gives the same
number.
"""
from __future__ import annotations

import functools
import os
import sysconfig
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from torchspore.base.frames import is_user_file
from torchspore.engine.execution import flop_counts
from torchspore.engine.torch_internals.torch_private import TELLS_PYTHON
from torchspore.observe.profiling import annotations as marks
from torchspore.observe.profiling import operator_names, step_breakdown
from torchspore.observe.profiling.profile_data import (
    BACKWARD,
    DATA,
    FORWARD,
    SYNC,
    UPDATE,
    Allocation,
    Kernel,
    Operator,
    ProfileData,
    Stretch,
)
from torchspore.translations import translate

_EVALUATES = "autograd::engine::evaluate_function: "
_BYTES = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "long": 8, "bool": 1, "unsigned char": 1}
_DEEPEST = 20
_OTHERS = ("torchspore/", "torch/", "numpy/")
_SEEN = 10
"""A run of a graph of which less than this part is seen as operators runs code that torch does not see."""
_SHAPELESS = ("aten::empty", "aten::resolve", "aten::detach", "aten::lift", "aten::as_strided", "aten::set_", "aten::alias")
"""Events that move no values and are not operators of anybody."""


@dataclass
class _Run:
    """One run of a graph: how much of it operators were seen to take."""

    number: int
    start: int
    span: int
    thread: int
    scope: str
    seen: int = 0


@dataclass
class _Open:
    """An event that contains others."""

    end: int
    scope: str
    phase: str
    operator: Operator | None
    graph: operator_names.Names | None
    origin: tuple[str, str] | None
    depth: int
    in_cell: bool = False
    compiles: bool = False
    """True if the code inside builds a graph: its operators compute nothing."""
    run: _Run | None = None
    stack: tuple[str, ...] = ()
    """The user's lines that led there, where torch notes them."""


@dataclass
class _Reader:
    graphs: operator_names.Graphs
    profile: ProfileData = field(default_factory=ProfileData)
    origins: dict[int, tuple[str, str]] = field(default_factory=dict)
    owners: dict[int, Operator] = field(default_factory=dict)
    runs: list[_Run] = field(default_factory=list)
    numbers: Counter[str] = field(default_factory=Counter)
    counted: int = -1
    explicit: list[tuple[int, int]] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)
    """Outermost calls of Cells."""
    threads: set[int] = field(default_factory=set)


def read(events: list[Any], modules: dict[int, Any], bytes_before: dict[str, int], forward_point: str, backward_point: str) -> ProfileData:
    """Read torch's events."""
    reader = _Reader(operator_names.Graphs(modules))
    profile = reader.profile
    kernels, allocations, by_thread = [], [], dict[int, list[Any]]()
    for event in events:
        name = _name(event)
        if name == "[memory]":
            allocations.append(event)
        elif str(event.device_type()).endswith("CPU"):
            by_thread.setdefault(event.start_thread_id(), []).append((event.start_ns(), -event.duration_ns(), event, name))
        elif event.duration_ns() and not event.is_user_annotation():
            kernels.append(event)
    # The threads that call Cells come first: the backward pass, in a separate thread on an accelerator, is named after them.
    for _, thread_events in sorted(by_thread.items(), key=lambda item: not any(row[3].startswith(marks.PREFIX) for row in item[1])):
        _thread(reader, sorted(thread_events, key=lambda row: row[:2]))
    _take_compiled(reader)
    _take_kernels(reader, kernels)
    _take_memory(reader, allocations, bytes_before)
    profile.operators.sort(key=lambda row: row.start)
    lasting: list[Operator | Stretch | Kernel] = [*profile.operators, *profile.stretches, *profile.kernels]
    times = [(row.start, row.start + row.span) for row in lasting]
    profile.start, profile.end = (min(t[0] for t in times), max(t[1] for t in times)) if times else (0, 0)
    step_breakdown.divide(profile, reader.explicit, reader.calls, reader.threads, forward_point, backward_point)
    return profile


def _name(event: Any) -> str:
    """The event's name; torch gives bytes that are not text for some of Python's functions."""
    try:
        return str(event.name())
    except UnicodeDecodeError:
        return ""


@functools.cache
def _is_users_line(path: str) -> bool:
    """Return whether a file is the user's; torch removes its folder of sys.path from the name."""
    if not path.endswith(".py") or path.startswith(_OTHERS) or os.path.exists(os.path.join(sysconfig.get_paths()["stdlib"], path)):
        return False
    return is_user_file(path)


def _thread(reader: _Reader, rows: list[tuple[int, int, Any, str]]) -> None:
    stack: list[_Open] = []
    phase = FORWARD
    for start, minus, event, name in rows:
        while stack and stack[-1].end <= start:
            stack.pop()
        around = stack[-1] if stack else _Open(0, "Default", "", None, None, None, 0)
        opened = replace(around, end=start - minus, depth=around.depth + 1)
        if around.compiles:
            pass
        elif name.startswith(marks.PREFIX):
            _take_mark(reader, opened, around, name, start, -minus, event.start_thread_id())
        elif name.startswith(_EVALUATES):
            opened.phase = BACKWARD
            kernel_name = name[len(_EVALUATES):].removesuffix("0").removesuffix("Backward")
            opened.origin = reader.origins.get(event.sequence_nr(), ("Default", kernel_name))
        elif event.is_user_annotation() or event.scope() == 7:
            reader.profile.stretches.append(Stretch(name, "range", start, -minus, event.start_thread_id(), around.depth))
        elif TELLS_PYTHON and event.is_python_function():
            if _is_users_line(name.partition("(")[0]):
                opened.stack = (*around.stack[-_DEEPEST:], name)
        elif not event.is_hidden_event():
            phase = _event(reader, opened, around, event, name, phase)
        stack.append(opened)


def _take_mark(reader: _Reader, opened: _Open, around: _Open, name: str, start: int, span: int, thread: int) -> None:
    kind, _, text = name[len(marks.PREFIX):].partition("::")
    reader.threads.add(thread)
    if kind in ("cell", "optimizer"):
        opened.scope = text
        if kind == "optimizer":
            opened.phase = UPDATE
        reader.profile.stretches.append(Stretch(text, "cell", start, span, thread, around.depth))
        opened.in_cell = True
        if not around.in_cell:
            reader.calls.append((start, start + span))
    elif kind == "data":
        opened.phase = DATA
        reader.profile.stretches.append(Stretch("data", DATA, start, span, thread, around.depth))
    elif kind == "compile":
        opened.compiles = True
        reader.profile.stretches.append(Stretch("compile", "compile", start, span, thread, around.depth))
    elif kind == "step":
        reader.explicit.append((start, start + span))
    elif kind == "graph":
        opened.graph = reader.graphs.names(int(text)) if text.isdigit() else None
        if opened.graph is not None:
            opened.run = _Run(int(text), start, span, thread, around.scope)
            reader.runs.append(opened.run)
    elif kind == "operator" and around.operator is None:
        kernel_name = operator_names.kind_of(text)
        phase = opened.phase or (SYNC if operator_names.is_exchange("", kernel_name) else FORWARD)
        path = f"{opened.scope}/{kernel_name}" if around.origin is None else _gradient(around.origin, kernel_name)
        opened.operator = _add(reader, _numbered(reader, path, start), kernel_name, phase, start, span, thread)


def _event(reader: _Reader, opened: _Open, around: _Open, event: Any, name: str, before: str) -> str:
    """Process an event of torch's operators; return the phase of the next event, unless that has a better indication."""
    number = event.sequence_nr()
    operator = around.operator
    if operator is None and not name.startswith(_SHAPELESS) and event.scope() == 0 and _is_operator(name):
        primitive = around.graph.next(name) if around.graph is not None else None
        if primitive is not None:
            full, kind, phase = primitive
        elif around.origin is not None:
            kind, phase = operator_names.kind_of(name), BACKWARD
            full = _numbered(reader, _gradient(around.origin, kind), event.start_ns())
        else:
            kind = operator_names.kind_of(name)
            # Code outside of every Cell and operator creates Tensors of the program's own data.
            phase = around.phase or (SYNC if operator_names.is_exchange(name, kind) else operator_names.guessed_phase(name, before)
                                     if around.graph is not None else FORWARD if around.in_cell else "")
            full = _numbered(reader, f"{around.scope}/{kind}", event.start_ns())
        operator = opened.operator = _add(reader, full, kind, phase, event.start_ns(), event.duration_ns(), event.start_thread_id())
        if around.graph is not None:
            before = phase
        if around.run is not None:
            around.run.seen += operator.span
    if operator is not None:
        if number >= 0 and around.origin is None:
            reader.origins[number] = (around.scope, operator.kind)
        if not operator.stack:
            operator.stack = list(around.stack)
        _take_shapes(operator, event, name)
        reader.owners[event.correlation_id()] = operator
    return before


def _is_operator(name: str) -> bool:
    return "::" in name and not name.startswith(("autograd::", "profiler::", "prim::"))


def _add(reader: _Reader, name: str, kind: str, phase: str, start: int, span: int, thread: int) -> Operator:
    operator = Operator(name, kind, phase, start, span, thread)
    reader.profile.operators.append(operator)
    return operator


def _gradient(origin: tuple[str, str], kind: str) -> str:
    scope, forward = origin
    return f"Gradients/{scope}/Grad_{forward}/{kind}"


def _numbered(reader: _Reader, name: str, at: int) -> str:
    """The name with the number that tells it from others of the name in one outermost call and its gradient."""
    call = bisect_right(reader.calls, at, key=lambda row: row[0])
    if call != reader.counted:
        reader.numbers.clear()
        reader.counted = call
    number = reader.numbers[name]
    reader.numbers[name] += 1
    return f"{name}-op{number}"


def _take_shapes(operator: Operator, event: Any, name: str) -> None:
    shapes = event.shapes()
    if not shapes:
        return
    counted = flop_counts.of(name, shapes, event.concrete_inputs) if name in flop_counts.COUNTED else 0
    operator.flops += counted
    if not operator.inputs:
        dtypes = event.dtypes()
        operator.inputs, operator.dtypes = [list(shape) for shape in shapes], list(dtypes)
        for shape, dtype in zip(shapes, dtypes):
            size = _BYTES.get(dtype, 0)
            for length in shape if size and all(isinstance(n, int) for n in shape) else (0,):
                size *= length
            operator.read += size


def _take_compiled(reader: _Reader) -> None:
    """Graphs whose code torch does not see, such as those of levels O1 and O2: each run counts as one operator for each of its phases.

    The time of a phase is its share of the graph's operators; the profile says so.
    """
    has_shape = False
    for run in reader.runs:
        if run.seen * _SEEN >= run.span:
            continue
        has_shape = True
        shares, at = reader.graphs.phases(run.number), run.start
        for phase, share in shares.items():
            span = round((run.span - run.seen) * share)
            prefix = "Gradients/" if phase == BACKWARD else ""
            name = f"{prefix}{run.scope}/{'optimizer/' if phase == UPDATE else ''}CompiledGraph-op0"
            _add(reader, name, "CompiledGraph", phase, at, span, run.thread)
            at += span
    if has_shape:
        reader.profile.notes.append(translate(
            "Graphs that were compiled into kernels are one operator each (CompiledGraph); their phases are divided by the "
            "number of operators in each. With jit_level O0 each operator is timed."
        ))


def _take_kernels(reader: _Reader, kernels: list[Any]) -> None:
    for event in kernels:
        owner = reader.owners.get(event.linked_correlation_id())
        start, span = event.start_ns(), event.duration_ns()
        where = event.device_index(), event.device_resource_id()
        reader.profile.kernels.append(Kernel(event.name(), start, span, *where, owner.name if owner else ""))
        if owner is not None:
            owner.device_span += span
            owner.device_start = min(owner.device_start or start, start)
            owner.device_end = max(owner.device_end, start + span)


def _take_memory(reader: _Reader, allocations: list[Any], bytes_before: dict[str, int]) -> None:
    now = dict(bytes_before)
    rows = sorted(reader.profile.operators, key=lambda row: row.start)
    index = 0
    for event in sorted(allocations, key=lambda event: event.start_ns()):
        on_cpu = str(event.device_type()).endswith("CPU")
        device = "CPU" if on_cpu else f"GPU:{event.device_index()}"
        now[device] = now.get(device, 0) + event.nbytes()
        while index < len(rows) and rows[index].start <= event.start_ns():
            index += 1
        last = rows[index - 1] if index else None
        inside = last is not None and last.start + last.span >= event.start_ns()
        reader.profile.allocations.append(
            Allocation(event.start_ns(), event.nbytes(), now[device], device, last.name if inside and last is not None else "")
        )
