"""The cost of a split: each operator's layout, its communication and its time."""
from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.fx.node import Node

from torchspore.context.plan_request import Machine
from torchspore.distributed.shard.local_graph import SplitOperator
from torchspore.distributed.shard.memory_model import bytes_of
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.distributed.shard.redistribution import CUT
from torchspore.distributed.shard.search import costs
from torchspore.engine.execution import flop_counts
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.translations import translatable, translate

_MARKS = {"laid": translatable("redistribution"), "mirror": "Parameter", "mirrored": "mean", "detach": "detach", "clone": "clone"}
"""Operators that are not the program's, and their names in a plan."""


@dataclass(frozen=True)
class Exchange:
    """A collective: its kind, the number of devices, and the bytes that each receives."""

    kind: str
    devices: int
    bytes: int

    def describe(self) -> str:
        """Return the description for the user."""
        return translate("{kind} over {count}").format(kind=self.kind, count=self.devices)


@dataclass
class Row:
    """An operator of the program, which may consist of several torch operators."""

    operator: str
    line: str
    is_gradient: bool
    scope: str
    split: str = ""
    axes: set[int] = field(default_factory=set)
    """The axes of the grid that split its results, or along which they are partial sums."""
    is_partial: bool = False
    exchanges: list[Exchange] = field(default_factory=list)
    sending: float = 0.0
    """Seconds of the exchanges."""
    computing: float = 0.0
    """Seconds of the operators on one device."""
    has_rule: bool = True
    reads: list[int] = field(default_factory=list)
    """The numbers of the rows whose results it takes."""
    parameters: list[str] = field(default_factory=list)
    is_mark: bool = False
    """Sets a layout, and computes nothing."""
    is_result: bool = False
    stages: set[int] = field(default_factory=set)
    """The stages of a pipeline that run it; empty where all do."""

    @property
    def bytes(self) -> int:
        """Return the bytes that each device receives."""
        return sum(exchange.bytes for exchange in self.exchanges)

    @property
    def is_seen(self) -> bool:
        """Return whether the operator computes or sends something."""
        return bool(self.exchanges) or not self.is_mark

    @property
    def stage(self) -> str:
        """Return a description of the stages for the user."""
        return ", ".join(map(str, sorted(self.stages))) or translate("all")

    def sends(self) -> str:
        """Return a description of the exchanges for the user; equal exchanges are counted."""
        counts = Counter(exchange.describe() for exchange in self.exchanges)
        return ", ".join(text if count == 1 else f"{count} x {text}" for text, count in counts.items())


def rows(split: Any, machine: Machine) -> list[Row]:
    """Return the operators in the order of the graph; operators of one call of the program share a row."""
    table_rows: list[Row] = []
    at: dict[Node, int] = {}
    names = dict(zip((n for n in split.local.unsplit.graph.nodes if n.op == "placeholder"), split.lifted))
    last = None
    for placed in split.local.split_operators:
        meta = placed.node.meta
        name = str(meta.get(node_metadata.CALLED) or getattr(placed.node.target, "_opname", placed.name))
        key = (meta.get(node_metadata.CALL), name, bool(meta.get(node_metadata.GRADIENT)))
        if not (table_rows and key == last and meta.get(node_metadata.CALL) is not None):
            title = translate(_MARKS[name]) if name in _MARKS else name
            title = translate("gradient of {operator}").format(operator=title) if key[2] else title
            table_rows.append(Row(title, _line(meta), key[2], str(meta.get(node_metadata.SCOPE) or "")))
            table_rows[-1].is_mark = name in _MARKS
        at[placed.node] = len(table_rows) - 1
        _add(table_rows[-1], placed, split.local.mesh, machine)
        _read(table_rows[-1], placed.node, at, names)
        last = key
    ends = next(node for node in reversed(split.local.unsplit.graph.nodes) if node.op == "output")
    for source in map(_maker, ends.all_input_nodes):
        if source in at:
            table_rows[at[source]].is_result = True
    return table_rows


def _add(row: Row, placed: SplitOperator, mesh: Mesh, machine: Machine) -> None:
    """Add a torch operator to its row."""
    sends = [step for step, _ in placed.steps if step.kind != CUT]
    row.exchanges += [Exchange(step.kind, mesh.product(step.axes), step.sent) for step in sends]
    row.sending += sum(machine.transfer_seconds(step.sent, 1, mesh.extent(step.axes)) for step in sends)
    row.computing += sum(_computing(node, machine) for node in placed.nodes)
    row.stages.update({stage_of(node) for node in placed.nodes} - {ALL})
    row.has_rule = row.has_rule and placed.has_rule
    row.split = "; ".join(layout.describe(mesh) for layout in placed.layouts) or row.split
    row.axes.update(*(layout.axes | set(layout.terms) for layout in placed.layouts))
    row.is_partial = row.is_partial or any(layout.partial for layout in placed.layouts)


def _read(row: Row, node: Node, at: Mapping[Node, int], names: Mapping[Node, Any]) -> None:
    """Record which operators' results an operator reads."""
    for source in map(_maker, node.all_input_nodes):
        if source in at:
            if at[source] != at[node] and at[source] not in row.reads:
                row.reads.append(at[source])
        elif (name := str(getattr(names.get(source), "name", ""))) and name not in row.parameters:
            row.parameters.append(name)


def _maker(node: Node) -> Node:
    """Return the operator that computes a value; the value may be one of several results."""
    while node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node


def _line(meta: Any) -> str:
    return str(meta.get(node_metadata.LINE) or "").rpartition("/")[2]


def _computing(node: Node, machine: Machine) -> float:
    """Return the seconds of a torch operator on one device: for its operations, or for the memory that it moves."""
    if not is_operator(node.target) or any(out.alias_info and not out.alias_info.is_write for out in node.target._schema.returns):
        return 0.0
    moved = bytes_of(node) + sum(map(bytes_of, node.all_input_nodes))
    return max(flop_counts.of_node(node) / machine.operations, moved / machine.memory)


@dataclass(frozen=True)
class Totals:
    """The cost of a step on one device: bytes received, seconds of exchanges and of computation, and a description of fused sums."""

    bytes: int
    sending: float
    computing: float
    joined: str


def totals(split: Any, table_rows: list[Row], machine: Machine) -> Totals:
    """Return the sums over all rows; the time of exchanges is that of the messages, in which sums of gradients go together."""
    sums, messages = split.messages
    text = translate("; {sums} sums of gradients go in 1 message") if messages == 1 else translate(
        "; {sums} sums of gradients go in {messages} messages")
    joined = text.format(sums=sums, messages=messages) if sums > messages else ""
    sending = costs.of(split.local, machine, is_fused=True).sending
    return Totals(sum(row.bytes for row in table_rows), sending, sum(row.computing for row in table_rows), joined)


def about(split: Any) -> str:
    """The devices and their grid."""
    mesh = split.local.mesh
    stages, grid = split.sharded_capture.stages, " x ".join(map(str, mesh.sizes))
    text = translate("{count} devices, a grid of {grid}") if stages == 1 else translate(
        "{stages} stages of {count} devices each, a grid of {grid}")
    return text.format(stages=stages, count=mesh.count, grid=grid)
