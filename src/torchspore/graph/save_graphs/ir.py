"""A snapshot in the grammar of MindSpore's .ir files (read off files that MindSpore 2.10 wrote): `%1(mm) = aten.mm(%para1_x, %0)`."""
from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from torchspore.graph.save_graphs import ir_types
from torchspore.graph.save_graphs.snapshot import Call, Inner, Input, Reference, Snapshot

MARK = "#------------------------> 0"
"""The comment above the node at which a compilation failed."""


def text(snapshot: Snapshot, settings: Mapping[str, str], about: tuple[str, ...] = (), failed: str = "") -> str:
    """Return the text of the file. `settings` are the compile options in force, `about` comments for its head, `failed` the name of a node
    to mark."""
    graphs = list(snapshot.every())
    lines = [f"# IR entry: @{snapshot.name}", f"# Total subgraphs: {len(graphs)}", *[f"# {line}" for line in about], ""]
    lines += ["jit config {", *[f"{name}: {value}" for name, value in sorted(settings.items())], "}", ""]
    lines += ["# Attrs:", "", f"# Total params: {len(snapshot.inputs)}", "# Params:", *_parameters(snapshot.inputs), ""]
    lines += _counts(graphs)
    for graph in graphs:
        lines += ["", *_subgraph(graph, failed, graph is snapshot)]
    return "\n".join(lines) + "\n"


def is_equal_stage(head: str, other: str) -> str:
    """The file of a stage in which the graph stayed as it was; `other` is the file that shows it."""
    return f"# {head}\n# same as {other}\n"


def _parameters(inputs: list[Input]) -> Iterator[str]:
    for index, graph_input in enumerate(inputs, 1):
        yield f"%para{index}_{graph_input.shown}: {_kind(graph_input)}"


def _kind(graph_input: Input) -> str:
    if graph_input.parameter is None:
        return str(graph_input.kind)
    return (
        f"<Ref[{graph_input.kind.element()}], {graph_input.kind.extent()}, ref_key={graph_input.parameter}, is_parameter>  :  has_default"
    )


def _counts(graphs: list[Snapshot]) -> list[str]:
    """Return how often each operator occurs, the most frequent first."""
    counts = Counter(call.target for graph in graphs for call in graph.calls)
    calls = sum(counts.values()) + len(graphs)
    lines = ["Node counting information:", f"Total number of nodes: {calls + sum(len(graph.inputs) for graph in graphs)}",
             f"Total number of cnodes: {calls}"]
    return [*lines, *[f"# {name}: {count}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]]


def _subgraph(graph: Snapshot, failed: str, is_entry: bool) -> list[str]:
    names = {graph_input.name: f"%para{index}_{graph_input.shown}" for index, graph_input in enumerate(graph.inputs, 1)}
    names |= {call.name: f"%{index}" for index, call in enumerate(graph.calls)}
    types = {graph_input.name: graph_input.kind for graph_input in graph.inputs} | {call.name: call.kind for call in graph.calls}
    parameters = "" if is_entry else ", ".join(_parameters(graph.inputs))
    lines = ["subgraph attr:", f"subgraph instance: {graph.name}", f"subgraph @{graph.name}({parameters}) {{"]
    for call in graph.calls:
        lines += [MARK] if call.name == failed else []
        lines += _lines(call, names, types)
    if failed and is_entry:
        return [*lines, "}"]
    read = ", ".join(_argument(item, names) for item in graph.outputs)
    results = tuple(types.get(getattr(item, "name", ""), ir_types.of(None)) for item in graph.outputs)
    result = results[0] if len(results) == 1 else ir_types.Value(items=results)
    return [*lines, f"  Return({read})", f"      : ({result})", "      # Fullname with scope: (Default/Return-op0)", "}"]


def _lines(call: Call, names: Mapping[str, str], types: Mapping[str, ir_types.Value]) -> Iterator[str]:
    """The lines of one node: the call, types, scope, the user's line."""
    arguments = ", ".join(_argument(item, names) for item in call.arguments)
    attributes = ", ".join(f"{name}: {_argument(value, names)}" for name, value in call.keywords.items())
    instance = f" {{instance name: {call.called}}}" if call.called else ""
    attribute_text = f" primitive_attrs: {{{attributes}}}" if attributes else ""
    attribute_text += f" cnode_attrs: {{fused: ({', '.join(call.fused)})}}" if call.fused else ""
    yield f"  {names[call.name]}({call.name}) = {call.target}({arguments}){instance}{attribute_text}"
    taken = ", ".join(str(types.get(name, ir_types.of(None))) for name in call.reads)
    yield f"      : ({taken}) -> ({call.kind})"
    yield f"      # Fullname with scope: ({call.full_name})"
    if call.created_by:
        yield f"      # Made by: {call.created_by}"
    for depth, line in enumerate(call.stack, 1):
        yield f"      # In file {location_of(line, call.columns if depth == len(call.stack) else None)}"


def location_of(line: str, columns: tuple[int, int] | None = None) -> str:
    """Return `net.py:12, 8~24/ return self.fc(x)/`: a position in the program with the text of its line."""
    file, _, number = line.rpartition(":")
    shown = f", {columns[0]}~{columns[1]}" if columns is not None else ""
    return f"{line}{shown}/{source_line(file, int(number) if number.isdigit() else 0)}/"


def source_line(file: str, number: int) -> str:
    """Return a line of a source file, empty if it has none."""
    return linecache.getline(file, number).rstrip("\n")


def shown(value: Any) -> str:
    """An argument by itself, with the graph's own names of values."""
    return _argument(value, {})


def _argument(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Reference):
        return names.get(value.name, f"%{value.name}")
    if isinstance(value, Inner):
        return f"@{value.name}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_argument(item, names) for item in value)})"
    return ir_types.literal(value)
