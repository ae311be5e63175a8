"""A profile as a trace that chrome://tracing, Perfetto and `torchspore trace view` draw, in the form of MindSpore's trace_view.json."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from torchspore.observe.profiling.profile_data import PHASES, ProfileData

_PROCESSES = {1: "Steps", 2: "CPU OP", 3: "Scope Layer", 4: "Accelerator", 5: "Program"}
_DEEPEST = 12
_TRACKS = {"cell": (3, 0), "data": (1, 1), "compile": (1, 2)}
_LABELS = {"data": "waits for data", "compile": "captures and compiles a graph"}


def write(file: BinaryIO, profile: ProfileData, facts: dict[str, Any], limit: int | None = None) -> None:
    """Write the events, each on a separate line; `limit` is the maximum number of bytes."""
    size, separator = 0, b"["
    for event in events(profile, facts):
        text = separator + json.dumps(event).encode()
        size += len(text)
        if limit is not None and size > limit:
            break
        file.write(text)
        separator = b",\n"
    file.write(b"]\n")


def events(profile: ProfileData, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events in order."""
    yield {"ph": "M", "name": "torchspore", "pid": 0, "tid": 0, "args": facts}
    for process, name in _PROCESSES.items():
        yield from _named(process, 0, "process_name", name, process)
    threads = {thread: index for index, thread in enumerate(sorted({row.thread for row in profile.operators}))}
    for index in threads.values():
        yield from _named(2, index, "thread_name", f"Thread {index}", index)
    for index, name in enumerate(("steps", "waits for data", "makes graphs")):
        yield from _named(1, index, "thread_name", name, index)
    for step in profile.steps:
        arguments = {f"{phase}_us": step.phases[phase] / 1e3 for phase in PHASES}
        yield _lasting(f"step {step.number}", 1, 0, step.start, step.total, {"step": step.number, **arguments}, "step")
    for row in profile.operators:
        args: dict[str, Any] = {"type": "HostCpuOps", "op_type": row.kind, "phase": row.phase}
        if row.flops:
            args["flops"] = row.flops
        if row.inputs:
            args["input_shapes"] = str(row.inputs)
        if row.stack:
            args["Call stack"] = "\n".join(row.stack)
        yield _lasting(row.name, 2, threads[row.thread], row.start, row.span, args)
    for one in profile.stretches:
        process, thread = _TRACKS.get(one.kind, (5, min(one.depth, _DEEPEST)))
        thread = min(one.depth, _DEEPEST) if one.kind == "cell" else thread
        phase = {"phase": one.kind} if one.kind == "data" else {}
        name = one.name.rpartition("/")[2] if one.kind == "cell" else _LABELS.get(one.kind, one.name)
        yield _lasting(name, process, thread, one.start, one.span, phase, "phase")
    for kernel in profile.kernels:
        index = kernel.device * 1000 + kernel.stream
        yield _lasting(kernel.name, 4, index, kernel.start, kernel.span, {"operator": kernel.operator}, "phase")
    for allocation in profile.allocations:
        name = f"memory {allocation.device}"
        yield {"ph": "C", "name": name, "pid": 1, "tid": 0, "ts": _us(allocation.at), "args": {"bytes": allocation.bytes_in_use}}


def _named(process: int, thread: int, kind: str, name: str, order: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
    yield {"ph": "M", "name": kind.replace("_name", "_sort_index"), "pid": process, "tid": thread, "args": {"sort_index": order}}


def _lasting(name: str, process: int, thread: int, start: int, span: int, args: dict[str, Any], category: str = "") -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": _us(start), "dur": _us(span), "cat": category, "args": args}


def _us(nanoseconds: int) -> str:
    """Microseconds as MindSpore writes them, in text: as a number they would lose their last digits."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
