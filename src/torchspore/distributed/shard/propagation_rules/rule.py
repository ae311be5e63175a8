"""How an operator may be split: which dimensions of its inputs and results go together.

Dimensions that must be cut alike share a *factor*. A dimension is made of factors, the one that counts most first: most of one, those that
a reshape joins of several. (The idea of sharding rules made of factors is that of OpenXLA's Shardy.)
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchspore.engine.layouts.device_layout import Axes, Layout, Shape
from torchspore.engine.layouts.device_mesh import Mesh

Dim = tuple[int, ...]
Dims = tuple[Dim, ...]
Call = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Rule:
    """The factors of each input and result of one call of an operator.

    `sizes` are the factors' lengths; `reduced` says of factors that no result has how the terms become the result; `locked` are never
    cut. `arguments(args, kwargs, local)` gives the arguments of the call on parts, where they are others; `local` knows the layouts.
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
        """Pairs of factors that follow each other in a dimension, the outer one first."""
        return frozenset(pair for dims in (*self.inputs, *self.outputs) for dim in dims for pair in itertools.pairwise(dim))


@dataclass(frozen=True)
class Local:
    """Facts that a call on parts may need."""

    mesh: Mesh
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    shapes: tuple[Shape, ...]
    """Of the results, whole."""
    parts: tuple[Shape, ...]
    """Of the results, as each device holds them."""


Split = dict[int, Axes]
"""By factor the axes of the grid that cut it."""


def factors_of(layout: Layout, dims: Dims, sizes: Mapping[int, int], mesh: Mesh) -> Split:
    """The factors that a layout of an input cuts; what does not come out even is left out."""
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
    """The layout in which the factors of a value are cut so."""
    return Layout(tuple(tuple(axis for factor in dim for axis in split.get(factor, ())) for dim in dims))


def choose(rule: Rule, mesh: Mesh, layouts: Sequence[Layout], weights: Sequence[int], fixed: Split | None = None) -> Split:
    """How to split a call whose inputs lie so: each input votes for the cuts it has, with the bytes that would move otherwise.

    The factors of `fixed` are cut as it says or less, whatever others vote for.
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
    """How the factors of inputs that are written must be cut: as each lies, where none votes for what is whole."""
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
    """Return whether each factor is cut evenly, and of a dimension of several only where those before are cut to the end."""
    for factor, axes in split.items():
        if rule.sizes[factor] % mesh.product(axes):
            return False
    return all(
        not split.get(minor) or rule.sizes[major] == mesh.product(split.get(major, ())) for major, minor in rule.nested_factors
    )


def results(rule: Rule, split: Split, partial: Mapping[int, str]) -> tuple[Layout, ...]:
    """The layouts of the results: along the axes that cut what is reduced they hold terms. `partial` are terms that go through."""
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
    """For a call whose second argument is the shape of its result: that of the part."""
    args[1] = list(local.parts[0])


class Naming:
    """Makes factors while a rule is written."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.locked: set[int] = set()

    def new(self, size: int, locked: bool = False) -> Dim:
        """A dimension of one new factor."""
        number = len(self.sizes)
        self.sizes[number] = int(size)
        if locked:
            self.locked.add(number)
        return (number,)

    def all(self, shape: Sequence[int], locked: bool = False) -> Dims:
        """A new factor for each dimension."""
        return tuple(self.new(size, locked) for size in shape)

    def lock(self, dim: Dim) -> None:
        """Lets a dimension be cut no more."""
        self.locked.update(dim)

    def rule(self, inputs: Sequence[Dims], outputs: Sequence[Dims], **others: Any) -> Rule:
        """The rule of these inputs and results."""
        return Rule(tuple(inputs), tuple(outputs), dict(self.sizes), locked=frozenset(self.locked), **others)
