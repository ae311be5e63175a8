"""Searches for the fastest settings: the record of tried plans, a bandit (`RL`) and a genetic search (`GA`)."""
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
    """Measured plans for one unit. `measure` returns the seconds of a plan, None if it cannot run or gives other numbers."""

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
        """Return whether the time is up, or nothing is left to try."""
        return time.monotonic() > self._ends or len(self.seconds) >= self.size()

    def size(self) -> int:
        """Return the number of distinct plans."""
        return _count(self.genes, {})

    def effective_genes(self, plan: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the genes of a plan that have an effect; genes that mean nothing next to the others are omitted."""
        return tuple(plan[gene.name] if gene.when is None or plan.get(gene.when[0]) == gene.when[1] else None for gene in self.genes)

    def clean(self, plan: Plan) -> Plan:
        """Return the plan without genes that have no effect together with the others."""
        return {gene.name: plan[gene.name] for gene, value in zip(self.genes, self.effective_genes(plan)) if value is not None}

    def run(self, plan: Plan) -> float | None:
        """The seconds of a plan, measured if it was not yet; None also where the time is up."""
        key = self.effective_genes(plan)
        if key not in self.seconds:
            if self.seconds and time.monotonic() > self._ends:
                return None
            self.seconds[key], self.plans[key] = self._measure(plan), dict(plan)
        return self.seconds[key]

    def begin(self) -> None:
        """Measure the untuned plan, then plans that differ from it in one choice, those that are cheap to build first.

        A short search thus tries every choice that needs no compiler, and both kinds of search start from the effect of each choice alone.
        """
        changed = [(gene, value) for gene in self.genes if gene.when is None for value in gene.values[1:]]
        changed.sort(key=lambda pair: pair[0].dear.index(pair[1]) + 1 if pair[1] in pair[0].dear else 0)
        for plan in [self.base, *[{**self.base, gene.name: value} for gene, value in changed]]:
            if self.is_over() and self.seconds:
                return
            self.run(plan)

    def ranked(self) -> list[Plan]:
        """The plans that were measured, the fastest first."""
        good = [(took, index) for index, took in enumerate(self.seconds.values()) if took is not None]
        plans = list(self.plans.values())
        return [plans[index] for _, index in sorted(good)]


def _count(genes: Sequence[Gene], chosen: Plan) -> int:
    if not genes:
        return 1
    gene, *rest = genes
    if gene.when is not None and gene.when[0] in chosen and chosen[gene.when[0]] != gene.when[1]:
        return _count(rest, chosen)
    return sum(_count(rest, {**chosen, gene.name: value}) for value in gene.values)


EPISODES = 60
FIRST_EPSILON, LAST_EPSILON = 0.9, 0.1
"""The share of choices by chance, in the first and in the last episode."""


def search_by_bandit(trials: Trials) -> None:
    """Try plans until the time is up or the number of episodes is reached, after learning from earlier measurements."""
    trials.begin()
    agents = _Agents(trials)
    for episode in range(EPISODES):
        if trials.is_over():
            return
        epsilon = FIRST_EPSILON + (LAST_EPSILON - FIRST_EPSILON) * episode / (EPISODES - 1)
        plan = agents.plan(epsilon)
        is_tried = trials.effective_genes(plan) in trials.seconds
        trials.run(plan)
        if not is_tried:
            agents.learn(plan)


class _Agents:
    """For each value of each gene the mean reward of the plans that had it."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._sums: dict[tuple[str, Any], tuple[float, int]] = {}
        for plan in list(trials.plans.values()):
            self.learn(plan)

    def learn(self, plan: Plan) -> None:
        """Learn the reward of a plan that was measured."""
        base = self._trials.seconds.get(self._trials.effective_genes(self._trials.base))
        took = self._trials.seconds.get(self._trials.effective_genes(plan))
        reward = 0.0 if took is None or base is None else base / took
        for gene, value in zip(self._trials.genes, self._trials.effective_genes(plan)):
            if value is not None or gene.when is None:
                total, count = self._sums.get((gene.name, plan[gene.name]), (0.0, 0))
                self._sums[gene.name, plan[gene.name]] = total + reward, count + 1

    def plan(self, epsilon: float) -> Plan:
        """Return a value for each gene: random with probability epsilon, otherwise the one with the highest reward; untried values count as
        good."""
        chance = self._trials.random
        return {
            gene.name: chance.choice(gene.values) if chance.random() < epsilon else max(gene.values, key=lambda v: self._mean(gene.name, v))
            for gene in self._trials.genes
        }

    def _mean(self, name: str, value: Any) -> float:
        total, count = self._sums.get((name, value), (1.5, 1))
        return total / count


POPULATION, GENERATIONS = 8, 12


def search_by_genes(trials: Trials) -> None:
    """Try plans until the time or the number of generations is used up, starting from earlier measurements."""
    trials.begin()
    population = trials.ranked()[:POPULATION]
    while len(population) < POPULATION and not trials.is_over():
        plan = trials.any()
        trials.run(plan)
        population.append(plan)
    for _ in range(GENERATIONS):
        if trials.is_over() or not population:
            return
        best = min(population, key=lambda plan: _cost(trials, plan))
        population = [best, *[_child(trials, population) for _ in range(POPULATION - 1)]]
        for plan in population:
            trials.run(plan)


def _cost(trials: Trials, plan: Plan) -> float:
    took = trials.seconds.get(trials.effective_genes(plan))
    return float("inf") if took is None else took


def _child(trials: Trials, population: list[Plan]) -> Plan:
    first, other = (_chosen(trials, population) for _ in range(2))
    child = {gene.name: trials.random.choice((first, other))[gene.name] for gene in trials.genes}
    for gene in trials.genes:
        if trials.random.random() < 1 / len(trials.genes):
            child[gene.name] = trials.random.choice(gene.values)
    return child


def _chosen(trials: Trials, population: list[Plan]) -> Plan:
    """The better one of two by chance."""
    return min((trials.random.choice(population) for _ in range(2)), key=lambda plan: _cost(trials, plan))
