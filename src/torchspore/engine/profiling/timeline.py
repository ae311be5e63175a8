"""A record as a trace that chrome://tracing, Perfetto and `torchspore trace view` draw, in the form of MindSpore's trace_view.json."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from torchspore.engine.profiling.record import PHASES, Record

_PROCESSES = {1: "Steps", 2: "CPU OP", 3: "Scope Layer", 4: "Accelerator", 5: "Program"}
_DEEPEST = 12


def write(file: TextIO, record: Record, facts: dict[str, Any], limit: int | None = None) -> None:
    """Writes the events, each on a line of its own; `limit` are the most bytes that they may take."""
    size, first = 0, True
    file.write("[")
    for event in events(record, facts):
        text = json.dumps(event)
        size += len(text) + 2
        if limit is not None and size > limit:
            break
        file.write(text if first else ",\n" + text)
        first = False
    file.write("]\n")


def events(record: Record, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events one after the other."""
    yield {"ph": "M", "name": "torchspore", "pid": 0, "tid": 0, "args": facts}
    for process, name in _PROCESSES.items():
        yield from _named(process, 0, "process_name", name, process)
    threads = {thread: place for place, thread in enumerate(sorted({row.thread for row in record.operators}))}
    for place in threads.values():
        yield from _named(2, place, "thread_name", f"Thread {place}", place)
    for step in record.steps:
        own = {f"{phase}_us": step.phases[phase] / 1e3 for phase in PHASES}
        yield _lasting(f"step {step.number}", 1, 0, step.start, step.total, {"step": step.number, **own}, "step")
    for row in record.operators:
        args: dict[str, Any] = {"type": "HostCpuOps", "op_type": row.kind, "phase": row.phase}
        if row.flops:
            args["flops"] = row.flops
        if row.inputs:
            args["input_shapes"] = str(row.inputs)
        yield _lasting(row.name, 2, threads[row.thread], row.start, row.span, args)
    for one in record.stretches:
        process = {"cell": 3, "data": 1}.get(one.kind, 5)
        phase = {"phase": "data"} if one.kind == "data" else {}
        name = one.name.rpartition("/")[2] if one.kind == "cell" else "waits for data" if one.kind == "data" else one.name
        yield _lasting(name, process, 1 if one.kind == "data" else min(one.depth, _DEEPEST), one.start, one.span, phase, "phase")
    for kernel in record.kernels:
        yield _lasting(kernel.name, 4, kernel.device * 1000 + kernel.stream, kernel.start, kernel.span, {"operator": kernel.operator}, "phase")
    for allocation in record.allocations:
        yield {"ph": "C", "name": f"memory {allocation.device}", "pid": 1, "tid": 0, "ts": _us(allocation.at), "args": {"bytes": allocation.held}}


def _named(process: int, thread: int, kind: str, name: str, order: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
    yield {"ph": "M", "name": kind.replace("_name", "_sort_index"), "pid": process, "tid": thread, "args": {"sort_index": order}}


def _lasting(name: str, process: int, thread: int, start: int, span: int, args: dict[str, Any], category: str = "") -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": _us(start), "dur": _us(span), "cat": category, "args": args}


def _us(nanoseconds: int) -> str:
    """Microseconds as MindSpore writes them, in text: as a number they would lose their last digits."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
