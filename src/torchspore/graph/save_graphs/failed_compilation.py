"""`rank_0/om/analyze_fail.ir`: the graph of a failed compilation up to the failure, under the current directory or the value of MS_OM_PATH.

It is written regardless of `save_graphs`, as in MindSpore. The call is traced again for it, with lines and scopes.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from torchspore.engine import process
from torchspore.graph.refusal import Kind, Refusal
from torchspore.graph.report import stages
from torchspore.graph.save_graphs import folder, ir, ir_types
from torchspore.graph.save_graphs.snapshot import Call, Inputs, Snapshot, Taker

NAME = "analyze_fail.ir"
_MARKED = "refused"


class _Trace:
    """Receives the trace of a call, complete or up to its failure."""

    def __init__(self) -> None:
        self.capture: Any = None
        self.is_complete = False

    def began(self, capture: Any) -> None:
        """Store the trace while it is created."""
        self.capture, self.is_complete = capture, False

    def traced(self, module: torch.fx.GraphModule, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        """Learns that the trace went through: something else was refused."""
        self.is_complete = True

    def keep(self, name: str, module: torch.fx.GraphModule) -> None:
        """Ignores a stage after the trace."""

    keep_pass = keep

    def emitted(self, module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> None:
        """Ignores a stage after the trace."""

    def part(self, name: str) -> None:
        """Ignores a stage after the trace."""


def write(
    name: str, refusal: Refusal, settings: Mapping[str, str], call: tuple[Any, tuple[Any, ...], Mapping[str, Any]],
    trace_again: Callable[[], Any],
) -> Path | None:
    """Write the file about a call of `name`, (function, positional and keyword arguments), which `trace_again` traces again.

    Return its path, None if it cannot be written.
    """
    trace = _Trace()
    if refusal.kind is not Kind.ARGUMENT:           # arguments are refused before anything is traced
        with stages.recorded_by(trace):
            with contextlib.suppress(Refusal):
                trace_again()
    entry = "".join(c if c.isalnum() else "_" for c in name)
    graph = Snapshot(entry, [], [], ())
    if trace.capture is not None:
        inputs = Inputs(trace.capture.lifted, *call)
        graph = Taker().snapshot(trace.capture.tracer, entry, inputs, "")
    _mark(graph, refusal, trace.is_complete)
    path = Path(os.environ.get("MS_OM_PATH") or ".").absolute() / process.folder() / "om" / NAME
    try:
        folder.write_into_folder(path, _text(graph, refusal, name, settings))
    except OSError:
        return None
    return path


def _mark(graph: Snapshot, refusal: Refusal, is_complete: bool) -> None:
    """Insert the refused call among the operators: at the end of the trace or, if the trace succeeded, at its line."""
    index = len(graph.calls)
    if is_complete:
        index = next((n for n, call in enumerate(graph.calls) if _is_beyond(call.line, refusal.line)), index)
    near = [call for call in graph.calls[:index] if call.line == refusal.line] or graph.calls[:index]
    scope = near[-1].scope if near else "Default"
    reason = refusal.reason.partition("\n")[0].removesuffix(":")
    stack = tuple(refusal.stack) or (refusal.line,)
    graph.calls.insert(index, Call(_MARKED, "Refused", "", (reason,), {}, (), ir_types.of(None), scope, stack))


def _is_beyond(line: str, other: str) -> bool:
    (file, _, number), (its_file, _, its_number) = line.rpartition(":"), other.rpartition(":")
    return file == its_file and number.isdigit() and its_number.isdigit() and int(number) >= int(its_number)


def _text(graph: Snapshot, refusal: Refusal, name: str, settings: Mapping[str, str]) -> str:
    reason_lines = refusal.reason.splitlines()
    about = (f"{refusal.line}: {name} {reason_lines[0]}", *reason_lines[1:], f"'{ir.MARK}' is above the operation where the graph ended")
    return ir.text(graph, settings, about, _MARKED)
