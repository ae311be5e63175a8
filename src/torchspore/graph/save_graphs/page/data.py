"""The data of the page of saved graphs as one JSON value, with an estimate of each operator's cost."""
from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from torchspore.graph.save_graphs import ir
from torchspore.graph.save_graphs.compilation_record import Compilation, Stage
from torchspore.graph.save_graphs.ir_types import Value
from torchspore.graph.save_graphs.snapshot import Call, Inner, Reference, Snapshot
from torchspore.translations import translate

FLOPS, BANDWIDTH, CALL = 50e9, 10e9, 2e-6
"""Operations and bytes a second, and seconds a call: a desktop's order of magnitude. Shares depend on their ratios only."""

_FREE = frozenset("t view _unsafe_view transpose permute expand unsqueeze squeeze slice select detach alias getitem as_strided".split())


def seconds(graph: Snapshot) -> dict[str, float]:
    """The estimate for each node of a graph, by name; a node that runs graphs takes what these take, the longest of them."""
    kinds = {graph_input.name: graph_input.kind for graph_input in graph.inputs} | {call.name: call.kind for call in graph.calls}
    inner = {other.name: sum(seconds(other).values()) for other in graph.inner}
    return {call.name: _of(call, kinds) + max([inner.get(a.name, 0.0) for a in call.arguments if hasattr(a, "name")], default=0.0)
            for call in graph.calls}


def _of(call: Call, kinds: Mapping[str, Value]) -> float:
    name = call.target.rpartition(".")[2]
    if name in _FREE:
        return CALL / 4
    read = [kinds[other] for other in call.reads if other in kinds]
    moved = call.kind.bytes + sum(kind.bytes for kind in read)
    return CALL + max(moved / BANDWIDTH, _operations(name, call.kind, read) / FLOPS)


def _operations(name: str, gives: Value, read: list[Value]) -> float:
    """Multiplications and additions of products and convolutions; 0 for other operators, which memory bounds."""
    shapes = [kind.shape for kind in read if kind.dtype and all(type(n) is int for n in kind.shape)]
    if name in ("mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "_linear_pointwise") and len(shapes) >= 2:
        factor = shapes[-2] if name in ("addmm", "baddbmm") else shapes[0]
        return 2.0 * _size(gives) * factor[-1] if factor else 0.0
    if name == "convolution" and len(shapes) >= 2:
        return 2.0 * _size(gives) * math.prod(shapes[1][1:])
    if name == "convolution_backward" and len(shapes) >= 3:
        return 4.0 * math.prod(shapes[0]) * math.prod(shapes[2][1:])
    if "attention" in name and shapes:
        return 4.0 * _size(gives) * shapes[0][-2] if len(shapes[0]) > 1 else 0.0
    return 0.0


def _size(kind: Value) -> int:
    if kind.items:
        return _size(kind.items[0])
    return math.prod(n for n in kind.shape if type(n) is int)

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
    """The operators of a compilation; an operator that several stages share is listed once."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.sources: dict[str, str] = {}
        self._record_indices: dict[str, int] = {}

    def stage(self, stage: Stage) -> dict[str, Any]:
        """A stage; one with the graph of an earlier one holds no graph."""
        part = translate(stage.part) if stage.part else ""
        about = {"title": stage.title, "about": translate(stage.about), "file": stage.file, "part": part}
        if stage.duplicate_of is not None:
            return {**about, "same": stage.duplicate_of}
        graph = stage.snapshot
        entries = list(_entries(graph, "", ""))
        return {
            **about, "total": len(entries), "nodes": [self._record_index(record, call) for record, call in entries[:LIMIT]],
            "inputs": [_plain(n=i.name, t=i.shown, k=i.kind.short(), p=i.parameter) for i in graph.inputs],
            "outputs": [item.name for item in graph.outputs if isinstance(item, Reference)],
        }

    def _record_index(self, record: dict[str, Any], call: Call) -> int:
        for line in call.stack:
            if line not in self.sources:
                file, _, number = line.rpartition(":")
                self.sources[line] = ir.source_line(file, int(number) if number.isdigit() else 0)
        key = json.dumps(record, sort_keys=True)
        if key not in self._record_indices:
            self._record_indices[key] = len(self.records)
            self.records.append(record)
        return self._record_indices[key]


def _entries(graph: Snapshot, prefix: str, around: str) -> Iterator[tuple[dict[str, Any], Call]]:
    """Return the record of each operator, those of nested graphs before the operator that runs them."""
    costs = seconds(graph)
    inner = {other.name: other for other in graph.inner}
    inputs = {graph_input.name: graph_input for graph_input in graph.inputs}
    for call in graph.calls:
        path = around or ("Gradients/" if call.is_backward else "") + call.scope
        reads = [prefix + name for name in call.reads if name not in inputs or not prefix]
        for item in call.arguments:
            if isinstance(item, Inner):
                yield from _entries(inner[item.name], f"{prefix}{item.name}:", f"{path}/{item.name}")
                reads += [f"{prefix}{item.name}:{out.name}" for out in inner[item.name].outputs if isinstance(out, Reference)]
        yield _plain(
            n=prefix + call.name, o=call.target, c=call.called, s=path, f=call.full_name, k=call.kind.short(), r=reads,
            b=call.is_backward, l=list(call.stack), x=_characters(call), m=call.created_by,
            u=list(call.fused), e=round(costs[call.name] * 1e6, 2),
            a={name: ir.shown(value) for name, value in call.keywords.items()}, g=[ir.shown(value) for value in call.arguments],
        ), call


def _characters(call: Call) -> list[int]:
    """Return the position of a call in its line, in characters; Python counts bytes."""
    file, _, number = call.line.rpartition(":")
    line = ir.source_line(file, int(number)).encode() if call.columns else b""
    return [len(line[:column].decode(errors="ignore")) for column in call.columns or ()]


def _plain(**entries: Any) -> dict[str, Any]:
    """The entries that say something."""
    return {name: value for name, value in entries.items() if value not in (None, "", [], {}, False)}
