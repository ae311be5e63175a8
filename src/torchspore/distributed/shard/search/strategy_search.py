"""`auto_parallel`: the strategies that a search finds for the operators of a captured graph.

For each grid of the devices one axis after the other is solved for. The operators that cost most choose first; from there
`dynamic_programming` finds the best choices exactly, and `recursive_programming`, which halves the devices again and again, with narrow
tables. The best are made local graphs, and the cheapest of these counts, beside the one that the program's own strategies give. Nothing
depends on time or chance, so that all processes find the same.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.plan import Plan
from torchspore.distributed.shard.search import costs, elimination, greedy, initial_choices
from torchspore.distributed.shard.search.axis import Axis, Choice, layout_on
from torchspore.distributed.shard.search.model import HOLDER, OPERATOR, VALUE, Model
from torchspore.engine.core.device_layout import Layout
from torchspore.engine.core.device_mesh import Mesh

DYNAMIC, RECURSIVE, PROPAGATION = "dynamic_programming", "recursive_programming", "sharding_propagation"
GRIDS, COMPARED, WORK = 12, 3, 60_000
"""The most grids that are solved for, the most that become local graphs, the most variables over all of them."""
HALVINGS = 6
"""The most axes that halving makes."""
QUICK = 256
"""The most entries of a table in a quick search."""
PRICES = (1e-15, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
"""Seconds that a held byte counts for: hardly any, more where the graph does not fit into a device."""


@dataclass(frozen=True)
class Problem:
    """The input of a search: a graph, the layouts of its inputs and marks in a grid, whether results keep their layouts."""

    module: torch.fx.GraphModule
    base: Mesh
    """The coarsest grid in which all that is given lies."""
    fixed: Callable[[Mesh], Mapping[Node, Layout]]
    marked: Callable[[Mesh], Mapping[Node, Layout]]
    keeps: bool
    exchanges: bool
    shares: bool = True
    """True if products that can be cut must be: the devices are there to share them out."""
    plain: LocalGraph | None = None
    """The graph that the program's own strategies give: a search may start from it."""


@dataclass(frozen=True)
class Candidate:
    """A plan for one grid, and what the search thinks that it costs."""

    mesh: Mesh
    plan: Plan
    seconds: float
    price: float


@dataclass
class Tally:
    """Counts of a search."""

    grids: int = 0
    choices: int = 0
    guessed: int = 0
    compared: int = 1
    """Local graphs that were written and counted, that without a search among them."""


def candidates(problem: Problem, machine: Machine, mode: str, tally: Tally, price: float = 0.0) -> list[Candidate]:
    """Plans for grids of the devices, the cheapest first."""
    candidates: list[Candidate] = []
    work_left, first = WORK, None
    for mesh in (halved(problem.base) if mode == RECURSIVE else grids(problem.base)):
        if first is None:
            model = first = Model(problem.module, problem.fixed(mesh), problem.marked(mesh), machine, problem.keeps)
        else:
            model = first.on(problem.fixed(mesh), problem.marked(mesh))
        work = len(model.variables) * len(mesh.sizes)
        if candidates and work_left < work:
            break
        work_left -= work
        tally.grids += 1
        chosen, seconds = _solved(model, mesh, mode, problem, tally, price)
        candidates.append(Candidate(mesh, plan_of(model, chosen), seconds, price))
    return sorted(candidates, key=lambda candidate: (candidate.seconds, len(candidate.mesh.sizes), candidate.mesh.sizes))


def grids(base: Mesh) -> Iterator[Mesh]:
    """The base, and finer grids of up to three axes (or as many as the base has), the coarsest first."""
    most = max(3, len(base.sizes))
    every: list[tuple[int, ...]] = []
    for parts in itertools.product(
        *[[factoring for length in range(1, 4) for factoring in factorings(size, length)] for size in base.sizes]
    ):
        sizes = tuple(size for part in parts for size in part)
        if len(sizes) <= most:
            every.append(sizes)
    for sizes in sorted(every, key=lambda grid: (len(grid), max(grid) - min(grid), grid))[:GRIDS]:
        yield Mesh(sizes)


def halved(base: Mesh) -> Iterator[Mesh]:
    """The base, and that with each axis halved again and again, until there are HALVINGS axes; primes that are left stay."""
    sizes = [list(_primes(size)) for size in base.sizes]
    while sum(map(len, sizes)) > HALVINGS and any(len(factoring) > 1 for factoring in sizes):
        longest = max(sizes, key=len)
        longest[-2:] = [longest[-2] * longest[-1]]
    fine = Mesh(tuple(size for factoring in sizes for size in factoring))
    yield from (base, fine) if base != fine else (base,)


def factorings(count: int, length: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a number as a product of `length` factors above 1, in all orders."""
    if length == 1:
        if count > 1:
            yield (count,)
        return
    for first in range(2, count // 2 + 1):
        if count % first == 0:
            for rest in factorings(count // first, length - 1):
                yield (first, *rest)


def _primes(count: int) -> Iterator[int]:
    prime = 2
    while count > 1:
        while count % prime == 0:
            yield prime
            count //= prime
        prime += 1


def _solved(model: Model, mesh: Mesh, mode: str, problem_given: Problem, tally: Tally, price: float) -> tuple[list[list[Choice]], float]:
    """The choices of all variables along each axis, and what they cost along the last one that was solved for."""
    axes = range(len(mesh.sizes))
    chosen: list[list[Choice] | None] = [None for _ in axes]
    order = sorted(range(len(model.variables)), key=lambda at: (-model.variables[at].seconds, at))
    sent = [0.0 for _ in axes]
    alone = 0.0
    small = len(model.variables) * len(mesh.sizes) < WORK // 12
    rounds = [*axes, *axes[:-1]] if mode == DYNAMIC and small and len(mesh.sizes) > 1 else [*axes]
    for axis in rounds:
        problem = Axis(model, mesh, axis, chosen, problem_given.exchanges, price, problem_given.shares)
        unary, edges = problem.unary(), problem.edges()
        tally.choices += sum(map(len, problem.choices))
        values = greedy.solve(unary, edges, order)
        tables = elimination.Elimination(unary, edges, elimination.LIMIT if mode == DYNAMIC else QUICK)
        values = _improved(tables, values, tally)
        if tally.guessed and problem_given.plain is not None and problem_given.plain.mesh == mesh and len(mesh.sizes) == 1:
            start = [
                axis_choices.index(choice) if choice in axis_choices else value
                for axis_choices, choice, value in zip(problem.choices, initial_choices.choices_of(model, problem_given.plain), values)
            ]
            other = _improved(tables, start, tally)
            if elimination.total_of(unary, edges, other) < elimination.total_of(unary, edges, values):
                values = other
        chosen[axis] = [axis_choices[value] for axis_choices, value in zip(problem.choices, values)]
        alone = elimination.total_of(unary, (), values)
        sent[axis] = elimination.total_of((), edges, values)
    return [choice for choice in chosen if choice is not None], alone + sum(sent)


def _improved(tables: elimination.Elimination, start: list[int], tally: Tally) -> list[int]:
    """The best values; where tables get too wide some are guessed, and each round guesses from the one before."""
    best, total = start, elimination.total_of(tables.unary, tables.edges, start)
    for _ in range(3):
        solved = tables.solved(best)
        tally.guessed += solved.guessed
        if solved.total < total:
            best, total = solved.values, solved.total
        elif solved.guessed:
            break
        if not solved.guessed:
            break
    return best


def plan_of(model: Model, chosen: list[list[Choice]]) -> Plan:
    """The layouts that choices mean."""
    inputs: dict[Node, Layout] = {}
    operands: dict[Node, dict[int, Layout]] = {}
    results: dict[Node, dict[int, Layout]] = {}
    requested: dict[Node, Layout] = {}
    for number, variable in enumerate(model.variables):
        variable_choices = [axis_choices[number] for axis_choices in chosen]
        if variable.kind == HOLDER and variable.node.op == "placeholder" and variable.node not in model.fixed:
            inputs[variable.node] = layout_on(variable.results[0], variable_choices)
        elif variable.kind == VALUE:
            results.setdefault(variable.node, {})[variable.operands[0].number] = layout_on(variable.results[0], variable_choices)
        elif variable.kind == OPERATOR and variable.fixed is None:
            for use in variable.operands:
                operands.setdefault(variable.node, {})[use.number] = layout_on(use.dims, variable_choices)
            if variable.wide is not None and variable.wide.local_factors and variable.results:
                requested[variable.node] = layout_on(variable.results[0], variable_choices).settled()
    rows = {node: tuple(each.get(at) for at in range(max(each) + 1)) for node, each in operands.items()}
    return Plan(inputs, rows, results, requested)


__all__ = ["COMPARED", "DYNAMIC", "PRICES", "PROPAGATION", "RECURSIVE", "Candidate", "Problem", "Tally", "candidates", "costs"]
