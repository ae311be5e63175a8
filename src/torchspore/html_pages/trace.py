"""The page of a trace: a timeline, the operators, the parts of a step's time, and memory."""
from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchspore.html_pages.page import html
from torchspore.html_pages.trace_file import NotATrace, Reader, number
from torchspore.translations import translatable, translate

MOST_EVENTS, MOST_NAMES, MOST_POINTS, MOST_STEPS, LONGEST_NAME = 120_000, 8_000, 2_000, 2_000, 300
"""Limits of the timeline's events and the table's operators; totals count everything in the file."""
_ROUNDED = 1e-3
"""Microseconds by which the end of one event may be after the start of the next."""
PHASES = ("forward", "backward", "data", "sync", "update", "other", "")
TITLES = {
    "forward": translatable("forward"), "backward": translatable("backward"), "data": translatable("data"), "sync": translatable("sync"),
    "update": translatable("update"), "other": translatable("other"),
}
"""The names of phases that the user sees."""
TRACE = "trace_view.json"
_NO_OPERATORS = ("step", "phase", "Trace", "python_function")
_MEMORY = translatable("The memory of Tensors since the start of the trace.")


@dataclass
class Operator:
    """All calls of one name."""

    name: str
    kind: str = ""
    phase: str = ""
    count: int = 0
    total: float = 0.0
    self_time: float = 0.0
    flops: float = 0.0


@dataclass
class Event:
    """One interval of the timeline; times in microseconds."""

    thread: int
    name: int
    start: float
    span: float
    phase: int
    depth: int = 0
    inner: float = 0.0
    operator: Operator | None = None


@dataclass
class Trace:
    """The contents of a file; of its events the first `most_events`."""

    most_events: int = MOST_EVENTS
    names: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    operators: dict[str, Operator] = field(default_factory=dict)
    threads: dict[tuple[str, str], int] = field(default_factory=dict)
    titles: dict[tuple[str, str], str] = field(default_factory=dict)
    steps: list[dict[str, float]] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    chosen: list[tuple[float, float]] = field(default_factory=list)
    """The intervals of the steps; a trace of torchspore lists them first."""
    total: int = 0
    first: float = float("inf")
    last: float = float("-inf")


def find(path: Path) -> Path:
    """Return `path`, or the newest trace in the folder. Raise NotATrace or OSError."""
    if not path.exists():
        raise NotATrace(translate("this file or folder does not exist"))
    if path.is_file():
        return path
    patterns = (TRACE, "timeline_display_*.json", "*.pt.trace.json*", "trace*.json*")
    candidates = next((names for pattern in patterns if (names := list(path.rglob(pattern)))), [])
    if not candidates:
        raise NotATrace(translate("the folder contains no trace (looked for {file})").format(file=TRACE))
    return max(candidates, key=lambda name: name.stat().st_mtime_ns)


def read(path: Path, steps: frozenset[int] = frozenset(), most_events: int = MOST_EVENTS) -> Trace:
    """Read the trace in a file; with `steps` only the events of these steps. Raise NotATrace if there is none, or OSError."""
    trace, reader = Trace(most_events=most_events), Reader(path)
    for event in reader.events():
        _read_event(trace, event, steps)
    if reader.damage:
        text = translate("The file is damaged: {reason}. The events before that position are shown.")
        trace.notes.append(text.format(reason=reader.damage))
    if not trace.total:
        text = translate("it contains no event with a duration")
        raise NotATrace(text + (f"{translate('; ')}{reader.damage}" if reader.damage else ""))
    if trace.total > len(trace.events):
        text = translate("The timeline contains the first {shown:,} of {count:,} events; the table counts them all, and assumes that the "
                         "later ones contain no others.")
        trace.notes.append(text.format(shown=len(trace.events), count=trace.total))
    _nest(trace)
    return trace


def page(trace: Trace, path: Path) -> str:
    """Return the page of a trace."""
    return html(translate("Trace"), data(trace, path), "charts", "timeline", "trace")


def data(trace: Trace, path: Path) -> dict[str, Any]:
    """Return the data of the page."""
    events = trace.events
    depths = [0] * len(trace.threads)
    for event in events:
        depths[event.thread] = max(depths[event.thread], event.depth)
    peak, counted = number(trace.facts.get("peak_flops")), [row for row in trace.operators.values() if row.flops and row.total]
    flops = sum(row.flops for row in counted)
    return {
        "about": str(path), "notes": trace.notes, "total": trace.total, "start": trace.first, "end": trace.last, "peak": peak,
        "flops": flops, "rate": flops / (sum(row.total for row in counted) / 1e6) if counted else None,
        "facts": [str(fact)[:2000] for fact in trace.facts.get("facts", ()) if isinstance(fact, str)][:20],
        "threads": [{"name": _title(trace, key), "depth": depths[index]} for key, index in trace.threads.items()],
        "names": list(trace.names), "phases": PHASES,
        "events": {
            "thread": [event.thread for event in events], "name": [event.name for event in events],
            "start": [round(event.start, 3) for event in events], "span": [round(event.span, 3) for event in events],
            "depth": [event.depth for event in events], "phase": [event.phase for event in events],
        },
        "operators": sorted((_row(row, peak) for row in trace.operators.values()), key=lambda row: -row["self"]),
        "steps": trace.steps, "memory": _thin(trace.memory), "memoryMeaning": str(trace.facts.get("memory", translate(_MEMORY)))[:500],
    }


def _read_event(trace: Trace, event: dict[str, Any], steps: frozenset[int]) -> None:
    kind, name = event.get("ph"), str(event.get("name", ""))[:LONGEST_NAME]
    arguments = event.get("args")
    args: dict[str, Any] = arguments if isinstance(arguments, dict) else {}
    thread = (str(event.get("pid", ""))[:60], str(event.get("tid", ""))[:60])
    start, span = number(event.get("ts")), number(event.get("dur"))
    if kind == "M":
        _read_metadata(trace, name, thread, args)
    elif kind == "C" and start is not None and "emory" in name:
        value = number(next(iter(args.values()), None))
        if value is not None:
            trace.memory.append((start, value))
            if len(trace.memory) >= 4 * MOST_POINTS:
                trace.memory = _thin(trace.memory)
    elif kind == "X" and start is not None and span is not None and span >= 0:
        if event.get("cat") == "step" and (not steps or args.get("step") in steps):
            _add_step(trace, args, span)
            trace.chosen.append((start, start + span))
        if steps and not any(low <= start < high for low, high in trace.chosen):
            return
        _add_event(trace, event, name, thread, start, span, args)


def _read_metadata(trace: Trace, name: str, thread: tuple[str, str], args: dict[str, Any]) -> None:
    if name in ("process_name", "thread_name") and len(trace.titles) < 2000:
        title_key = thread if name == "thread_name" else (thread[0], "")
        trace.titles[title_key] = str(args.get("name", ""))[:LONGEST_NAME]
    elif name == "torchspore":
        trace.facts = args


def _add_step(trace: Trace, args: dict[str, Any], span: float) -> None:
    if len(trace.steps) < MOST_STEPS:
        durations = {phase: max(0.0, number(args.get(f"{phase}_us")) or 0.0) for phase in ("data", "forward", "backward", "sync", "update")}
        phase_total = sum(durations.values())
        other = max(0.0, span - phase_total)
        trace.steps.append({"number": number(args.get("step")) or 0, "total": max(span, phase_total), **durations, "other": other})


def _add_event(
    trace: Trace, event: dict[str, Any], name: str, thread: tuple[str, str], start: float, span: float, args: dict[str, Any],
) -> None:
    phase = args.get("phase")
    phase = phase if phase in PHASES else ""
    trace.total += 1
    trace.first, trace.last = min(trace.first, start), max(trace.last, start + span)
    is_operator = event.get("cat") not in _NO_OPERATORS and not name.startswith("PyTorch Profiler") and (
        trace.titles.get((thread[0], "")) != "Scope Layer")
    if not phase and trace.titles.get((thread[0], "")) == "CPU OP":
        phase = "backward" if name.startswith("Gradients/") else "update" if "/optimizer-" in name else "forward"
    row = None
    if is_operator:
        key = name if name in trace.operators or len(trace.operators) < MOST_NAMES else "(operators beyond the first 8,000 names)"
        row = trace.operators.get(key)
        if row is None:
            row = trace.operators[key] = Operator(key, str(args.get("op_type", event.get("cat", "")))[:60], phase)
        row.count += 1
        row.total += span
        row.flops += max(0.0, number(args.get("flops")) or 0.0)
    if len(trace.events) < trace.most_events and (thread in trace.threads or len(trace.threads) < 200):
        thread_index = trace.threads.setdefault(thread, len(trace.threads))
        name_index = trace.names.setdefault(name, len(trace.names))
        trace.events.append(Event(thread_index, name_index, start, span, PHASES.index(phase), operator=row))
    elif row is not None:
        row.self_time += span


def _nest(trace: Trace) -> None:
    """Compute each event's nesting depth in its thread, and its time outside nested events."""
    ordered = sorted(trace.threads, key=lambda thread: tuple((not name.isdigit(), name.zfill(20)) for name in thread))
    indices = {trace.threads[thread]: index for index, thread in enumerate(ordered)}
    trace.threads = {thread: index for index, thread in enumerate(ordered)}
    for event in trace.events:
        event.thread = indices[event.thread]
    trace.events.sort(key=lambda event: (event.thread, event.start, -event.span))
    open_events: list[Event] = []
    for event in trace.events:
        latest = event.start + _ROUNDED
        while open_events and (open_events[-1].thread != event.thread or open_events[-1].start + open_events[-1].span <= latest):
            open_events.pop()
        if open_events:
            open_events[-1].inner += min(event.span, max(0.0, open_events[-1].start + open_events[-1].span - event.start))
        event.depth = min(len(open_events), 30)
        open_events.append(event)
    for event in trace.events:
        if event.operator is not None:
            event.operator.self_time += max(0.0, event.span - event.inner)


def _row(row: Operator, peak: float | None) -> dict[str, Any]:
    rate = row.flops / (row.total / 1e6) if row.flops and row.total else None
    return {
        "name": row.name, "kind": row.kind, "phase": row.phase, "count": row.count, "total": round(row.total, 3),
        "self": round(row.self_time, 3),
        "flops": row.flops or None, "rate": rate, "ofPeak": rate / peak if rate and peak else None,
    }


def _title(trace: Trace, thread: tuple[str, str]) -> str:
    process, thread_title = trace.titles.get((thread[0], ""), ""), trace.titles.get(thread, f"thread {thread[1]}")
    return f"{process} · {thread_title}" if process else thread_title


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most MOST_POINTS of the points, by time; of neighbours the largest."""
    points = sorted(points)
    size = -(-len(points) // MOST_POINTS)
    return points if size <= 1 else [max(points[at : at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]


def lines(trace: Trace) -> list[str]:
    """Return the trace as a few lines of text for a terminal."""
    rows = sorted(trace.operators.values(), key=lambda row: -row.self_time)
    self_total = sum(row.self_time for row in rows) or 1.0
    text = translate("{events:,} events in {duration:,.3f} ms, {operators:,} operators")
    report_lines = [text.format(events=trace.total, duration=(trace.last - trace.first) / 1e3, operators=len(rows))]
    if trace.steps:
        middle = statistics.median(step["total"] for step in trace.steps)
        shares: Counter[str] = Counter()
        for step in trace.steps:
            shares.update({phase: step[phase] for phase in ("data", "forward", "backward", "sync", "update", "other")})
        total = shares.total() or 1.0
        text = translate("{count} steps, {duration:.3f} ms each (median): {phases}")
        phases = translate(", ").join(f"{translate(TITLES[phase])} {part / total:.0%}" for phase, part in shares.items())
        report_lines.append(text.format(count=len(trace.steps), duration=middle / 1e3, phases=phases))
    width = max((len(_printable(row.name)) for row in rows[:10]), default=0)
    width = min(width, 80)
    report_lines += [
        f"  {_printable(row.name):{width}} {row.count:>8,} {row.self_time / 1e3:>12,.3f} ms {row.self_time / self_total:>6.1%}"
        for row in rows[:10]
    ]
    return [*report_lines, *trace.notes]


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)
