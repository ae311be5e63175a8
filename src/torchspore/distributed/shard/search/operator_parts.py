"""The parts of an operator that are split independently of each other: an operator over lists has one for each position of its lists.

Layers of a network repeat, and so do their operators: two calls of an operator whose arguments have the same shapes have the same parts.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.propagation_rules import OperatorCall
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule
from torchspore.distributed.shard.search import costs
from torchspore.distributed.shard.search.relaxed_rules import Wide, wide
from torchspore.engine.tensors import tree


@dataclass(frozen=True)
class Part:
    """A part of an operator: the operands and results whose dimensions share factors, with the rule for these alone."""

    relaxed: Wide
    operands: tuple[int, ...]
    """The positions of the rule's inputs among the operands of the call."""
    terms: tuple[Mapping[int, str], ...]
    """For each result which factors leave terms, and how these become the value."""
    bytes: tuple[int, ...]
    """Of each result, unsplit."""
    factors: tuple[int, ...]
    """The factors that may be split."""
    seconds: float
    """Of the part on one device."""
    products: float
    """Seconds of its multiplications on one device."""


@dataclass(frozen=True)
class OperatorParts:
    """All parts of an operator, and the facts that they share."""

    parts: tuple[Part, ...]
    results: tuple[tuple[int, int], ...]
    """For each Tensor that the call returns the part and the position among the part's results."""
    reads: frozenset[int]
    """The positions of operands that are read, where reading and writing counts."""
    writes: bool
    is_product: bool


class Operators:
    """The parts of the operators of a graph on an assumed machine; equal operators share them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._parts: dict[Any, OperatorParts] = {}

    def parts(self, target: Any, arguments: Mapping[str, Any], outs: Sequence[Any], can_split: bool) -> OperatorParts:
        """Return the parts of a call; `arguments` are by name, with nodes; an operator that cannot be split is one part without factors."""
        key = (target, can_split, tuple(arguments), _signature(list(arguments.values())), _signature(outs))
        operator_parts = self._parts.get(key)
        if operator_parts is None:
            args = tree.mapped(dict(arguments), _value)
            operator_parts = self._parts[key] = _parts(target, args, outs, can_split, self._machine)
        return operator_parts


def _signature(value: Any) -> Any:
    """Return a key that is equal for arguments with equal numbers and for Tensors of one shape, stride and dtype."""
    if isinstance(value, (list, tuple)):
        return tuple([_signature(item) for item in value])
    value = _value(value)
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.dtype
    return type(value), repr(value) if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, dict)) else value


def _value(leaf: Any) -> Any:
    return leaf.meta.get("val") if isinstance(leaf, Node) else leaf


def _parts(target: Any, args: dict[str, Any], outs: Sequence[Any], can_split: bool, machine: Machine) -> OperatorParts:
    """Return the parts of a call; `args` are by name, Tensors by their fake tensors."""
    inputs = tuple(leaf for leaf in tree.leaves(list(args.values())) if isinstance(leaf, torch.Tensor))
    tensors = [out for out in outs if out is not None]
    relaxed = wide(OperatorCall(target, args, inputs, tuple(outs))) if can_split else None
    if relaxed is None or len(relaxed.rule.inputs) != len(inputs):
        relaxed = Wide(_unsplit_rule(inputs, tensors))
    rule, terms = relaxed.rule, _terms_outside(relaxed.rule)
    group = _groups(rule)
    count = max(group.values(), default=0) + 1
    of_inputs = [_group_of(dims, group) for dims in rule.inputs]
    of_outputs = [
        _group_of(dims, group) if any(dims) else group[next(iter(each))] if each else 0 for dims, each in zip(rule.outputs, terms)
    ][:len(tensors)]
    name = getattr(target, "_opname", str(target))
    seconds = costs.seconds(name, args, tensors, machine) / count
    products = costs.additions(name, args, tensors) / machine.operations / count
    parts = []
    for number in range(count):
        operands = tuple(at for at, part in enumerate(of_inputs) if part == number)
        results = [at for at, part in enumerate(of_outputs) if part == number]
        names = {factor: at for at, factor in enumerate(f for f in rule.sizes if group[f] == number)}
        part_terms = tuple({names[factor]: kind for factor, kind in terms[at].items()} for at in results)
        part_bytes = tuple(int(tensors[at].numel() * tensors[at].element_size()) for at in results)
        restricted = _restricted(relaxed, names, operands, results)
        parts.append(Part(restricted, operands, part_terms, part_bytes, _factors_to_split(restricted), seconds, products))
    positions = tuple((number, of_outputs[:at].count(number)) for at, number in enumerate(of_outputs))
    reads = frozenset() if name in costs.FREE else frozenset(range(1 if name in costs.ROWS else 0, len(inputs)))
    return OperatorParts(tuple(parts), positions, reads, name not in costs.FREE, costs.is_product(name))


def _unsplit_rule(inputs: Sequence[torch.Tensor], outs: Sequence[torch.Tensor]) -> Rule:
    """Return the rule of an operator that runs unsplit on each device."""
    naming = Naming()
    dims = [naming.all(tensor.shape, locked=True) for tensor in inputs]
    return naming.rule(dims, [naming.all(out.shape, locked=True) for out in outs])


def _terms_outside(rule: Rule) -> list[Mapping[int, str]]:
    """Return for each result the factors that leave partial sums, without those of its dimensions."""
    each = rule.reduced_each or [rule.reduced] * len(rule.outputs)
    inside = [{factor for dim in dims for factor in dim} for dims in rule.outputs]
    return [{factor: kind for factor, kind in terms.items() if factor not in own} for own, terms in zip(inside, each)]


def _restricted(relaxed: Wide, names: Mapping[int, int], operands: Sequence[int], results: Sequence[int]) -> Wide:
    """Return the rule for some operands and results alone, with the names of their factors changed."""
    def renamed(dims: Dims) -> Dims:
        return tuple([tuple([names[factor] for factor in dim]) for dim in dims])

    def subset(factors: frozenset[int]) -> frozenset[int]:
        return frozenset(names[factor] for factor in factors if factor in names)

    rule = relaxed.rule
    part = Rule(
        tuple(renamed(rule.inputs[at]) for at in operands), tuple(renamed(rule.outputs[at]) for at in results),
        {name: rule.sizes[factor] for factor, name in names.items()}, locked=subset(rule.locked), linear=rule.linear,
    )
    return dataclasses.replace(relaxed, rule=part, local_factors=subset(relaxed.local_factors), seen=subset(relaxed.seen))


def _factors_to_split(relaxed: Wide) -> tuple[int, ...]:
    """Return the factors that may be split: those of operands, and those that a result may be split along although no operand has them."""
    rule = relaxed.rule
    in_use = {factor for dims in rule.inputs for dim in dims for factor in dim} | relaxed.local_factors
    return tuple(factor for factor, size in rule.sizes.items() if factor in in_use and factor not in rule.locked and size > 1)


def _groups(rule: Rule) -> dict[int, int]:
    """Return by factor the number of its group: factors that meet in an operand, or in a result and its partial sums, form a group."""
    head = {factor: factor for factor in rule.sizes}

    def find(factor: int) -> int:
        while head[factor] != factor:
            factor = head[factor]
        return factor

    together = [[factor for dim in dims for factor in dim] for dims in rule.inputs]
    for dims, terms in zip(rule.outputs, _terms_outside(rule)):
        together.append([*(factor for dim in dims for factor in dim), *terms])
    for factors in together:
        for factor in factors[1:]:
            first, other = sorted((find(factors[0]), find(factor)))
            head[other] = first
    numbers: dict[int, int] = {}
    return {factor: numbers.setdefault(find(factor), len(numbers)) for factor in rule.sizes}


def _group_of(dims: Dims, group: Mapping[int, int]) -> int:
    return next((group[factor] for dim in dims for factor in dim), 0)
