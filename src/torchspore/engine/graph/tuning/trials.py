"""What was tried in one search and what came of it: each way is measured once, whoever asks for it, until the time is up."""
from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Plan = dict[str, Any]
"""A value for each gene by its name; plain values, so that JSON holds it."""


@dataclass(frozen=True)
class Gene:
    """One thing that may be chosen, and the values to choose from, the one of the untuned form first."""

    name: str
    values: tuple[Any, ...]
    when: tuple[str, Any] | None = None
    """(name, value) of another gene: only with that value does this one mean anything."""
    dear: tuple[Any, ...] = ()
    """The values that need a compiler, the quicker ones first."""


class Trials:
    """Measured ways to run one thing. `measure` gives the seconds of a plan, None where it can't be run or gives other numbers."""

    def __init__(self, genes: Sequence[Gene], measure: Callable[[Plan], float | None], seconds: float, seed: int = 0) -> None:
        fixed = {gene.name: gene.values[0] for gene in genes if len(gene.values) == 1}
        self.genes = [
            Gene(gene.name, gene.values, None if gene.when is None or gene.when[0] in fixed else gene.when, gene.dear)
            for gene in genes if len(gene.values) > 1 and (gene.when is None or fixed.get(gene.when[0], gene.when[1]) == gene.when[1])
        ]
        self.random = random.Random(seed)
        self._measure = measure
        self._ends = time.monotonic() + seconds
        self.seconds: dict[tuple[Any, ...], float | None] = {}
        self.plans: dict[tuple[Any, ...], Plan] = {}
        self.base = self.first()

    def first(self) -> Plan:
        """The plan of the untuned form."""
        return {gene.name: gene.values[0] for gene in self.genes}

    def any(self) -> Plan:
        """A plan by chance."""
        return {gene.name: self.random.choice(gene.values) for gene in self.genes}

    def is_over(self) -> bool:
        """Whether the time is up, or nothing is left to try."""
        return time.monotonic() > self._ends or len(self.seconds) >= self.size()

    def size(self) -> int:
        """How many ways there are that differ."""
        return _count(self.genes, {})

    def told(self, plan: Mapping[str, Any]) -> tuple[Any, ...]:
        """What counts of a plan: genes that mean nothing beside the others are left out."""
        return tuple(plan[gene.name] if gene.when is None or plan.get(gene.when[0]) == gene.when[1] else None for gene in self.genes)

    def clean(self, plan: Plan) -> Plan:
        """The plan without the genes that mean nothing beside the others."""
        return {gene.name: plan[gene.name] for gene, told in zip(self.genes, self.told(plan)) if told is not None}

    def run(self, plan: Plan) -> float | None:
        """The seconds of a plan, measured if it was not yet; None also where the time is up."""
        key = self.told(plan)
        if key not in self.seconds:
            if self.seconds and time.monotonic() > self._ends:
                return None
            self.seconds[key], self.plans[key] = self._measure(plan), dict(plan)
        return self.seconds[key]

    def begin(self) -> None:
        """Measures the untuned plan, then those that differ from it in one choice, the ones that are cheap to make first.

        So a short search has seen every choice that needs no compiler, and both kinds of search begin with what each choice does alone.
        """
        changed = [(gene, value) for gene in self.genes if gene.when is None for value in gene.values[1:]]
        changed.sort(key=lambda pair: pair[0].dear.index(pair[1]) + 1 if pair[1] in pair[0].dear else 0)
        for plan in [self.base, *[{**self.base, gene.name: value} for gene, value in changed]]:
            if self.is_over() and self.seconds:
                return
            self.run(plan)

    def ranked(self) -> list[Plan]:
        """The plans that were measured, the fastest first."""
        good = [(took, place) for place, took in enumerate(self.seconds.values()) if took is not None]
        plans = list(self.plans.values())
        return [plans[place] for _, place in sorted(good)]


def _count(genes: Sequence[Gene], chosen: Plan) -> int:
    if not genes:
        return 1
    gene, *rest = genes
    if gene.when is not None and gene.when[0] in chosen and chosen[gene.when[0]] != gene.when[1]:
        return _count(rest, chosen)
    return sum(_count(rest, {**chosen, gene.name: value}) for value in gene.values)
