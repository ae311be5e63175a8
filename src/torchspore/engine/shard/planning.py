"""What a split would cost: for each operator how it lies and what it sends, and the memory of one device."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine import tree
from torchspore.engine.graph import marks
from torchspore.engine.graph.fx.aliasing import owners
from torchspore.engine.shard.machine import Machine
from torchspore.engine.shard.redistribution import CUT

_MARKS = ("laid", "mirror", "mirrored", "detach", "clone")
"""What is no operator of the program's."""


@dataclass(frozen=True)
class Row:
    """One operator of the program's, or several of torch's that it is made of."""

    operator: str
    line: str
    split: str
    exchanges: str
    bytes: int
    seconds: float
    has_rule: bool


@dataclass(frozen=True)
class Memory:
    """Bytes that one device holds at the peak of a step."""

    parameters: int
    states: int
    inputs: int
    values: int

    @property
    def total(self) -> int:
        """All together."""
        return self.parameters + self.states + self.inputs + self.values


def rows(split: Any, machine: Machine) -> list[Row]:
    """The operators in the order of the graph; what belongs to one call of the program's stands in one row."""
    found: list[Row] = []
    mesh, last = split.local.mesh, None
    for placed in split.local.placed:
        meta = placed.node.meta
        name = str(meta.get(marks.CALLED) or getattr(placed.node.target, "_opname", placed.node.target))
        key = (meta.get(marks.CALL), name, bool(meta.get(marks.GRADIENT)))
        sends = [(step, shape) for step, shape in placed.steps if step.kind != CUT]
        sent = sum(step.sent for step, _ in sends)
        seconds = sum(machine.latency + step.sent / machine.bandwidth for step, _ in sends)
        kinds = ", ".join(f"{step.kind} over {mesh.product(step.axes)}" for step, _ in sends)
        told = "; ".join(layout.told(mesh) for layout in placed.layouts)
        title = f"gradient of {name}" if meta.get(marks.GRADIENT) else name
        if found and last is not None and key == last and meta.get(marks.CALL) is not None:
            before = found.pop()
            row = Row(
                title, before.line, told or before.split, ", ".join(filter(None, (before.exchanges, kinds))), before.bytes + sent,
                before.seconds + seconds, before.has_rule and placed.has_rule,
            )
        else:
            row = Row(title, _line(meta), told, kinds, sent, seconds, placed.has_rule)
        found.append(row)
        last = key
    return found


def _line(meta: Any) -> str:
    return str(meta.get(marks.LINE) or "").rpartition("/")[2]


def memory(split: Any) -> Memory:
    """What one device holds: inputs for the whole step, other values from where they are made to where they are last used."""
    module = split.local.module
    kept = {"parameters": 0, "states": 0, "inputs": 0}
    names = split.spread.parameters
    for node, item in zip((n for n in module.graph.nodes if n.op == "placeholder"), split.lifted):
        name = str(getattr(item, "name", "")) if item is not None else ""
        kind = "inputs" if name not in names else "states" if _is_state(name, names) else "parameters"
        kept[kind] += _bytes(node)
    return Memory(**kept, values=peak(module))


def _is_state(name: str, names: Any) -> bool:
    parts = name.split(".")
    return any(".".join(parts[at:]) in names for at in range(1, len(parts))) or (len(parts) == 1 and not names[name][3])


def _bytes(node: Node) -> int:
    return sum(t.numel() * t.element_size() for t in tree.leaves(node.meta.get("val")) if isinstance(t, torch.Tensor))


def peak(module: torch.fx.GraphModule) -> int:
    """The most that values of the graph hold at one time; views hold nothing of their own."""
    owner, last = owners(module.graph), dict[Node, int]()
    nodes = list(module.graph.nodes)
    for at, node in enumerate(nodes):
        for used in (node, *node.all_input_nodes):
            last[owner[used]] = at
    ends: dict[int, list[Node]] = {}
    for node, at in last.items():
        ends.setdefault(at, []).append(node)
    now = most = 0
    for at, node in enumerate(nodes):
        if node.op == "call_function" and owner[node] is node:
            now += _bytes(node)
            most = max(most, now)
        now -= sum(_bytes(gone) for gone in ends.get(at, ()) if gone.op == "call_function" and owner[gone] is gone)
    return most


def text(split: Any, machine: Machine) -> Iterator[str]:
    """The plan as lines: a table of operators that are cut or send something, sums, the memory of one device."""
    found = rows(split, machine)
    mesh = split.local.mesh
    yield f"{mesh.count} devices, a grid of {' x '.join(map(str, mesh.sizes))}"
    searched = getattr(split.spread, "searched", None)
    if searched is not None:
        yield f"{searched.mode}: {searched.told()}"
    yield ""
    heads = ("operator", "split", "exchanges", "bytes received", "seconds", "line")
    table = [
        (row.operator + ("" if row.has_rule else " (whole)"), row.split, row.exchanges, f"{row.bytes:,}", f"{row.seconds:.6f}", row.line)
        for row in found if row.exchanges or not row.operator.endswith(_MARKS)
    ]
    widths = [min(48, max(len(line[at]) for line in (heads, *table))) for at in range(len(heads))]
    for line in (heads, *table):
        yield "  ".join(cell[:48].ljust(width) for cell, width in zip(line, widths)).rstrip()
    yield ""
    sent, seconds = sum(row.bytes for row in found), sum(row.seconds for row in found)
    speed = f"{machine.bandwidth / 1e9:g} GB/s and {machine.latency * 1e6:g} us an exchange"
    yield f"a step receives {sent:,} bytes on each device: {seconds * 1e3:.3f} ms at {speed}, if nothing is computed meanwhile"
    held = memory(split)
    kinds = f"parameters {held.parameters:,}, state of optimizers {held.states:,}, inputs {held.inputs:,}"
    yield f"memory of a device: {held.total:,} bytes: {kinds}, gradients and other values at their peak {held.values:,}"
