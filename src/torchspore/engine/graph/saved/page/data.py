"""What the page shows of a compilation, as JSON: each operator once, each stage as a list of places among these."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchspore.engine.graph.saved import cost, ir
from torchspore.engine.graph.saved.snapshot import Call, Inner, Reference, Snapshot

if TYPE_CHECKING:
    from torchspore.engine.graph.saved.recording import Compilation, Stage

LIMIT = 10_000
"""The most operators of one stage that the page holds; it says how many it left out."""


def of(compilation: Compilation) -> dict[str, Any]:
    """A compilation as the page reads it."""
    table = _Table()
    stages = [table.stage(stage) for stage in compilation.stages]
    return {
        "name": compilation.name, "line": compilation.line, "settings": dict(compilation.settings),
        "seconds": round(compilation.seconds, 3), "records": table.records, "sources": table.sources, "stages": stages,
        "times": {name: round(took * 1e6, 2) for name, took in compilation.times.items()},
    }


class _Table:
    """The operators of a compilation; one that is the same in several stages stands here once."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.sources: dict[str, str] = {}
        self._places: dict[str, int] = {}

    def stage(self, stage: Stage) -> dict[str, Any]:
        """A stage; one with the graph of an earlier one holds no graph."""
        about = {"title": stage.title, "about": stage.about, "file": stage.file, "part": stage.part}
        if stage.same_as is not None:
            return {**about, "same": stage.same_as}
        graph = stage.snapshot
        told = list(_told(graph, "", ""))
        return {
            **about, "total": len(told), "nodes": [self._place(record, call) for record, call in told[:LIMIT]],
            "inputs": [_plain(n=i.name, t=i.shown, k=i.kind.short(), p=i.parameter) for i in graph.inputs],
            "outputs": [item.name for item in graph.outputs if isinstance(item, Reference)],
        }

    def _place(self, record: dict[str, Any], call: Call) -> int:
        for line in call.stack:
            if line not in self.sources:
                file, _, number = line.rpartition(":")
                self.sources[line] = ir.source_line(file, int(number) if number.isdigit() else 0)
        key = json.dumps(record, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.records)
            self.records.append(record)
        return self._places[key]


def _told(graph: Snapshot, prefix: str, around: str) -> Iterator[tuple[dict[str, Any], Call]]:
    """The record of each operator, those of graphs inside before the operator that runs them."""
    costs = cost.seconds(graph)
    inner = {other.name: other for other in graph.inner}
    inputs = {given.name: given for given in graph.inputs}
    for call in graph.calls:
        path = around or ("Gradients/" if call.is_backward else "") + call.scope
        reads = [prefix + name for name in call.reads if name not in inputs or not prefix]
        for item in call.arguments:
            if isinstance(item, Inner):
                yield from _told(inner[item.name], f"{prefix}{item.name}:", f"{path}/{item.name}")
                reads += [f"{prefix}{item.name}:{out.name}" for out in inner[item.name].outputs if isinstance(out, Reference)]
        yield _plain(
            n=prefix + call.name, o=call.target, c=call.called, s=path, f=call.full_name, k=call.kind.short(), r=reads,
            b=call.is_backward, l=list(call.stack), x=_characters(call), m=call.made_by,
            u=list(call.fused), e=round(costs[call.name] * 1e6, 2),
            a={name: ir.shown(value) for name, value in call.keywords.items()}, g=[ir.shown(value) for value in call.arguments],
        ), call


def _characters(call: Call) -> list[int]:
    """Where in its line a call stands, in characters; Python counts bytes."""
    file, _, number = call.line.rpartition(":")
    line = ir.source_line(file, int(number)).encode() if call.columns else b""
    return [len(line[:place].decode(errors="ignore")) for place in call.columns or ()]


def _plain(**entries: Any) -> dict[str, Any]:
    """The entries that say something."""
    return {name: value for name, value in entries.items() if value not in (None, "", [], {}, False)}
