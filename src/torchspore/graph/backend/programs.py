"""Runs of small operators in the code of a graph as one call of C++ (`engine/native/programs.h`), which saves most of their time.

An operator on few elements spends more time in Python than in its kernel. A *program* is a list of such operators that follow each other.
Its operators write into nothing and draw no random numbers, so that after an error the same lines run in Python, which say where.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import current_operator
from torchspore.engine.native import operators
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.report import peak_memory

_new_program, run_program = operators.short_path("new_program"), operators.short_path("run_program")

_LARGEST = 1 << 14
"""The largest number of elements of a value: programs hold their inputs longer, and above it the time of Python does not count."""
_FEWEST = 2
"""The fewest operators of a program."""


_CALLED_AS: dict[Any, Any] = {torch.ops.aten._unsafe_view.default: torch.ops.aten.view.default}
"""Operators for which the code of graphs calls another one: a view shows whose memory it shares."""


class Register(int):
    """The number of a value in a program."""


class Program:
    """Nodes that run as one call: their inputs, and the values that later nodes need."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        inside = set(nodes)
        self.inputs = list(dict.fromkeys(each for node in nodes for each in node.all_input_nodes if each not in inside))
        self.outputs = [node for node in nodes if any(user not in inside for user in node.users)]

    @cached_property
    def compiled(self) -> Any:
        """The program for `run_program`; None if C++ does not read the arguments of a node."""
        numbers = {node: Register(number) for number, node in enumerate([*self.inputs, *self.nodes])}
        kept = {*self.inputs, *self.outputs}
        last: dict[Node, list[Register]] = {}
        seen: set[Node] = set()
        for node in reversed(self.nodes):
            for each in [node, *node.all_input_nodes]:
                if each not in seen and each not in kept:
                    last.setdefault(node, []).append(numbers[each])
                seen.add(each)
        parts = [_instruction(node, numbers, tuple(last.get(node, ()))) for node in self.nodes]
        outputs = tuple(numbers[node] for node in self.outputs)
        return _new_program(Register, len(self.inputs), len(numbers), parts, outputs)    # type: ignore[misc]


def _instruction(node: Node, numbers: dict[Node, Register], last: tuple[Register, ...]) -> tuple[Any, ...]:
    if node.target is operator.getitem:
        return None, node.args[1], numbers[node.args[0]], None, numbers[node], last          # type: ignore[index]
    target: Any = _CALLED_AS.get(node.target, node.target)
    name, _, overload = target.name().partition(".")
    arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: numbers[each])
    return name, overload, _plain(arguments), {key: _plain(value) for key, value in keywords.items()}, numbers[node], last


def _plain(value: Any) -> Any:
    """Return the lists and tuples of torch.fx as those of Python."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return tuple(_plain(item) for item in value) if isinstance(value, tuple) else value


def split(nodes: list[Node], is_changed: Callable[[Any], bool]) -> list[Node | Program]:
    """Return the nodes in their order, with programs in place of runs of small operators.

    `is_changed` says whether a graph calls another function for an operator than its kernel.
    """
    if _new_program is None or current_operator.followers or peak_memory.RECORDING.is_on:
        return list(nodes)
    parts: list[Node | Program] = []
    run: list[Node] = []

    def end_run() -> None:
        program = Program(run[:])
        has_enough = sum(node.target is not operator.getitem for node in run) >= _FEWEST
        parts.extend([program] if has_enough and program.outputs and program.compiled is not None else run)
        run.clear()

    for node in nodes:
        if _is_suitable(node, run, is_changed):
            run.append(node)
        elif node.op in ("placeholder", "get_attr"):
            parts.append(node)
        else:
            end_run()
            parts.append(node)
    return parts


def _is_suitable(node: Node, run: list[Node], is_changed: Callable[[Any], bool]) -> bool:
    if node.op != "call_function" or not node.users:
        return False
    if node.target is operator.getitem:
        return node.args[0] in run and type(node.args[1]) is int
    target: Any = node.target
    if not is_operator(target) or target.namespace != "aten" or target._schema.is_mutable or writes(node) or is_changed(target):
        return False
    if torch.Tag.nondeterministic_seeded in target.tags or not all(map(_is_small, (node, *node.all_input_nodes))):
        return False
    alone = Program([node])
    return bool(alone.outputs) and alone.compiled is not None


def _is_small(node: Node) -> bool:
    """Return whether a value consists of tensors with few elements, whose number is known."""
    values: Iterable[Any] = tree.listed(node.meta.get("val"))
    return all(
        isinstance(t, torch.Tensor) and all(type(length) is int for length in t.shape) and t.numel() <= _LARGEST for t in values
    )
