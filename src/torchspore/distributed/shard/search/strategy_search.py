"""`auto_parallel`: the strategies that a search finds for the operators of a captured graph.

For a grid of the devices, the search solves one axis after the other, each exactly. `dynamic_programming` solves many grids of up to
three axes. `recursive_programming` halves the devices again and again, joins the levels that came out alike, and solves the grid that
results. The best plans become local graphs, and the cheapest of these is taken, or that of the program's own strategies if it is cheaper.
Nothing depends on time or chance, so that all processes find the same plan.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.fx.node import Node

from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.plan import Plan
from torchspore.distributed.shard.search import costs, elimination, greedy, initial_choices
from torchspore.distributed.shard.search.axis import Axis, Choice, layout_on
from torchspore.distributed.shard.search.model import HOLDER, OPERATOR, VALUE, Model
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.split_layouts.device_mesh import Mesh

DYNAMIC, RECURSIVE, PROPAGATION = "dynamic_programming", "recursive_programming", "sharding_propagation"
GRIDS, COMPARED, WORK = 12, 3, 60_000
"""The most grids that are solved for, the most that become local graphs, the most variables over all of them."""
LEVELS = 12
"""The most levels of a recursive search."""
ALIKE = (0.9, 0.7, 0.5)
"""The shares of the products, by time, that two levels split alike if they become one axis: one grid for each share."""
FEW_AXES = 4
"""The maximum number of axes of such a grid, if one with so few exists."""
PRICES = (1e-15, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
"""Seconds that a held byte counts for: hardly any, more where the graph does not fit into a device."""


@dataclass(frozen=True)
class Problem:
    """The input of a search: a graph, the layouts of its inputs and marks in a grid, whether results keep their layouts."""

    module: torch.fx.GraphModule
    base: Mesh
    """The coarsest grid that contains all given layouts."""
    fixed: Callable[[Mesh], Mapping[Node, Layout]]
    marked: Callable[[Mesh], Mapping[Node, Layout]]
    keeps: bool
    exchanges: bool
    shares: bool = True
    """True if products that can be split must be split, so that the devices share the work."""
    plain: LocalGraph | None = None
    """The graph that the program's own strategies give: a search may start from it."""


@dataclass(frozen=True)
class Candidate:
    """A plan for one grid, and its cost in the search's model."""

    mesh: Mesh
    seconds: float
    chosen: list[list[Choice]]
    """By axis of the grid, by variable."""
    model: Model

    @property
    def plan(self) -> Plan:
        """Return the layouts that the choices mean."""
        return plan_of(self.model, self.chosen)


@dataclass
class Tally:
    """Counts of a search."""

    grids: int = 0
    choices: int = 0
    guessed: int = 0
    compared: int = 1
    """Local graphs that were written and counted, that without a search among them."""


class Search:
    """The search for plans of one graph; it can be repeated with another price of memory.

    `candidates(price)` returns plans for grids of the devices, the cheapest first. `price` is in seconds for each byte that a device holds.
    """

    def __init__(self, problem: Problem, machine: Machine, mode: str, tally: Tally) -> None:
        self.problem, self.tally, self._mode = problem, tally, mode
        base = problem.base
        self._models = {base: Model(problem.module, problem.fixed(base), problem.marked(base), machine, problem.keeps)}

    def candidates(self, price: float = 0.0) -> list[Candidate]:
        """Return the plans at a price of memory."""
        if self._mode == RECURSIVE:
            plans = self._halve(price)
        else:
            plans = self._solve_grids(price)
        return sorted(plans, key=lambda candidate: (candidate.seconds, len(candidate.mesh.sizes), candidate.mesh.sizes))

    def _halve(self, price: float) -> list[Candidate]:
        base = self.problem.base
        plans = [self._solve(base, price)]
        fine = halved(base)
        if fine == base:
            return plans
        levels = self._solve(fine, price)
        joined = {joined_levels(base, fine, self._models[base], levels.chosen, share): None for share in ALIKE}
        few = max(FEW_AXES, min(len(mesh.sizes) for mesh in joined))
        refined = [self._solve(mesh, price, is_refined=True) for mesh in joined if mesh not in (fine, base) and len(mesh.sizes) <= few]
        return [*plans, *(refined or [levels])]                 # the levels showed which grid to use

    def _solve_grids(self, price: float) -> list[Candidate]:
        plans: list[Candidate] = []
        total_work = 0
        for mesh in grids(self.problem.base):
            work = len(self._models[self.problem.base].variables) * len(mesh.sizes)
            if plans and total_work + work > WORK:
                break
            total_work += work
            plans.append(self._solve(mesh, price, is_refined=work < WORK // 12))
        return plans

    def _solve(self, mesh: Mesh, price: float, is_refined: bool = False) -> Candidate:
        """Return the plan for a grid."""
        problem = self.problem
        model = self._models.get(mesh)
        if model is None:
            model = self._models[mesh] = self._models[problem.base].on(problem.fixed(mesh), problem.marked(mesh))
        self.tally.grids += 1
        chosen, seconds = _solved(model, mesh, problem, self.tally, price, is_refined)
        return Candidate(mesh, seconds, chosen, model)


def grids(base: Mesh) -> Iterator[Mesh]:
    """Return the base, and finer grids of up to three axes (or as many as the base has), the coarsest first."""
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


def halved(base: Mesh) -> Mesh:
    """Return the base with each axis divided into its prime factors, up to LEVELS axes; the last factors of long axes stay joined."""
    return Mesh(tuple(size for factoring in _levels(base) for size in factoring))


def _levels(base: Mesh) -> list[list[int]]:
    """Return the sizes of the levels into which each axis is divided."""
    sizes = [list(_primes(size)) for size in base.sizes]
    while sum(map(len, sizes)) > LEVELS and any(len(factoring) > 1 for factoring in sizes):
        longest = max(sizes, key=len)
        longest[-2:] = [longest[-2] * longest[-1]]
    return sizes


def joined_levels(base: Mesh, fine: Mesh, model: Model, chosen: list[list[Choice]], share: float) -> Mesh:
    """Return the grid in which levels of one axis of the base that split this share of the products alike are one axis.

    Levels are solved one after the other without knowledge of the next; an axis that replaces several levels is solved as one.
    """
    products = [(at, variable.products) for at, variable in enumerate(model.variables) if variable.products]
    least = share * sum(seconds for _, seconds in products)

    def is_alike(first: list[Choice], other: list[Choice]) -> bool:
        return sum(seconds for number, seconds in products if first[number] == other[number]) >= least

    sizes: list[int] = []
    level = 0
    for factoring in _levels(base):
        groups: list[tuple[list[Choice], int]] = []
        for size in factoring:
            at = next((at for at, (choices, _) in enumerate(groups) if is_alike(choices, chosen[level])), len(groups))
            if at == len(groups):
                groups.append((chosen[level], 1))
            groups[at] = groups[at][0], groups[at][1] * size
            level += 1
        sizes += [size for _, size in groups]
    return Mesh(tuple(sizes))


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


def _solved(
    model: Model, mesh: Mesh, problem_given: Problem, tally: Tally, price: float, is_refined: bool,
) -> tuple[list[list[Choice]], float]:
    """Return the choices of all variables along each axis, and the seconds of a step.

    The axes are solved one after the other, given the choices along earlier ones; `is_refined` solves each again, given all others.
    """
    axes = range(len(mesh.sizes))
    chosen: list[list[Choice] | None] = [None for _ in axes]
    for axis in [*axes, *axes[:-1]] if is_refined else axes:
        problem = Axis(model, mesh, axis, chosen, problem_given.exchanges, price, problem_given.shares)
        unary, edges = problem.unary(), problem.edges()
        tally.choices += sum(map(len, problem.choices))
        values = _least(problem, unary, edges, problem_given, tally)
        chosen[axis] = [axis_choices[value] for axis_choices, value in zip(problem.choices, values)]
    seconds = problem.seconds_before + elimination.total_of(unary, edges, values)
    return [choice for choice in chosen if choice is not None], seconds


def _least(
    axis: Axis, unary: list[np.ndarray], edges: list[tuple[int, int, np.ndarray]], problem: Problem, tally: Tally,
) -> list[int]:
    """Return the values of all variables with the least sum along an axis.

    A graph whose tables are too large for an exact search starts from a greedy solution, and from the program's own strategies.
    """
    orders = axis.model.orders
    tables = elimination.Elimination(unary, edges, order=orders[-1] if orders else None)
    if tables.is_exact:
        orders[:] = [tables.order]
        return tables.solved([]).values
    variables = axis.model.variables
    order = sorted(range(len(variables)), key=lambda at: (-variables[at].seconds, at))
    values = _improved(tables, greedy.solve(unary, edges, order), tally)
    if problem.plain is not None and problem.plain.mesh == axis.mesh and len(axis.mesh.sizes) == 1:
        start = [
            axis_choices.index(choice) if choice in axis_choices else value
            for axis_choices, choice, value in zip(axis.choices, initial_choices.choices_of(axis.model, problem.plain), values)
        ]
        other = _improved(tables, start, tally)
        if elimination.total_of(unary, edges, other) < elimination.total_of(unary, edges, values):
            values = other
    return values


def _improved(tables: elimination.Elimination, start: list[int], tally: Tally) -> list[int]:
    """Return the best values; if tables are too large, some values are guessed, and each round starts from the previous one."""
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
    """Return the layouts that choices mean."""
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


__all__ = ["COMPARED", "DYNAMIC", "PRICES", "PROPAGATION", "RECURSIVE", "Candidate", "Problem", "Search", "Tally", "costs"]
