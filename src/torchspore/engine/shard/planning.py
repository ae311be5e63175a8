"""What a split would cost: for each operator how it lies, what it sends and how long it takes, and the memory of one device."""
from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.files import write_whole
from torchspore.base.text import with_hint
from torchspore.context.plan_request import Machine, Request
from torchspore.engine import flops, tree
from torchspore.engine.graph import marks
from torchspore.engine.graph.fx.aliasing import owners
from torchspore.engine.private import is_operator
from torchspore.engine.shard.local_graph import Placed
from torchspore.engine.shard.mesh import Mesh
from torchspore.engine.shard.pipelines import cutting
from torchspore.engine.shard.pipelines.assigning import ALL, stage_of
from torchspore.engine.shard.redistribution import CUT

_MARKS = {"laid": "redistribution", "mirror": "Parameter", "mirrored": "mean", "detach": "detach", "clone": "clone"}
"""What is no operator of the program's, and what a plan calls it."""


@dataclass(frozen=True)
class Exchange:
    """One collective: its kind, between how many devices, the bytes that each receives."""

    kind: str
    devices: int
    bytes: int

    def told(self) -> str:
        """For people."""
        return f"{self.kind} over {self.devices}"


@dataclass
class Row:
    """One operator of the program's, or several of torch's that it is made of."""

    operator: str
    line: str
    is_gradient: bool
    scope: str
    split: str = ""
    axes: set[int] = field(default_factory=set)
    """The axes of the grid that cut its results, or along which they are terms."""
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
    """Says how a value lies, and computes nothing."""
    is_result: bool = False
    stages: set[int] = field(default_factory=set)
    """The stages of a pipeline that run it; empty where all do."""

    @property
    def bytes(self) -> int:
        """What each device receives."""
        return sum(exchange.bytes for exchange in self.exchanges)

    @property
    def is_seen(self) -> bool:
        """Whether it computes or sends something."""
        return bool(self.exchanges) or not self.is_mark

    @property
    def stage(self) -> str:
        """The stages for people."""
        return ", ".join(map(str, sorted(self.stages))) or "all"

    def sends(self) -> str:
        """The exchanges for people: equal ones counted."""
        counts = Counter(exchange.told() for exchange in self.exchanges)
        return ", ".join(told if count == 1 else f"{count} x {told}" for told, count in counts.items())


@dataclass(frozen=True)
class Memory:
    """Bytes that one device holds at the peak of a step."""

    parameters: int
    states: int
    inputs: int
    gradients: int
    activations: int
    work: int
    """What the optimizer computes with."""

    @property
    def total(self) -> int:
        """All together."""
        return self.parameters + self.states + self.inputs + self.gradients + self.activations + self.work


def rows(split: Any, machine: Machine) -> list[Row]:
    """The operators in the order of the graph; what belongs to one call of the program's stands in one row."""
    found: list[Row] = []
    at: dict[Node, int] = {}
    names = dict(zip((n for n in split.local.whole.graph.nodes if n.op == "placeholder"), split.lifted))
    last = None
    for placed in split.local.placed:
        meta = placed.node.meta
        name = str(meta.get(marks.CALLED) or getattr(placed.node.target, "_opname", placed.name))
        key = (meta.get(marks.CALL), name, bool(meta.get(marks.GRADIENT)))
        if not (found and key == last and meta.get(marks.CALL) is not None):
            title = _MARKS.get(name, name)
            found.append(Row(f"gradient of {title}" if key[2] else title, _line(meta), key[2], str(meta.get(marks.SCOPE) or "")))
            found[-1].is_mark = name in _MARKS
        at[placed.node] = len(found) - 1
        _add(found[-1], placed, split.local.mesh, machine)
        _read(found[-1], placed.node, at, names)
        last = key
    ends = next(node for node in reversed(split.local.whole.graph.nodes) if node.op == "output")
    for source in map(_maker, ends.all_input_nodes):
        if source in at:
            found[at[source]].is_result = True
    return found


def _add(row: Row, placed: Placed, mesh: Mesh, machine: Machine) -> None:
    """Puts one operator of torch's into its row."""
    sends = [step for step, _ in placed.steps if step.kind != CUT]
    row.exchanges += [Exchange(step.kind, mesh.product(step.axes), step.sent) for step in sends]
    row.sending += sum(machine.latency + step.sent / machine.bandwidth for step in sends)
    row.computing += sum(_computing(node, machine) for node in placed.made)
    row.stages.update({stage_of(node) for node in placed.made} - {ALL})
    row.has_rule = row.has_rule and placed.has_rule
    row.split = "; ".join(layout.told(mesh) for layout in placed.layouts) or row.split
    row.axes.update(*(layout.axes | set(layout.terms) for layout in placed.layouts))
    row.is_partial = row.is_partial or any(layout.partial for layout in placed.layouts)


def _read(row: Row, node: Node, at: Mapping[Node, int], names: Mapping[Node, Any]) -> None:
    """Notes whose results an operator takes."""
    for source in map(_maker, node.all_input_nodes):
        if source in at:
            if at[source] != at[node] and at[source] not in row.reads:
                row.reads.append(at[source])
        elif (name := str(getattr(names.get(source), "name", ""))) and name not in row.parameters:
            row.parameters.append(name)


def _maker(node: Node) -> Node:
    """The operator that gives a value: itself, or the one of whose results it is one."""
    while node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node


def _line(meta: Any) -> str:
    return str(meta.get(marks.LINE) or "").rpartition("/")[2]


def _computing(node: Node, machine: Machine) -> float:
    """The seconds of an operator of torch's on one device: those of its operations, or of the memory that it moves."""
    if not is_operator(node.target) or any(out.alias_info and not out.alias_info.is_write for out in node.target._schema.returns):
        return 0.0
    moved = _bytes(node) + sum(map(_bytes, node.all_input_nodes))
    return max(flops.of_node(node) / machine.operations, moved / machine.memory)


def memory(split: Any, stage: int | None = None) -> Memory:
    """What one device holds: inputs for the whole step, other values from where they are made to where they are last used.

    In a pipeline it is a device of the `stage`, or of the one that holds most.
    """
    if split.pipeline is not None and stage is None:
        return max((memory(split, one) for one in range(split.pipeline.stages)), key=lambda held: held.total)
    module = split.local.module
    kept = {"parameters": 0, "states": 0, "inputs": 0}
    names = split.spread.parameters
    if stage is not None:
        module = cutting.of_stage(module, stage, split.pipeline.stages)
    for node, item in zip((n for n in module.graph.nodes if n.op == "placeholder"), split.lifted):
        name = str(getattr(item, "name", "")) if item is not None else ""
        if stage is not None and split.spread.homes.get(name, stage) != stage:
            continue
        kind = "inputs" if name not in names else "states" if is_state(name, names) else "parameters"
        kept[kind] += _bytes(node)
    return Memory(**kept, **peak(module))


def is_state(name: str, names: Any) -> bool:
    """Whether a Parameter of this name is an optimizer's, among others of `names`."""
    parts = name.split(".")
    return any(".".join(parts[at:]) in names for at in range(1, len(parts))) or (len(parts) == 1 and not names[name][3])


def _bytes(node: Node) -> int:
    return sum(t.numel() * t.element_size() for t in tree.leaves(node.meta.get("val")) if isinstance(t, torch.Tensor))


def peak(module: torch.fx.GraphModule) -> dict[str, int]:
    """What values of the graph hold, by kind, when that is most; views hold nothing of their own."""
    owner, last = owners(module.graph), dict[Node, int]()
    nodes = list(module.graph.nodes)
    for at, node in enumerate(nodes):
        for used in (node, *node.all_input_nodes):
            last[owner[used]] = at
    ends: dict[int, list[Node]] = {}
    for node, at in last.items():
        ends.setdefault(at, []).append(node)
    now = dict.fromkeys(("gradients", "activations", "work"), 0)
    most = dict(now)
    for at, node in enumerate(nodes):
        if node.op == "call_function" and owner[node] is node:
            now[_kind(node)] += _bytes(node)
            if sum(now.values()) > sum(most.values()):
                most = dict(now)
        for gone in ends.get(at, ()):
            if gone.op == "call_function" and owner[gone] is gone:
                now[_kind(gone)] -= _bytes(gone)
    return most


def _kind(node: Node) -> str:
    return "work" if node.meta.get(marks.OPTIMIZER) else "gradients" if marks.is_backward(node.meta) else "activations"


@dataclass(frozen=True)
class Totals:
    """A step on one device: bytes received, seconds of exchanges and of computing, what is said of sums that go together."""

    bytes: int
    sending: float
    computing: float
    joined: str


def totals(split: Any, found: list[Row], machine: Machine) -> Totals:
    """The sums over all rows; sums of gradients that go in one message wait once."""
    sums, messages = split.messages
    joined = f"; {sums} sums of gradients go in {messages} message{'s' * (messages != 1)}" if sums > messages else ""
    sending = sum(row.sending for row in found) - (sums - messages) * machine.latency
    return Totals(sum(row.bytes for row in found), sending, sum(row.computing for row in found), joined)


def text(split: Any, machine: Machine) -> Iterator[str]:
    """The plan as lines: a table of operators that are cut or send something, sums, the memory of one device."""
    found = rows(split, machine)
    yield about(split)
    searched = getattr(split.spread, "searched", None)
    if searched is not None:
        yield f"{searched.mode}: {searched.told()}"
    if split.spread.chosen is not None:
        yield f"auto_pipeline: {split.spread.chosen.told()}"
    yield ""
    heads: tuple[str, ...] = ("operator", "split", "exchanges", "bytes received", "exchange us", "compute us", "line")
    table: list[tuple[str, ...]] = [
        (row.operator + ("" if row.has_rule else " (whole)"), row.split, row.sends(), f"{row.bytes:,}",
         f"{row.sending * 1e6:.1f}", f"{row.computing * 1e6:.1f}", row.line)
        for row in found if row.is_seen
    ]
    if split.pipeline is not None:
        heads = ("stage", *heads)
        table = [(row.stage, *line) for row, line in zip((row for row in found if row.is_seen), table)]
    widths = [min(48, max(len(line[at]) for line in (heads, *table))) for at in range(len(heads))]
    for line in (heads, *table):
        yield "  ".join(cell[:48].ljust(width) for cell, width in zip(line, widths)).rstrip()
    yield ""
    total = totals(split, found, machine)
    if split.pipeline is not None:
        yield f"at {machine.told()}{total.joined}"
        yield from _of_stages(split, machine)
        return
    beside = f"beside {total.computing * 1e3:.3f} ms of computing, one after the other"
    yield f"a step receives {total.bytes:,} bytes on each device: {total.sending * 1e3:.3f} ms, {beside}"
    yield f"at {machine.told()}{total.joined}"
    yield f"memory of a device: {_told(memory(split))}"


def about(split: Any) -> str:
    """The devices and their grid."""
    mesh = split.local.mesh
    stages, grid = split.spread.stages, " x ".join(map(str, mesh.sizes))
    return f"{mesh.count} devices, a grid of {grid}" if stages == 1 else f"{stages} stages of {mesh.count} devices each, a grid of {grid}"


def _of_stages(split: Any, machine: Machine) -> Iterator[str]:
    """What each stage of a pipeline takes, and what passes between them."""
    from torchspore.engine.shard.search import costs

    pipeline = split.pipeline
    for stage in range(pipeline.stages):
        own = costs.of(replace(split.local, module=cutting.of_stage(split.local.module, stage, pipeline.stages)), machine)
        sending = machine.sending(own.received, own.messages) * 1e3
        told = f"receives {own.received:,} bytes on each device in {own.messages} exchanges, {sending:.3f} ms"
        yield f"stage {stage}: computes {own.computing * 1e3:.3f} ms, {told}; holds {_told(memory(split, stage))}"
    passing = machine.sending(pipeline.sent, len(pipeline.transfers)) * 1e3
    values = f"{len(pipeline.transfers)} values of {pipeline.sent:,} bytes pass between stages"
    yield f"{values}: {passing:.3f} ms if nothing is computed meanwhile"
    if pipeline.schedule is not None:
        yield f"stages wait {pipeline.schedule.idle:.0%} of a step if all parts take equally long"


def _told(held: Memory) -> str:
    kinds = f"parameters {held.parameters:,}, state of optimizers {held.states:,}, inputs {held.inputs:,}"
    others = f"gradients {held.gradients:,}, activations {held.activations:,}, optimizer's work {held.work:,}"
    return f"{held.total:,} bytes: {kinds}; at the peak {others}"


def answer(split: Any, request: Request) -> None:
    """Prints the plan, and writes the page where one is wanted."""
    print("\n".join(text(split, request.machine)))
    request.is_answered = True
    if not request.page:
        return
    from torchspore.engine.shard import plan_page

    try:
        write_whole(Path(request.page), plan_page.html(split, request.machine))
    except OSError as problem:
        said = f"torchspore plan --html: {request.page} can't be written ({problem.strerror or type(problem).__name__})."
        print(with_hint(said, "name another file"), file=sys.stderr)
        raise SystemExit(1) from None
    print(f"the page is {request.page}")
