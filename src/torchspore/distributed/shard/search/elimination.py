"""Exact minimization of a sum of tables over variables, by variable elimination.

Each step removes one variable: its tables become one table over its neighbours that holds the least sum for each of their values.
`elimination_order` finds the steps, `tables` computes them.

A variable whose step would need more than `LIMIT` entries gets the value of a known solution; the result is then no worse than that
solution, but need not be the least.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from torchspore.distributed.shard.search.elimination_order import Diagonal, Order, Removal, Scope, Step, Sum, Take, Transpose
from torchspore.distributed.shard.search.tables import Arrays

LIMIT = 1 << 22
"""The most entries of a table: 32 MiB."""
Edges = Sequence[tuple[int, int, np.ndarray]]


@dataclass(frozen=True)
class Solution:
    """A value for each variable, the sum of the tables for these values, and how many variables kept their known value."""

    values: list[int]
    total: float
    entries: int
    """The number of entries of all tables that were computed."""
    guessed: int


class Elimination:
    """A problem that is solved once, or for several known solutions: steps that depend on no known solution run once.

    `order` is that of another problem over the same graph; it is not used if its tables would be too large for the sizes here.
    """

    def __init__(self, unary: Sequence[np.ndarray], edges: Edges, limit: int = LIMIT, order: Order | None = None) -> None:
        self.unary, self.edges = unary, edges
        self._sizes = [len(costs) for costs in unary]
        if order is None or not _has_room(order, self._sizes):
            order = Order(self._sizes, [(first, other) for first, other, _ in edges], limit)
        self.order = order
        self._arrays = Arrays()
        self._numbers = [self._arrays.number(table) for table in (*unary, *[table for _, _, table in edges])]
        """By table of the order the number of its array."""
        self._choices: list[tuple[int, Scope, np.ndarray]] = []
        """By removed variable the best value for each entry of its neighbours' table."""
        self._entries = 0
        self._compute(order.steps)

    @property
    def is_exact(self) -> bool:
        """True if every step stays below the limit."""
        return self.order.is_exact

    def solved(self, start: Sequence[int]) -> Solution:
        """Return the values with the least sum; `start` are values whose sum is finite, and is read if a table is too large."""
        before = len(self._numbers), len(self._choices), self._entries
        guesses: dict[int, int] = {}
        if not self.is_exact:
            steps, guesses = self.order.with_guesses(start)
            self._compute(steps)
        values = [guesses.get(at, -1) for at in range(len(self._sizes))]
        for at, scope, best in reversed(self._choices):
            values[at] = int(best[tuple([values[other] for other in scope])])
        solution = Solution(values, total_of(self.unary, self.edges, values), self._entries, len(guesses))
        del self._numbers[before[0]:], self._choices[before[1]:]
        self._entries = before[2]
        return solution

    def _compute(self, steps: Iterable[Step]) -> None:
        """Compute the tables of these steps, and the best values of the variables that they remove."""
        arrays, numbers = self._arrays, self._numbers
        for step in steps:
            if isinstance(step, Transpose):
                numbers.append(arrays.transpose(numbers[step.table]))
            elif isinstance(step, Sum):
                numbers.append(arrays.sum(numbers[step.first], numbers[step.other]))
            elif isinstance(step, Removal):
                best, number = self._remove(step)
                numbers.append(number)
                self._choices.append((step.variable, step.scope, best))
                self._entries += best.size * self._sizes[step.variable]
            elif isinstance(step, Diagonal):
                numbers.append(arrays.diagonal(numbers[step.table]))
            elif isinstance(step, Take):
                numbers.append(arrays.take(numbers[step.table], step.axis, step.value))

    def _remove(self, step: Removal) -> tuple[np.ndarray, int]:
        arrays, tables = self._arrays, [self._numbers[table] for table in step.tables]
        if step.parts is not None:
            return arrays.step(sorted(zip(tables, step.parts)), self._sizes[step.variable], [self._sizes[other] for other in step.scope])
        if len(tables) == 3:
            return arrays.chain(*tables)
        return arrays.end(*tables) if len(tables) == 2 else arrays.least(*tables)


def _has_room(order: Order, sizes: Sequence[int]) -> bool:
    """Return whether each step of an order stays below its limit for variables of these sizes."""
    if not order.is_exact:
        return False
    return sizes == order.sizes or all(
        prod([sizes[variable] for variable in (step.variable, *step.scope)]) <= order.limit
        for step in order.steps if isinstance(step, Removal)
    )


def total_of(unary: Sequence[np.ndarray], edges: Edges, values: Sequence[int]) -> float:
    """Return the sum for these values."""
    total = sum(float(costs[value]) for costs, value in zip(unary, values))
    return total + sum(float(costs[values[first], values[other]]) for first, other, costs in edges)


def solve(unary: Sequence[np.ndarray], edges: Edges, start: Sequence[int], limit: int = LIMIT) -> Solution:
    """Return the values with the least sum; `start` are values whose sum is finite."""
    return Elimination(unary, edges, limit).solved(start)
