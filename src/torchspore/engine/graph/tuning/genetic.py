"""A genetic algorithm: good plans have children, which mix their genes and now and then change one.

Tournament selection, uniform crossover, mutation with probability 1/length and an elite of one, as in Eiben and Smith, Introduction to
Evolutionary Computing (2nd edition, 2015), chapters 4 and 5.
"""
from __future__ import annotations

from torchspore.engine.graph.tuning.trials import Plan, Trials

POPULATION, GENERATIONS = 8, 12


def search(trials: Trials) -> None:
    """Tries plans until the time is up or a number of generations has lived; what others have measured is where it begins."""
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
    took = trials.seconds.get(trials.told(plan))
    return float("inf") if took is None else took


def _child(trials: Trials, population: list[Plan]) -> Plan:
    one, other = (_chosen(trials, population) for _ in range(2))
    child = {gene.name: trials.random.choice((one, other))[gene.name] for gene in trials.genes}
    for gene in trials.genes:
        if trials.random.random() < 1 / len(trials.genes):
            child[gene.name] = trials.random.choice(gene.values)
    return child


def _chosen(trials: Trials, population: list[Plan]) -> Plan:
    """The better one of two by chance."""
    return min((trials.random.choice(population) for _ in range(2)), key=lambda plan: _cost(trials, plan))
