"""Values that depend on constant Tensors alone, in a graph that is split: the trace reads them, and each call checks them.

A split graph can't run in parts. MindSpore computes such values when it compiles, because an attribute that is a Tensor and not a
Parameter is a constant there: `self.keep_prob = Tensor(1.0)` and `if self.keep_prob < 1.0` in `construct`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import Node

from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, raw
from torchspore.engine.torch_internals.torch_private import is_operator, proxy_of, without_modes

if TYPE_CHECKING:
    from torchspore.graph.capture.capture import Capture

_MOST_NODES = 64
_MOST_ELEMENTS = 16


class Assumption:
    """The computation of a Tensor from inputs of the graph, and the values that the trace assumed."""

    def __init__(self, steps: list[Node], positions: dict[Node, int], result: Node) -> None:
        # Passes change the nodes later.
        self._steps = [(node, node.target, node.args, dict(node.kwargs)) for node in steps]
        self._positions, self._result = positions, result
        self.values: Any = None

    def compute(self, inputs: Sequence[torch.Tensor]) -> Any:
        """Return the values for these inputs of the graph: a number, or numbers in lists."""
        values: dict[Node, Any] = {node: inputs[position] for node, position in self._positions.items()}
        with without_modes():
            for node, target, node_args, node_kwargs in self._steps:
                args, kwargs = tree.mapped((node_args, node_kwargs), lambda leaf: values[leaf] if isinstance(leaf, Node) else leaf)
                run: Any = target
                values[node] = run(*args, **kwargs)
            return values[self._result].tolist()

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Return whether the values are those that the trace assumed."""
        return bool(self.compute(inputs) == self.values)


def decide(capture: Capture, test: Any) -> bool | None:
    """Return the truth of a condition that depends on constant Tensors alone, and note it as an assumption; None for other conditions."""
    values = constant_numbers(capture, raw(test))
    while isinstance(values, list) and len(values) == 1:
        values = values[0]
    return None if values is None or isinstance(values, list) else bool(values)


def constant_numbers(capture: Capture, t: torch.Tensor) -> Any:
    """Return the values of a Tensor that depends on constant Tensors alone, and note them as an assumption; None for other Tensors."""
    if capture.sharded_capture is None or not hasattr(capture, "tracer") or t.numel() > _MOST_ELEMENTS:
        return None
    try:
        result = proxy_of(t, capture.tracer).node
    except (KeyError, AttributeError):                     # it belongs to another trace
        return None
    steps = _steps(result)
    if steps is None:
        return None
    holders = [node for node in steps if node.op == "placeholder"]
    operators = [node for node in steps if node.op != "placeholder"]
    numbers = {node: number for number, node in enumerate(node for node in capture.tracer.graph.nodes if node.op == "placeholder")}
    positions = {node: numbers[node] for node in holders}
    if not all(_is_constant(capture, capture.lifted[position]) for position in positions.values()):
        return None
    if any(_is_written(node) for node in holders):
        return None
    assumption = Assumption(operators, positions, result)
    examples = {position: _values(capture.lifted[position]) for position in positions.values()}
    assumption.values = assumption.compute([examples.get(position, torch.empty(0)) for position in range(max(examples, default=-1) + 1)])
    capture.assumptions.append(assumption)
    return assumption.values


def _steps(result: Node) -> list[Node] | None:
    """The nodes that compute a node, in order; None if there are many, or one that is not a function of its inputs alone."""
    needed: set[Node] = set()
    pending = [result]
    while pending:
        node = pending.pop()
        if node in needed:
            continue
        if len(needed) >= _MOST_NODES or not _is_function(node):
            return None
        needed.add(node)
        pending.extend(node.all_input_nodes)
    return [node for node in result.graph.nodes if node in needed]


def _is_function(node: Node) -> bool:
    if node.op == "placeholder":
        return True
    if node.op != "call_function" or not is_operator(node.target):
        return False
    target: Any = node.target
    return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags


def _is_constant(capture: Capture, source: Any) -> bool:
    """Return whether an input holds a number that the program wrote down, or a small Tensor that is neither argument nor Parameter."""
    if not isinstance(source, TensorBase):
        return callable(source)
    is_argument = id(source) in capture.sharded_capture.arguments
    return not is_argument and not hasattr(source, "name") and source._t.numel() <= _MOST_ELEMENTS


def _is_written(holder: Node) -> bool:
    return any(is_operator(user.target) and user.target._schema.is_mutable for user in holder.users)


def _values(source: Any) -> torch.Tensor:
    with without_modes():
        values: torch.Tensor = source._t if isinstance(source, TensorBase) else source()
    return values
