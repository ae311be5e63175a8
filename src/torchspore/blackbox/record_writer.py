"""The files of a record, `<path>/rank_N/rdr/<MODULE>.<name>.<yyyymmddHHMMSS>[_NNNN].<ext>`, named as by MindSpore's recorder."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchspore.base.files import READ_ONLY, write_atomically
from torchspore.base.paths import PRIVATE
from torchspore.blackbox.board import OperatorRun

LONGEST_NAME = 64
CAUSE, OPERATORS, STACKS = "TORCHSPORE.cause", "RUNTIME_FRAMEWORK.operators", "TORCHSPORE.python_stacks"
CONTEXT, VERSIONS, ALLOCATIONS = "TORCHSPORE.context", "TORCHSPORE.versions", "RUNTIME_FRAMEWORK.allocations"
ADDRESSES, TENSORS = "RUNTIME_FRAMEWORK.mem_address_list", "RUNTIME_FRAMEWORK.tensors"


@dataclass
class Parts:
    """The contents of a record. `facts` has `folder`, `command`, `versions`, `context`; with `by_program` the program writes it itself."""

    cause: dict[str, Any]
    facts: dict[str, Any]
    ring: list[OperatorRun]
    started: int
    count: int
    stacks: str
    memory: list[tuple[float, int]] = field(default_factory=list)
    graphs: list[dict[str, Any]] = field(default_factory=list)
    tensors: str = ""
    device_memory: str = ""
    by_program: bool = True
    steps: Callable[[Path, str], None] | None = None
    """Writes the saved steps to a folder with this time stamp."""


def write(parts: Parts) -> str:
    """Write a record; return "" or a message for the user about the problem."""
    folder = Path(str(parts.facts.get("folder") or f"./rank_{os.environ.get('RANK_ID', '0')}/rdr"))
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        stamp = _claim_stamp(folder)
        cause = {
            **parts.cause, "program": parts.facts.get("program"), "pid": parts.facts.get("pid"), "command": parts.facts.get("command"),
            "at": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        path = folder / f"{CAUSE}.{stamp}.json"
        write_atomically(path, json.dumps({**cause, "incomplete": True}, indent=1))        # written first, in case the disk is full
        for name, contents in files(parts, stamp):
            write_atomically(folder / name, contents, READ_ONLY)
        if parts.steps is not None:
            parts.steps(folder, stamp)
        write_atomically(path, json.dumps(cause, indent=1), READ_ONLY)
    except OSError as error:
        return (f"the record of what happened can't be written completely to {folder} ({error.strerror or type(error).__name__}).\n\n"
                "hint: set rdr.path (MS_RDR_PATH) to a directory that can be written and has enough space.")
    return ""


def _claim_stamp(folder: Path) -> str:
    """Return the time stamp of this record: a second that no other record in the folder uses."""
    at = int(time.time())
    while True:
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(at))
        try:
            os.close(os.open(folder / f"{CAUSE}.{stamp}.json", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return stamp
        except FileExistsError:
            at += 1


def files(parts: Parts, stamp: str) -> Iterator[tuple[str, str | bytes]]:
    """Yield the name and contents of each file except the cause."""
    yield f"{STACKS}.{stamp}.txt", parts.stacks or "no stacks were written\n"
    yield f"{OPERATORS}.{stamp}.txt", operators(parts)
    yield f"{ADDRESSES}.{stamp}.txt", addresses(parts.ring)
    yield f"{CONTEXT}.{stamp}.txt", str(parts.facts.get("context", ""))
    about = {key: parts.facts.get(key) for key in ("versions", "command", "folder_of_work", "pid")}
    yield f"{VERSIONS}.{stamp}.json", json.dumps(about, indent=1)
    yield f"{ALLOCATIONS}.{stamp}.txt", allocations(parts)
    if parts.tensors:
        yield f"{TENSORS}.{stamp}.txt", parts.tensors
    for number, graph in enumerate(parts.graphs):
        for index, (stage, text) in enumerate(graph.get("stages", ())):
            yield f"{_cut(f'PIPELINE.{stage}')}.{stamp}_{number * 100 + index:04d}.ir", text
        if graph.get("final"):
            yield f"SESSION.graph_build.{number}.{stamp}_{number + 1:04d}.ir", graph["final"]
        yield f"SESSION.graph_exec_order.{number}.{stamp}.txt", order(graph, number)


def _cut(name: str) -> str:
    return name[:LONGEST_NAME]


def operators(parts: Parts) -> str:
    """Format the last operators: start, duration, thread and inputs."""
    lines = [f"# the last {len(parts.ring)} of {parts.count} operators; start in seconds since the recorder began, duration in us",
             "# number  start  duration  thread  operator  inputs"]
    for ran in parts.ring:
        duration = f"{ran.duration / 1e3:.1f}" if ran.duration else "not ended"
        more = f", {ran.left_out} more" if ran.left_out else ""
        lines.append(f"{ran.number}  {(ran.start - parts.started) / 1e9:.6f}  {duration}  {ran.thread}  {ran.name}  "
                     f"({', '.join(map(str, ran.values))}{more})")
    return "\n".join(lines) + "\n"


def addresses(ring: list[OperatorRun]) -> str:
    """Format the addresses of each operator's inputs, like MindSpore's list."""
    lines: list[str] = []
    for ran in ring:
        lines += [f"{ran.name}", f"kernel_inputs {len(ran.values)}", *[f"&{value.address:#x} #{value.bytes}" for value in ran.values],
                  "kernel_workspaces 0", "kernel_outputs 0", ""]
    return "\n".join(lines) + "\n"


def allocations(parts: Parts) -> str:
    """Format the memory of the process over time, and the report of the device's allocator."""
    lines = ["# memory of the process (resident): seconds since the recorder began, bytes; a line for each observed change"]
    lines += [f"{at:.2f}  {size}" for at, size in parts.memory] or ["# nothing was observed"]
    if parts.memory:
        lines.insert(1, f"# peak {max(size for _, size in parts.memory)}")
    return "\n".join([*lines, parts.device_memory]).rstrip() + "\n"


def order(graph: dict[str, Any], number: int) -> str:
    """Format the operators of a graph in execution order."""
    calls = graph.get("order", ())
    lines = ["================== execution order ==================", f"execution_order size: {len(calls)}"]
    for index, (name, scope, target) in enumerate(calls):
        lines += [f"{index}:", f"  {scope}:{name}{{[0]: ValueNode {target}}}", "  stream_label: main", f"  graph_id: {number}"]
    return "\n".join([*lines, "================== execution order =================="]) + "\n"
