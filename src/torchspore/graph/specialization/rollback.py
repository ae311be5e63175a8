"""Undoes the effects of a graph that fails before its end, so that PyNative can run the call from its beginning.

Values are put aside before a run only where they could be lost: those that the graph may write before an operator that may fail. A
training step writes its weights last, after all that its loss needed, and puts nothing aside but the statistics of its batch norms.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import printing
from torchspore.engine.random import generators, operator_streams
from torchspore.engine.torch_internals import node_metadata, torch_private
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.failing_operators import Nested, all_nodes, is_printing, is_random, may_fail, values_of
from torchspore.graph.settings import Settings


class Rollback:
    """The state that is saved before each run of one graph."""

    def __init__(self, positions: Sequence[int], devices: Sequence[torch.device], prints: bool) -> None:
        self._positions, self._devices, self._prints = positions, devices, prints

    def begin(self, inputs: Sequence[Any]) -> Any:
        """Save what a run may overwrite; `inputs` are torch tensors."""
        tensors = [inputs[index] for index in self._positions]
        copies: list[torch.Tensor] = []
        if tensors:
            with torch.no_grad():
                copies = [torch.empty_like(t) for t in tensors]
                torch_private.copy_all(copies, [t.detach() for t in tensors])
        states = [(generator, generator.get_state()) for generator in map(generators.of_device, self._devices)]
        streams = operator_streams.snapshot() if states else None
        if self._prints:
            printing.hold()
        return tensors, copies, states, streams

    def end(self) -> None:
        """Called after the graph has run."""
        if self._prints:
            printing.release()

    def back(self, aside: Any, will_rerun: bool) -> None:
        """Restore everything; pending prints are dropped if PyNative mode runs the call again, because it prints them."""
        tensors, copies, states, streams = aside
        if self._prints:
            (printing.drop if will_rerun else printing.release)()
        with torch.no_grad():
            for tensor, copy in zip(tensors, copies):
                tensor.detach().copy_(copy)
        for generator, state in states:
            generator.set_state(state)
        if streams is not None:
            operator_streams.restore(streams)


def undo_for(nodes: list[Node], nested: Nested, settings: Settings, written_inputs: Mapping[int, list[Node]]) -> Rollback | None:
    """Return what to save for a graph of these nodes that writes into these inputs; None if a failing run loses nothing."""
    at = {node: index for index, node in enumerate(nodes)}
    # The rows that an optimizer's step takes were taken before, by the forward pass: it can't refuse them, and tables are large.
    failing = [node for node in nodes if may_fail(node, nested) and node_metadata.OPTIMIZER not in node.meta]
    if not failing:
        return None
    is_moved = settings.lanes or settings.order or settings.infer_boost or settings.kernels is not None or settings.tuning is not None
    in_order = settings.level == "O0" and not is_moved
    positions: list[int] = []
    for index, writers in written_inputs.items():
        if any(_may_come_later(writer, failing, at, in_order) for writer in writers):
            positions.append(index)
    devices = {
        value.device for node in nodes if is_random(node, nested) and at[node] <= at[failing[-1]]
        for value in values_of(node) if isinstance(value, torch.Tensor)
    }
    prints = any(is_printing(part) for node in nodes for part in all_nodes(node, nested) if part.op == "call_function")
    return Rollback(positions, sorted(devices, key=str), prints) if positions or devices or prints else None


def _may_come_later(writer: Node, failing: list[Node], at: dict[Node, int], in_order: bool) -> bool:
    """Return whether one of the failing operators may run after this write has begun."""
    if in_order:
        return any(at[node] > at[writer] or (node is writer and not is_operator(node.target)) for node in failing)
    # Compiled code keeps only what depends on one another in order, and may compute neighbours in one loop.
    before, near = _ancestors(writer)
    return any(node not in before or node in near for node in failing)


def _ancestors(writer: Node) -> tuple[set[Node], set[Node]]:
    """All that a node needs, and what of it may be computed in one loop with it."""
    before: set[Node] = set()
    near: set[Node] = {writer}
    front: list[tuple[Node, bool]] = [(writer, True)]
    seen: set[tuple[Node, bool]] = set()
    while front:
        node, is_near = front.pop()
        for operand in node.all_input_nodes:
            step = (operand, is_near)
            if step in seen:
                continue
            seen.add(step)
            before.add(operand)
            if is_near:
                near.add(operand)
            front.append((operand, is_near and (operand.op != "call_function" or _is_loop(operand))))
    return before, near


def _is_loop(node: Node) -> bool:
    return is_operator(node.target) and (torch.Tag.pointwise in node.target.tags or node.target.is_view)
