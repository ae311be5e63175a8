"""How an operator may be split: which dimensions of its inputs and results are split together.

Dimensions that must be split alike share a *factor*. A dimension consists of factors, the major one first: most dimensions of one factor,
those that a reshape joins of several. (Sharding rules made of factors are an idea of OpenXLA's Shardy.)
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchspore.engine.split_layouts.device_layout import Axes, Layout, Shape
from torchspore.engine.split_layouts.device_mesh import Mesh

Dim = tuple[int, ...]
Dims = tuple[Dim, ...]
Call = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Rule:
    """The factors of each input and result of one call of an operator.

    `sizes` are the factors' lengths; `reduced` states, for factors that no result has, how partial results combine; `locked` factors are
    never split. `arguments(args, kwargs, local)` returns the arguments of the call on parts, if they differ; `local` has the layouts.
    """

    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]
    sizes: Mapping[int, int]
    reduced: Mapping[int, str] = field(default_factory=dict)
    reduced_each: tuple[Mapping[int, str], ...] = ()
    """The same for each result, where they differ."""
    locked: frozenset[int] = frozenset()
    arguments: Callable[[list[Any], dict[str, Any], Local], None] | None = None
    linear: bool = False
    """True if a sum of terms may go through: the operator of the sum is the sum of the operators of the terms."""

    @functools.cached_property
    def nested_factors(self) -> frozenset[tuple[int, int]]:
        """Pairs of adjacent factors in a dimension, the outer one first."""
        return frozenset(pair for dims in (*self.inputs, *self.outputs) for dim in dims for pair in itertools.pairwise(dim))


@dataclass(frozen=True)
class Local:
    """Facts that a call on parts may need."""

    mesh: Mesh
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    shapes: tuple[Shape, ...]
    """The full shapes of the results."""
    parts: tuple[Shape, ...]
    """Of the results, as each device holds them."""


Split = dict[int, Axes]
"""By factor, the axes of the grid that split it."""


def factors_of(layout: Layout, dims: Dims, sizes: Mapping[int, int], mesh: Mesh) -> Split:
    """Return the factors that a layout of an input splits, without those whose parts would be unequal."""
    split: Split = {}
    for axes, dim in zip(layout.dim_axes, dims):
        remaining = list(axes)
        for factor in dim:
            size, factor_axes = sizes[factor], []
            while remaining and size % mesh.sizes[remaining[0]] == 0:
                size //= mesh.sizes[remaining[0]]
                factor_axes.append(remaining.pop(0))
            if factor_axes:
                split[factor] = tuple(factor_axes)
            if size != 1:
                break
    return split


def layout_of(split: Split, dims: Dims) -> Layout:
    """Return the layout for a value with these splits of its factors."""
    return Layout(tuple(tuple(axis for factor in dim for axis in split.get(factor, ())) for dim in dims))


def choose(rule: Rule, mesh: Mesh, layouts: Sequence[Layout], weights: Sequence[int], fixed: Split | None = None) -> Split:
    """Choose the split of a call: each input votes for its current splits, weighted by the bytes that would move otherwise.

    The factors of `fixed` are split as it says or less, whatever others vote for.
    """
    fixed = fixed or {}
    votes: dict[tuple[int, Axes], int] = {}
    for layout, dims, weight in zip(layouts, rule.inputs, weights):
        for factor, axes in factors_of(layout, dims, rule.sizes, mesh).items():
            if factor not in rule.locked:
                for end in range(1, len(axes) + 1):
                    if axes[:end] != fixed.get(factor, axes)[:end]:
                        break
                    key = (factor, axes[:end])
                    votes[key] = votes.get(key, 0) + weight
    split: Split = {}
    neighbours = _factors_sharing_values(rule)
    for (factor, axes), _ in sorted(votes.items(), key=lambda item: (-item[1], len(item[0][1]))):
        taken = {axis for other in neighbours[factor] for axis in split.get(other, ())}
        if axes[:-1] != split.get(factor, ()) or axes[-1] in taken:
            continue
        trial = {**split, factor: axes}
        if splits_evenly(rule, mesh, trial):
            split = trial
    return split


def split_of_writes(rule: Rule, mesh: Mesh, inputs: Sequence[tuple[Layout, Dims]]) -> Split:
    """Return the required splits of the factors of mutated inputs: those of their current layouts, none for unsplit factors."""
    return {
        factor: factors_of(layout, dims, rule.sizes, mesh).get(factor, ()) for layout, dims in inputs for dim in dims for factor in dim
    }


def _factors_sharing_values(rule: Rule) -> dict[int, set[int]]:
    """Return for each factor those that share a value with it: an axis of the grid splits a value once."""
    neighbours: dict[int, set[int]] = {factor: {factor} for factor in rule.sizes}
    for dims in (*rule.inputs, *rule.outputs):
        value_factors = {factor for dim in dims for factor in dim}
        for factor in value_factors:
            neighbours[factor] |= value_factors
    return neighbours


def splits_evenly(rule: Rule, mesh: Mesh, split: Split) -> bool:
    """Return whether each factor has equal parts, and whether a factor is split only after the ones before it are split entirely."""
    for factor, axes in split.items():
        if rule.sizes[factor] % mesh.product(axes):
            return False
    return all(
        not split.get(minor) or rule.sizes[major] == mesh.product(split.get(major, ())) for major, minor in rule.nested_factors
    )


def results(rule: Rule, split: Split, partial: Mapping[int, str]) -> tuple[Layout, ...]:
    """Return the layouts of the results: along the axes that split reduced factors they are partial.

    `partial` are partial sums that the operator lets through.
    """
    results = []
    for dims, reduced in zip(rule.outputs, rule.reduced_each or [rule.reduced] * len(rule.outputs)):
        value_factors = {factor for dim in dims for factor in dim}
        terms = dict(partial)
        for factor, kind in reduced.items():
            if factor not in value_factors:
                terms.update(dict.fromkeys(split.get(factor, ()), kind))
        results.append(Layout(layout_of(split, dims).dim_axes, tuple(sorted(terms.items()))))
    return tuple(results)


def of_the_parts(args: list[Any], kwargs: dict[str, Any], local: Local) -> None:
    """Replace the second argument of a call, the shape of its result, by the shape of the part."""
    args[1] = list(local.parts[0])


class Naming:
    """Creates factors while a rule is built."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.locked: set[int] = set()

    def new(self, size: int, locked: bool = False) -> Dim:
        """Return a dimension with one new factor."""
        number = len(self.sizes)
        self.sizes[number] = int(size)
        if locked:
            self.locked.add(number)
        return (number,)

    def all(self, shape: Sequence[int], locked: bool = False) -> Dims:
        """Return a new factor for each dimension."""
        return tuple(self.new(size, locked) for size in shape)

    def lock(self, dim: Dim) -> None:
        """Lock the factors of a dimension."""
        self.locked.update(dim)

    def rule(self, inputs: Sequence[Dims], outputs: Sequence[Dims], **others: Any) -> Rule:
        """Return the rule for these inputs and results."""
        return Rule(tuple(inputs), tuple(outputs), dict(self.sizes), locked=frozenset(self.locked), **others)
