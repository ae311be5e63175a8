"""A snapshot as a drawing that graphviz reads: one cluster for each graph, one table for each node, one port for each argument."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape

from torchspore.graph.save_graphs.snapshot import Call, Inner, Reference, Snapshot

_FACE = 'fontname="Courier New"'


def text(snapshot: Snapshot) -> str:
    """Return the text of the file."""
    lines = ["digraph mindspore {", "compound=true", f"node [{_FACE} fontsize=10]", f"edge [{_FACE} fontsize=8 color=\"#5b6470\"]"]
    graphs = list(snapshot.every())
    ids = {(graph.name, name): f"node{g}_{n}" for g, graph in enumerate(graphs)
           for n, name in enumerate([*[i.name for i in graph.inputs], *[c.name for c in graph.calls], "return"])}
    for number, graph in enumerate(graphs):
        lines += _cluster(graph, number, ids)
    for graph in graphs:
        lines += _edges(graph, graphs, ids)
    return "\n".join([*lines, "}"]) + "\n"


def edge_between(stage: str, other: str) -> str:
    """The drawing of a stage in which the graph stayed as it was."""
    return f'digraph mindspore {{\nnode0 [shape=box,{_FACE},label="{_text(stage)}: same as {_text(other)}"]\n}}\n'


def _cluster(graph: Snapshot, number: int, ids: dict[tuple[str, str], str]) -> Iterator[str]:
    yield f"subgraph cluster_{number} {{"
    yield f'id="cluster_{number}" label="{_text(graph.name)}" {_FACE} color="#9aa4b2"'
    for graph_input in graph.inputs:
        colour = "#e7f0fe" if graph_input.parameter is None else "#fdf1d8"
        label = _table(graph_input.shown, graph_input.kind.short(), (), colour)
        yield f"{ids[graph.name, graph_input.name]} [shape=plaintext,label=<{label}>]"
    for call in graph.calls:
        colour = "#fbe4e6" if call.is_backward else "#e6f4ea"
        yield f"{ids[graph.name, call.name]} [shape=plaintext,label=<{_table(call.target, call.kind.short(), call.reads, colour, call)}>]"
    yield f'{ids[graph.name, "return"]} [shape=plaintext,label=<{_table("Return", "", (), "#eceff3")}>]'
    yield "}"


def _table(title: str, kind: str, ports: tuple[str, ...], colour: str, call: Call | None = None) -> str:
    """An HTML table as graphviz has it: a port for each value read, the name, the type, the scope."""
    width = max(1, len(ports))
    top = "".join(f'<td port="{index}">{index}</td>' for index in range(len(ports)))
    rows = [f"<tr>{top}</tr>"] if top else []
    rows.append(f'<tr><td bgcolor="{colour}" colspan="{width}" port="core"><b>{escape(title)}</b></td></tr>')
    rows += [f'<tr><td colspan="{width}">{escape(kind)}</td></tr>'] if kind else []
    if call is not None:
        rows.append(f'<tr><td colspan="{width}"><font point-size="7">{escape(call.full_name)}</font></td></tr>')
    return f'<table border="0" cellborder="1" cellspacing="0" cellpadding="3">{"".join(rows)}</table>'


def _edges(graph: Snapshot, graphs: list[Snapshot], ids: dict[tuple[str, str], str]) -> Iterator[str]:
    numbers = {other.name: number for number, other in enumerate(graphs)}
    for call in graph.calls:
        for index, name in enumerate(call.reads):
            if (graph.name, name) in ids:
                yield f"{ids[graph.name, name]}:core -> {ids[graph.name, call.name]}:{index}"
        for item in call.arguments:
            if isinstance(item, Inner):
                yield (f'{ids[item.name, "return"]}:core -> {ids[graph.name, call.name]}:core '
                       f"[style=dashed ltail=cluster_{numbers[item.name]}]")
    for index, item in enumerate(graph.outputs):
        if isinstance(item, Reference) and (graph.name, item.name) in ids:
            yield f'{ids[graph.name, item.name]}:core -> {ids[graph.name, "return"]}:core [label="{index}"]'


def _text(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
