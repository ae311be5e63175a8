"""The least sum of tables over variables, exactly: variables go one after the other, what is left of each is a table of its neighbours.

Where such a table would be too wide a variable is given a value that is known to be good; the result is then no worse than that.
"""
from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

LIMIT = 1 << 15
"""The most entries that a table may have."""
_SMALL = 8192
"""A table of fewer entries is made at once; of a wider one each value of the variable by itself, which stays in the processor's memory."""


@dataclass(frozen=True)
class Solved:
    """A value for each variable, their sum, how many entries tables had, and how many variables were given a value beforehand."""

    values: list[int]
    total: float
    entries: int
    guessed: int


class Elimination:
    """Tables over variables, solved once or for several known values: work that depends on none of these is done once."""

    def __init__(self, unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], limit: int = LIMIT) -> None:
        self.unary, self.edges, self.limit = unary, edges, limit
        self.sizes = [len(costs) for costs in unary]
        self.tables: list[dict[tuple[int, ...], np.ndarray]] = [{} for _ in unary]
        self.neighbours: list[set[int]] = [set() for _ in unary]
        self.entries = 0
        for at, one in enumerate(unary):
            self._put((at,), np.asarray(one, dtype=np.float64))
        for first, other_at, costs in edges:
            if first == other_at:
                self._put((first,), np.diagonal(costs))
            elif first < other_at:
                self._put((first, other_at), costs)
            else:
                self._put((other_at, first), costs.T)
        self.remaining = set(range(len(self.sizes)))
        self.steps: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        self.now = [self._width(at) for at in range(len(self.sizes))]
        self.waiting = [(width, at) for at, width in enumerate(self.now)]
        heapq.heapify(self.waiting)
        self._go_on(None, [])

    def solved(self, start: Sequence[int]) -> Solved:
        """The values with the least sum; `start` are values whose sum is known to be finite."""
        before = (self.tables, self.neighbours, self.remaining, self.steps, self.now, self.waiting, self.entries)
        self.tables, self.neighbours = [dict(table) for table in self.tables], [set(table) for table in self.neighbours]
        self.remaining, self.steps, self.now, self.waiting = set(self.remaining), list(self.steps), list(self.now), list(self.waiting)
        values = [-1] * len(self.sizes)
        guessed = self._go_on(start, values)
        for at, scope, best in reversed(self.steps):
            values[at] = int(best[tuple(values[other] for other in scope)])
        solution = Solved(values, total_of(self.unary, self.edges, values), self.entries, guessed)
        self.tables, self.neighbours, self.remaining, self.steps, self.now, self.waiting, self.entries = before
        return solution

    def _go_on(self, start: Sequence[int] | None, values: list[int]) -> int:
        """Takes variables out, and gives some their value of `start`; without one up to where the first must be. Gives how many were."""
        guessed = 0
        while self.remaining:
            width, at = self.waiting[0]
            if at not in self.remaining or width != self.now[at]:
                heapq.heappop(self.waiting)
                continue
            if width > self.limit:
                if start is None:
                    break
                guessed += 1
                widest = max(
                    (at, *self.neighbours[at]), key=lambda variable: (len(self.neighbours[variable]), self.sizes[variable], -variable)
                )
                self.remaining.discard(widest)
                values[widest] = start[widest]
                self._note(self._guess(widest, start[widest]))
                continue
            heapq.heappop(self.waiting)
            self.remaining.discard(at)
            self.steps.append((at, *self._eliminate(at)))
            self._note(self.steps[-1][1])
        return guessed

    def _note(self, changed: Iterable[int]) -> None:
        """Lets variables wait with the width that they have now."""
        for other in changed:
            width = self._width(other)
            if width != self.now[other]:
                self.now[other] = width
                heapq.heappush(self.waiting, (width, other))

    def _put(self, scope: tuple[int, ...], table: np.ndarray) -> None:
        for at in scope:
            unary_table = self.tables[at]
            unary_table[scope] = unary_table[scope] + table if scope in unary_table else table
            self.neighbours[at].update(other for other in scope if other != at)

    def _width(self, at: int) -> int:
        width = self.sizes[at]
        for other in self.neighbours[at]:
            width *= self.sizes[other]
            if width > 1 << 60:
                break
        return width

    def _eliminate(self, at: int) -> tuple[tuple[int, ...], np.ndarray]:
        """Takes a variable out; gives its best value for each of its neighbours' values."""
        scope = tuple(sorted(self.neighbours[at]))
        shape = [self.sizes[variable] for variable in scope]
        parts = []
        for scope_key, table in list(self.tables[at].items()):
            if scope_key[0] != at:                               # its own axis comes first, so that each of its values is one table
                table = np.moveaxis(table, scope_key.index(at), 0)
            parts.append(table.reshape([self.sizes[at], *(size if variable in scope_key else 1 for variable, size in zip(scope, shape))]))
            for other in scope_key:
                del self.tables[other][scope_key]
        self.entries += prod(shape) * self.sizes[at]
        for other in scope:
            self.neighbours[other].discard(at)
        best, least = _least(parts, self.sizes[at], shape)
        if scope:
            self._put(scope, least)
        return scope, best

    def _guess(self, at: int, value: int) -> list[int]:
        """Gives a variable a value; gives its neighbours."""
        touched = sorted(self.neighbours[at])
        for scope_key, table in list(self.tables[at].items()):
            for other in scope_key:
                del self.tables[other][scope_key]
            rest = tuple(variable for variable in scope_key if variable != at)
            if rest:
                self._put(rest, table.take(value, axis=scope_key.index(at)))
        for other in touched:
            self.neighbours[other].discard(at)
        return touched


def _least(parts: Sequence[np.ndarray], count: int, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """For each place of a table the first value of a variable whose sum is the least, and that sum."""
    if prod(shape) * count < _SMALL:
        sums = np.zeros([count, *shape])
        for part in parts:
            sums = sums + part
        return sums.argmin(0), sums.min(0)
    best = np.zeros(shape, dtype=np.int32)
    least = np.zeros(shape)
    total = np.empty(shape)
    for value in range(count):
        into = total if value else least
        into[...] = parts[0][value]
        for part in parts[1:]:
            into += part[value]
        if value:
            best[total < least] = value
            np.minimum(least, total, out=least)
    return best, least


def total_of(unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], values: Sequence[int]) -> float:
    """The sum for given values."""
    total = sum(float(costs[value]) for costs, value in zip(unary, values))
    return total + sum(float(costs[values[first], values[other]]) for first, other, costs in edges)


def solve(
    unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], start: Sequence[int], limit: int = LIMIT,
) -> Solved:
    """The values with the least sum; `start` are values whose sum is known to be finite."""
    return Elimination(unary, edges, limit).solved(start)
