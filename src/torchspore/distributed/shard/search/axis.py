"""An axis of the grid: the choices of each variable along it, and the costs of pairs of choices."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.propagation_rules.rule import Dims, Split, layout_of, splits_evenly
from torchspore.distributed.shard.search.model import END, HOLDER, OPERATOR, VALUE, Model, Operand, Variable
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.split_layouts.device_mesh import Mesh

UNSPLIT, SUM, AVG, MAX, MIN = -1, -2, -3, -4, -5
"""The states of a value along an axis that splits no dimension: unsplit, or partial sums."""
KINDS = {"sum": SUM, "avg": AVG, "max": MAX, "min": MIN}
NAMES = {code: kind for kind, code in KINDS.items()}
NEVER = 1e6
"""Seconds of an impossible choice."""


class Choice(NamedTuple):
    """The split of an operator along one axis: a factor, or none; with `terms` it lets partial sums of that kind through."""

    factor: int | None = None
    terms: int = UNSPLIT


Chosen = list[list[Choice]]
"""By axis of the grid, by variable."""


def split_of(variable_choices: Sequence[Choice]) -> Split:
    """The factors that a variable's choices split, by the axes of the grid."""
    split: Split = {}
    for axis, choice in enumerate(variable_choices):
        if choice.factor is not None:
            split[choice.factor] = (*split.get(choice.factor, ()), axis)
    return split


def state(dims: Dims, choice: Choice, terms: dict[int, str] | None = None) -> int:
    """The state of a value with these dimensions along the axis: the split dimension, unsplit, or partial."""
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
    """The choices along one axis after the other axes are solved; `others[axis][variable]` is None for an axis not yet solved."""

    def __init__(self, model: Model, mesh: Mesh, axis: int, others: Sequence[Sequence[Choice] | None], exchanges: bool,
                 price: float = 0.0, shares: bool = True) -> None:
        self.model, self.mesh, self.axis, self.exchanges, self.price, self.shares = model, mesh, axis, exchanges, price, shares
        self.size = mesh.sizes[axis]
        self.solved_axes = [at for at, choice in enumerate(others) if choice is not None and at != axis]
        choices_by_axis = [others[at] or () for at in self.solved_axes]
        self.solved_choices: list[tuple[Choice, ...]] = list(zip(*choices_by_axis)) or [()] * len(model.variables)
        """By variable its choices along the other axes that have been solved for."""
        self.splits: list[Split] = []
        self.kinds: list[int] = []
        """The same number for variables of one form with the same choices along the other axes: their choices here cost the same."""
        self.choices: list[list[Choice]] = []
        numbers: dict[Any, int] = {}
        groups: list[tuple[Split, list[Choice]]] = []
        for variable, solved in zip(model.variables, self.solved_choices):
            kind = numbers.setdefault((variable.form, solved), len(numbers))
            if kind == len(groups):
                split: Split = {}
                for at, choice in zip(self.solved_axes, solved):
                    if choice.factor is not None:
                        split[choice.factor] = (*split.get(choice.factor, ()), at)
                groups.append((split, self._choices(variable, split)))
            self.kinds.append(kind)
            self.splits.append(groups[kind][0])
            self.choices.append(groups[kind][1])

    # ---- choices

    def _choices(self, variable: Variable, split: Split) -> list[Choice]:
        if variable.fixed is not None:
            return self._fixed(variable)
        choices = [Choice()] + [Choice(factor) for factor in variable.factors if self._fits(variable, factor, split)]
        if (
            self.shares and variable.is_product and len(choices) > 1 and not variable.is_fixed_by_program
        ):  # a fixed layout: split like it, or not at all
            choices.pop(0)
        if variable.is_linear:
            choices += [Choice(terms=KINDS[kind]) for kind in KINDS if kind in variable.term_kinds]
        return choices

    def _fixed(self, variable: Variable) -> list[Choice]:
        assert variable.fixed is not None
        dims = variable.results[0]
        for dim, axes in zip(dims, variable.fixed.dim_axes):
            if self.axis in axes and dim:
                return [Choice(dim[0])]
        return [Choice(), Choice(terms=SUM)] if variable.keeps_terms else [Choice()]

    def _fits(self, variable: Variable, factor: int, split: Split) -> bool:
        axes = tuple(sorted((*split.get(factor, ()), self.axis)))
        if variable.rule.sizes[factor] % self.mesh.product(axes):
            return False
        return splits_evenly(variable.rule, self.mesh, {**split, factor: axes})

    # ---- costs

    def unary(self) -> list[np.ndarray]:
        """Return the seconds of each variable's choices alone."""
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
            received = 2 * share_bytes * wide.messages * (self.size - 1) / self.size
            sent = self.model.machine.transfer_seconds(received, wide.messages, self.mesh.extent((self.axis,)))
        return seconds + sent

    def _working(self, variable: Variable, choice: Choice, share: int, split: Split) -> float:
        """Return the seconds of the operator: each device reads unsplit values entirely."""
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
        """Return the bytes of inputs and of new values of an operator, if memory has a price."""
        if not self.price or (variable.kind == OPERATOR and not variable.seconds) or variable.kind == VALUE:
            return 0.0
        cut = self.size if choice.factor is not None else 1
        return sum(variable.bytes) / share / cut

    def edges(self) -> list[tuple[int, int, np.ndarray]]:
        """Return the seconds of exchanges between producers and users, for each pair of choices.

        Sets `seconds_before`: the seconds of all exchanges without a choice along this axis.
        """
        terms = []
        tables: dict[tuple[int, int], tuple[np.ndarray, float]] = {}
        numbers: dict[Any, int] = {}
        sources: dict[tuple[int, int], tuple[int, Source]] = {}
        uses: dict[tuple[int, int], tuple[int, Target]] = {}
        self.seconds_before = 0.0
        for number, variable in enumerate(self.model.variables):
            for at, use in enumerate(variable.operands):
                source_key, use_key = (self.kinds[use.source], use.result), (self.kinds[number], at)
                if source_key not in sources:
                    source = self._source(use)
                    sources[source_key] = numbers.setdefault(source, len(numbers)), source
                if use_key not in uses:
                    target = self._target(number, use)
                    uses[use_key] = numbers.setdefault(target, len(numbers)), target
                source_number, source = sources[source_key]
                use_number, target = uses[use_key]
                if (source_number, use_number) not in tables:
                    tables[source_number, use_number] = self._edge(source, target)
                table, before = tables[source_number, use_number]
                self.seconds_before += before
                terms.append((use.source, number, table))
        return terms

    def _source(self, use: Operand) -> Source:
        source = self.model.variables[use.source]
        dims, terms = source.results[use.result], dict(source.terms[use.result])
        return Source(
            tuple([state(dims, choice, terms) for choice in self.choices[use.source]]),
            tuple([state(dims, choice, terms) for choice in self.solved_choices[use.source]]), source.bytes[use.result],
        )

    def _target(self, number: int, use: Operand) -> Target:
        variable = self.model.variables[number]
        return Target(
            tuple([state(use.dims, choice) for choice in self.choices[number]]),
            tuple([state(use.dims, choice) for choice in self.solved_choices[number]]),
            use.stays, use.is_late, variable.kind == END and variable.is_settled,
        )

    def _edge(self, source: Source, target: Target) -> tuple[np.ndarray, float]:
        """Return by how many seconds each pair of choices prolongs the exchanges of a value, and their seconds without a choice."""
        moves = [Move(before, after, at) for at, before, after in zip(self.solved_axes, source.solved, target.solved)]
        others = self._seconds(source, target, moves)
        rows = [
            [self._seconds(source, target, [*moves, Move(start, end, self.axis)]) - others for end in target.states]
            for start in source.states
        ]
        return np.array(rows), others

    def _seconds(self, source: Source, target: Target, moves: Sequence[Move]) -> float:
        """Return the seconds of the exchanges along several axes together."""
        if target.stays:
            return NEVER * any(move.before != move.after for move in moves)
        if target.may_keep_layout:
            moves = [Move(move.before, move.before, move.axis) if move.is_gather else move for move in moves]
        changes = tuple(move for move in moves if move.before != move.after or move.before >= 0)
        return exchange_seconds(changes, source.bytes, self.mesh, self.model.machine, self.exchanges, target.is_late)


class Source(NamedTuple):
    """A value at its producer: its state for each choice along the axis, and for those along the solved axes."""

    states: tuple[int, ...]
    solved: tuple[int, ...]
    bytes: int


class Target(NamedTuple):
    """A value at its user: likewise for the user's choices."""

    states: tuple[int, ...]
    solved: tuple[int, ...]
    stays: bool
    """True if the value is written, so that it must keep its layout."""
    is_late: bool
    """True if only the optimizer waits for it."""
    may_keep_layout: bool
    """True if it is a result of the graph that need not be gathered."""


class Move(NamedTuple):
    """The state of a value along one axis of the grid, before and after a redistribution."""

    before: int
    after: int
    axis: int

    @property
    def is_gather(self) -> bool:
        """Return whether a dimension that the axis splits becomes unsplit."""
        return self.before >= 0 and self.after == UNSPLIT


@functools.lru_cache(1 << 17)
def exchange_seconds(moves: tuple[Move, ...], full_bytes: int, mesh: Mesh, machine: Machine, exchanges: bool, is_late: bool) -> float:
    """Return the seconds of the redistribution of a value of `full_bytes` bytes.

    Steps of one kind along several axes are one exchange, so that a sum over two axes costs less than two sums. Values are split first and
    gathered last. An axis that splits a dimension before and after is gathered too if an axis outside of it joins or leaves the dimension.
    Messages of a sum that only the optimizer waits for (`is_late`) are not counted, because they travel with others.
    """
    if any(move.after < UNSPLIT and move.before != move.after for move in moves):
        return NEVER
    scattered: list[int] = []
    turned: list[int] = []
    summed: list[int] = []
    gathered: list[int] = []
    held = float(full_bytes)
    moved = _moved_axes(moves)
    for before, after, axis in moves:
        if before >= 0 or (after >= 0 and before == UNSPLIT):
            held /= mesh.sizes[axis]
        if before < UNSPLIT:
            (scattered if after >= 0 else summed).append(axis)
        elif before >= 0 and after >= 0 and before != after:
            turned.append(axis)
        elif before >= 0 and axis in moved:
            gathered.append(axis)
    seconds = 0.0
    if scattered:
        count = mesh.product(scattered)
        seconds += machine.transfer_seconds(held * (count - 1) / count, 1, mesh.extent(scattered))
        held /= count
    if turned:
        count = mesh.product(turned)
        seconds += machine.transfer_seconds(held * (count - 1) / (count if exchanges else 1), 1, mesh.extent(turned))
    if summed:
        count = mesh.product(summed)
        seconds += machine.transfer_seconds(2 * held * (count - 1) / count, 0 if is_late else 1, mesh.extent(summed))
    if gathered:
        seconds += machine.transfer_seconds(held * (mesh.product(gathered) - 1), 1, mesh.extent(gathered))
    return seconds


def _moved_axes(moves: tuple[Move, ...]) -> set[int]:
    """Return the axes that split a dimension before and move: those after the first that joins or leaves the dimension."""
    moved: set[int] = set()
    for dim in {move.before for move in moves if move.before >= 0}:
        before = sorted(move.axis for move in moves if move.before == dim)
        after = sorted(move.axis for move in moves if move.after == dim)
        same = 0
        while same < min(len(before), len(after)) and before[same] == after[same]:
            same += 1
        moved.update(before[same:])
    return moved


def layout_on(dims: Dims, choices: Sequence[Choice], terms: dict[int, str] | None = None) -> Layout:
    """Return the layout of a value with these dimensions, over all axes."""
    cuts = layout_of(split_of(choices), dims).dim_axes
    partial = []
    for axis, choice in enumerate(choices):
        state_of_choice = state(dims, choice, terms)
        if state_of_choice < UNSPLIT:
            partial.append((axis, NAMES[state_of_choice]))
    return Layout(cuts, tuple(partial))


__all__ = ["Axis", "Choice", "Chosen", "HOLDER", "layout_on"]
