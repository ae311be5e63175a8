"""Reinforcement learning: for each gene an agent that learns which of its values brings most, and mostly takes that one.

An epsilon-greedy bandit with sample averages for each gene (Sutton and Barto, Reinforcement Learning, 2nd edition, 2018, sections 2.2 to
2.4); the reward is how many times faster than the untuned form a plan ran, 0 where it could not be run.
"""
from __future__ import annotations

from typing import Any

from torchspore.engine.graph.tuning.trials import Plan, Trials

EPISODES = 60
FIRST_EPSILON, LAST_EPSILON = 0.9, 0.1
"""The share of choices by chance, in the first and in the last episode."""


def search(trials: Trials) -> None:
    """Tries plans until the time is up or a number of episodes is over; what others have measured is learnt first."""
    trials.begin()
    agents = _Agents(trials)
    for episode in range(EPISODES):
        if trials.is_over():
            return
        epsilon = FIRST_EPSILON + (LAST_EPSILON - FIRST_EPSILON) * episode / (EPISODES - 1)
        plan = agents.plan(epsilon)
        known = trials.told(plan) in trials.seconds
        trials.run(plan)
        if not known:
            agents.learn(plan)


class _Agents:
    """For each value of each gene the mean reward of the plans that had it."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._sums: dict[tuple[str, Any], tuple[float, int]] = {}
        for plan in list(trials.plans.values()):
            self.learn(plan)

    def learn(self, plan: Plan) -> None:
        """Takes the reward of a plan that was measured."""
        base = self._trials.seconds.get(self._trials.told(self._trials.base))
        took = self._trials.seconds.get(self._trials.told(plan))
        reward = 0.0 if took is None or base is None else base / took
        for gene, told in zip(self._trials.genes, self._trials.told(plan)):
            if told is not None or gene.when is None:
                total, count = self._sums.get((gene.name, plan[gene.name]), (0.0, 0))
                self._sums[gene.name, plan[gene.name]] = total + reward, count + 1

    def plan(self, epsilon: float) -> Plan:
        """A value for each gene: by chance with probability epsilon, else the one that brought most; what is untried counts as good."""
        chance = self._trials.random
        return {
            gene.name: chance.choice(gene.values) if chance.random() < epsilon else max(gene.values, key=lambda v: self._mean(gene.name, v))
            for gene in self._trials.genes
        }

    def _mean(self, name: str, value: Any) -> float:
        total, count = self._sums.get((name, value), (1.5, 1))
        return total / count
