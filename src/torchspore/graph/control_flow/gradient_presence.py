"""Gradients that exist only on some ways of a branch or loop.

PyNative mode gives a value that only the untaken way uses no gradient at all. In a graph such a value gets zeros, which must not meet an
infinity later: 0 * inf is nan. Each such gradient therefore has a flag, a bool Tensor without dimensions, which says whether the gradient
exists. Where gradients with different flags are added, or leave the graph, an absent gradient counts as zeros, whatever was computed from
it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torchspore.engine.autograd import grad
from torchspore.engine.autograd.backward_pass import compute_gradients
from torchspore.engine.torch_internals.custom_operators import LIBRARY, define
from torchspore.graph.fx.control_flow import RECORDS, Flag, as_tensor


def _gate(flag: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """`gradient` where `flag` is true, else zeros, and no gradient of a higher order."""
    if flag.device.type == "cpu" and gradient.device.type != "cpu":
        # The host knows the flag. Its way to the device would be a transfer that the device waits for.
        return gradient.clone() if flag.item() else torch.zeros_like(gradient)
    return torch.where(flag.to(gradient.device), gradient, torch.zeros_like(gradient))


GATE = define("gate(Tensor flag, Tensor gradient) -> Tensor", _gate, lambda flag, gradient: torch.empty_like(gradient))


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.is_gate = True


def _backward(ctx: Any, gradient: torch.Tensor) -> Any:
    flag, = ctx.saved_tensors
    incoming = ctx.presence.flags_of(ctx)[0] if hasattr(ctx, "presence") else True
    ctx.flags = [False, _both(flag, incoming)]
    return None, GATE(flag, gradient)


torch.library.register_autograd("torchspore::gate", _backward, setup_context=_setup, lib=LIBRARY)


def _both(first: Flag, other: Flag) -> Flag:
    """Return whether two gradients are there."""
    if isinstance(first, bool):
        return other if first else False
    if isinstance(other, bool):
        return first if other else False
    return torch.logical_and(first, other)


def either(flags: Sequence[Flag]) -> Flag:
    """Return whether one of some gradients is there."""
    total: Flag = False
    for flag in flags:
        if flag is True or total is True:
            return True
        if flag is not False and flag is not total:
            total = flag if total is False else torch.logical_or(total, flag)
    return total


_Names = frozenset[tuple[int, int]] | None
"""The flags of which any says that a gradient exists; None if it always exists."""


@dataclass
class _Edge:
    """A way of a gradient: from a step of the backward pass (None: from outside), and its index among the results of that step."""

    source: int | None
    index: int
    slot: int
    names: _Names = None
    is_clean: bool = True
    """The gradient is zeros if it does not exist."""


@dataclass
class _Step:
    """A step of the backward pass."""

    node: Any
    edges: list[_Edge] = field(default_factory=list)
    names: _Names = frozenset()


class Presence:
    """One backward pass, and the flags of its gradients."""

    def __init__(self, outputs: Sequence[torch.Tensor], flags: Sequence[Flag], inputs: Sequence[torch.Tensor]) -> None:
        self._flags: dict[tuple[int, int], Flag] = {}
        self._steps: dict[int, _Step] = {}
        self._masks: dict[int, list[tuple[int, _Names]]] = {}
        ends = []
        for i, (output, flag) in enumerate(zip(outputs, flags)):
            node = _node(output)
            edge = _Edge(None, i, output.output_nr, None if flag is True else frozenset({(0, i)}))
            self._flags[0, i] = flag
            self._steps.setdefault(id(node), _Step(node)).edges.append(edge)
            ends.append(node)
        self._input_nodes = [_node(t) for t in inputs]   # nothing else references them; a later object of torch has another id
        self._inputs = [(id(node), t.output_nr) for node, t in zip(self._input_nodes, inputs)]
        self._ends = set(self._inputs)
        for node in _ordered(ends):
            self._visit(node)

    def _visit(self, node: Any) -> None:
        """Decide where gradients that meet at a step become zeros, and follow the step's results."""
        key = id(node)
        step = self._steps[key]
        kinds = {edge.names for edge in step.edges}
        step.names = None if None in kinds else frozenset().union(*kinds)  # type: ignore[arg-type]
        is_ours = _is_ours(node)
        for edge in step.edges:
            is_different = edge.names != step.names or is_ours or (key, edge.slot) in self._ends
            if not edge.is_clean and edge.names is not None and is_different:
                self._masks.setdefault(edge.source, []).append((edge.index, edge.names))  # type: ignore[arg-type]
        for index, (following, slot) in enumerate(node.next_functions):
            if following is not None:
                names = frozenset({(key, index)}) if is_ours else step.names
                edge = _Edge(key, index, slot, names, is_ours or names is None)
                self._steps.setdefault(id(following), _Step(following)).edges.append(edge)

    def flags_of(self, node: Any) -> list[Flag]:
        """The flags of the gradients that come in to one of our operators, by output."""
        edges = self._steps[id(node)].edges
        count = max(edge.slot for edge in edges) + 1
        return [either([self._flag(edge.names) for edge in edges if edge.slot == slot]) for slot in range(count)]

    def _flag(self, names: _Names) -> Flag:
        if names is None:
            return True
        return either([self._flag_named(key, slot) for key, slot in sorted(names)])

    def _flag_named(self, key: int, slot: int) -> Flag:
        if key == 0:
            return self._flags[key, slot]
        flags = getattr(self._steps[key].node, "flags", None)
        return True if flags is None or slot >= len(flags) else flags[slot]

    def run(self, compute: Callable[[], Sequence[torch.Tensor | None]]) -> tuple[Sequence[torch.Tensor | None], list[Flag]]:
        """(The gradients that `compute` gives, their flags)."""
        handles = []
        for step in self._steps.values():
            if _is_ours(step.node):
                step.node.presence = self
        for key, masks in self._masks.items():
            handles.append(self._steps[key].node.register_hook(self._masking(masks)))
        try:
            flag = compute()
        finally:
            for handle in handles:
                handle.remove()
        flags = [
            False if g is None else either([self._flag(edge.names) for edge in self._steps[at[0]].edges if edge.slot == at[1]])
            for g, at in zip(flag, self._inputs)
        ]
        return flag, flags

    def _masking(self, masks: list[tuple[int, _Names]]) -> Callable[[Any, Any], Any]:
        def hook(gradients: Any, _: Any) -> Any:
            changed = list(gradients)
            for index, names in masks:
                flag = self._flag(names)
                if changed[index] is not None and flag is not True:
                    changed[index] = GATE(as_tensor(flag), changed[index])
            return tuple(changed)

        return hook


def _node(t: torch.Tensor) -> Any:
    return torch.autograd.graph.get_gradient_edge(t).node


def _is_ours(node: Any) -> bool:
    """Return whether a step is a branch or loop, or a gate: it knows by itself which of its gradients are there."""
    return hasattr(node, "record") or hasattr(node, "is_gate")


def _ordered(ends: Sequence[Any]) -> list[Any]:
    """Return the reachable steps, each before those that receive its gradients."""
    order: list[Any] = []
    seen: set[int] = set()
    for end in ends:
        if id(end) in seen:
            continue
        seen.add(id(end))
        stack = [(end, iter(end.next_functions))]
        while stack:
            node, rest = stack[-1]
            following = next((f for f, _ in rest if f is not None and id(f) not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(id(following))
                stack.append((following, iter(following.next_functions)))
    return order[::-1]


def gradients(
    outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], seeds: Sequence[torch.Tensor], flags: Sequence[Flag] | None = None,
    create_graph: bool = False,
) -> tuple[Sequence[torch.Tensor | None], list[Flag]]:
    """`torch.autograd.grad` for values with branches and loops: return (gradients, their flags), for seeds with `flags`.

    A gradient that does not exist on the executed way is zeros; one that exists on no way is None.
    """
    presence = Presence(outputs, flags if flags is not None else [True] * len(outputs), inputs)
    return presence.run(lambda: compute_gradients(outputs, inputs, seeds, create_graph))


def plain(outputs: Any, inputs: Any, seeds: Any, create_graph: bool = False, retain_graph: Any = None) -> Any:
    """Return the gradients alone: a gradient transform calls this instead of `compute_gradients`."""
    if not RECORDS:
        return compute_gradients(outputs, inputs, seeds, create_graph, retain_graph)
    presence = Presence(outputs, [True] * len(outputs), inputs)
    return presence.run(lambda: compute_gradients(outputs, inputs, seeds, create_graph, retain_graph))[0]


grad.tape_gradients = plain
