"""One axis of the grid: what each variable can choose there, and what the choices of neighbours cost together."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.rules.rule import Dims, Split, layout_of, splits_evenly
from torchspore.distributed.shard.search.model import END, HOLDER, OPERATOR, VALUE, Model, Operand, Variable
from torchspore.engine.core.device_layout import Layout
from torchspore.engine.core.device_mesh import Mesh

UNSPLIT, SUM, AVG, MAX, MIN = -1, -2, -3, -4, -5
"""How a value lies along an axis, where no dimension is cut: whole, or terms."""
KINDS = {"sum": SUM, "avg": AVG, "max": MAX, "min": MIN}
NAMES = {code: kind for kind, code in KINDS.items()}
NEVER = 1e6
"""Seconds for what can't be."""


@dataclass(frozen=True)
class Choice:
    """The split of an operator along one axis: a factor, or none; with `terms` it lets terms of that kind through."""

    factor: int | None = None
    terms: int = UNSPLIT


Chosen = list[list[Choice]]
"""By axis of the grid, by variable."""


def split_of(variable_choices: Sequence[Choice]) -> Split:
    """The factors that a variable's choices cut, by the axes of the grid."""
    split: Split = {}
    for axis, choice in enumerate(variable_choices):
        if choice.factor is not None:
            split[choice.factor] = (*split.get(choice.factor, ()), axis)
    return split


def state(dims: Dims, choice: Choice, terms: dict[int, str] | None = None) -> int:
    """How a value with these dimensions lies along the axis: the dimension that is cut, whole, or terms."""
    if choice.terms != UNSPLIT:
        return choice.terms
    if choice.factor is None:
        return UNSPLIT
    for at, dim in enumerate(dims):
        if choice.factor in dim:
            return at
    kind = (terms or {}).get(choice.factor)
    return UNSPLIT if kind is None else KINDS[kind]


class Axis:
    """The choices along one axis where those along the others are known; `others[axis][variable]`, None for an axis still open."""

    def __init__(self, model: Model, mesh: Mesh, axis: int, others: Sequence[Sequence[Choice] | None], exchanges: bool,
                 price: float = 0.0, shares: bool = True) -> None:
        self.model, self.mesh, self.axis, self.exchanges, self.price, self.shares = model, mesh, axis, exchanges, price, shares
        self.size = mesh.sizes[axis]
        fixed_choices = [(at, choice) for at, choice in enumerate(others) if choice is not None and at != axis]
        self.splits: list[Split] = []
        self.kinds: list[tuple[Any, ...]] = []
        """Of each variable its form and its choices along the other axes: where they are alike all that is asked here is alike."""
        self.choices: list[list[Choice]] = []
        groups: dict[Any, tuple[Split, list[Choice]]] = {}
        for number, variable in enumerate(model.variables):
            factors = tuple(choice[number].factor for _, choice in fixed_choices)
            self.kinds.append((variable.form, factors))
            if self.kinds[-1] not in groups:
                split: Split = {}
                for (at, _), factor in zip(fixed_choices, factors):
                    if factor is not None:
                        split[factor] = (*split.get(factor, ()), at)
                groups[self.kinds[-1]] = split, self._choices(variable, split)
            split, choices = groups[self.kinds[-1]]
            self.splits.append(split)
            self.choices.append(choices)

    # ---- what can be chosen

    def _choices(self, variable: Variable, split: Split) -> list[Choice]:
        if variable.fixed is not None:
            return self._fixed(variable)
        choices = [Choice()] + [Choice(factor) for factor in variable.factors if self._fits(variable, factor, split)]
        if (
            self.shares and variable.is_product and len(choices) > 1 and not variable.is_fixed_by_program
        ):  # told: it is cut as that, or not at all
            choices.pop(0)
        if variable.is_linear:
            choices += [Choice(terms=SUM), Choice(terms=AVG)]
            if variable.kind == VALUE:
                choices += [Choice(terms=MAX), Choice(terms=MIN)]
        return choices

    def _fixed(self, variable: Variable) -> list[Choice]:
        assert variable.fixed is not None
        dims = variable.results[0]
        for dim, axes in zip(dims, variable.fixed.cuts):
            if self.axis in axes and dim:
                return [Choice(dim[0])]
        return [Choice(), Choice(terms=SUM)] if variable.keeps_terms else [Choice()]

    def _fits(self, variable: Variable, factor: int, split: Split) -> bool:
        axes = tuple(sorted((*split.get(factor, ()), self.axis)))
        if variable.rule.sizes[factor] % self.mesh.product(axes):
            return False
        return splits_evenly(variable.rule, self.mesh, {**split, factor: axes})

    # ---- what it costs

    def unary(self) -> list[np.ndarray]:
        """Seconds of each variable's choices on their own."""
        tables: dict[Any, np.ndarray] = {}
        for number, (kind, variable) in enumerate(zip(self.kinds, self.model.variables)):
            if kind not in tables:
                split = self.splits[number]
                share = self.mesh.product(axis for axes in split.values() for axis in axes)
                tables[kind] = np.array([self._alone(variable, choice, share, split) for choice in self.choices[number]])
        return [tables[kind] for kind in self.kinds]

    def _alone(self, variable: Variable, choice: Choice, share: int, split: Split) -> float:
        seconds = self._working(variable, choice, share, split) + self.price * self._part_bytes(variable, choice, share)
        if choice.factor is None:
            return seconds
        wide = variable.wide
        sent = 0.0
        if wide is not None and wide.messages and choice.factor in wide.seen:
            share_bytes = wide.share * max(variable.bytes, default=0) / share
            sent = self.model.machine.transfer_seconds(2 * share_bytes * wide.messages * (self.size - 1) / self.size, wide.messages)
        return seconds + sent

    def _working(self, variable: Variable, choice: Choice, share: int, split: Split) -> float:
        """Seconds that the operator takes: what a cut does not cut is read by each device."""
        def part(bytes_of: int, dims: Dims) -> float:
            axes = [axis for dim in dims for factor in dim for axis in split.get(factor, ())]
            return bytes_of / self.mesh.product(axes) / (self.size if any(choice.factor in dim for dim in dims) else 1)

        read = [use for use in variable.operands if use.number in variable.reads]
        moved = sum(part(self.model.variables[use.source].bytes[use.result], use.dims) for use in read)
        if variable.writes:
            moved += sum(map(part, variable.bytes, variable.results))
        cut = self.size if choice.factor is not None else 1
        return max(variable.products / share / cut, moved / self.model.machine.memory)

    def _part_bytes(self, variable: Variable, choice: Choice, share: int) -> float:
        """Bytes of inputs and of values that an operator makes anew, where bytes count."""
        if not self.price or (variable.kind == OPERATOR and not variable.seconds) or variable.kind == VALUE:
            return 0.0
        cut = self.size if choice.factor is not None else 1
        return sum(variable.bytes) / share / cut

    def edges(self) -> list[tuple[int, int, np.ndarray]]:
        """Seconds of exchanges between what gives a value and what uses it, by both their choices."""
        terms = []
        tables: dict[Any, np.ndarray] = {}
        for number, variable in enumerate(self.model.variables):
            for at, use in enumerate(variable.operands):
                kind = self.kinds[use.source], self.kinds[number], at
                if kind not in tables:
                    tables[kind] = self._edge(number, use)
                terms.append((use.source, number, tables[kind]))
        return terms

    def _edge(self, number: int, use: Operand) -> np.ndarray:
        variable, giver = self.model.variables[number], self.model.variables[use.source]
        source_bytes = giver.bytes[use.result] / self._parts(use.source, giver.results[use.result])
        source_states = [state(giver.results[use.result], choice, dict(giver.terms[use.result])) for choice in self.choices[use.source]]
        target_states = [state(use.dims, choice) for choice in self.choices[number]]
        return np.array(
            [
                [self._between(variable, use.stays, use.is_late, source_bytes, one, other) for other in target_states]
                for one in source_states
            ]
        )

    def _parts(self, number: int, dims: Dims) -> int:
        """Into how many parts a value is cut along the other axes."""
        split = self.splits[number]
        return self.mesh.product(axis for dim in dims for factor in dim for axis in split.get(factor, ()))

    def _between(self, variable: Variable, stays: bool, is_late: bool, source_bytes: float, before: int, after: int) -> float:
        if stays:
            return 0.0 if before == after else NEVER
        if variable.kind == END and variable.is_settled and before >= UNSPLIT and after == UNSPLIT:
            return 0.0                         # a result may lie as it does
        return _moved(before, after, source_bytes, self.size, self.model.machine, self.exchanges, is_late)


@functools.lru_cache(1 << 16)
def _moved(before: int, after: int, source_bytes: float, size: int, machine: Machine, exchanges: bool, is_late: bool) -> float:
    """Seconds from one way to lie along an axis to another."""
    if before == after or (before == UNSPLIT and after >= 0):
        return 0.0
    if after < UNSPLIT:
        return NEVER
    messages = 0 if is_late and before < UNSPLIT and after == UNSPLIT else 1
    if before < UNSPLIT:
        return machine.transfer_seconds((2 if after == UNSPLIT else 1) * source_bytes * (size - 1) / size, messages)
    if after >= 0 and exchanges:
        return machine.transfer_seconds(source_bytes / size * (size - 1) / size, messages)
    return machine.transfer_seconds(source_bytes * (size - 1) / size, messages)


def layout_on(dims: Dims, choices: Sequence[Choice], terms: dict[int, str] | None = None) -> Layout:
    """The layout of a value with these dimensions, over all axes."""
    cuts = layout_of(split_of(choices), dims).cuts
    partial = []
    for axis, choice in enumerate(choices):
        state_of_choice = state(dims, choice, terms)
        if state_of_choice < UNSPLIT:
            partial.append((axis, NAMES[state_of_choice]))
    return Layout(cuts, tuple(partial))


__all__ = ["Axis", "Choice", "Chosen", "HOLDER", "layout_on"]
