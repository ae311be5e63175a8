"""Exact minimization of a sum of tables over variables, by variable elimination.

Each step removes one variable: its tables become one table over its neighbours that holds the least sum for each of their values. The
neighbours with the smallest product of domain sizes go first. Layers of a network repeat, and so do their tables: a step whose tables all
occurred before in the same arrangement takes its result from the earlier step. Most variables have one or two neighbours; these are removed
first, in lists that hold nothing but pairs.

A variable whose step would need more than `LIMIT` entries gets the value of a known solution; the result is then no worse than that
solution, but need not be the least.
"""
from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

LIMIT = 1 << 22
"""The most entries of a table: 32 MiB."""
_SMALL = 8192
"""A smaller table is computed at once; a larger one value by value of the variable, so that the intermediate sums fit into the cache."""

Scope = tuple[int, ...]
"""The variables of a table, in ascending order: one for each axis of the array."""


@dataclass(frozen=True)
class Solution:
    """A value for each variable, the sum of the tables for these values, and how many variables kept a known value."""

    values: list[int]
    total: float
    entries: int
    """The number of entries of all tables that were computed."""
    guessed: int


@dataclass
class _Arrays:
    """The arrays of all tables by number: equal numbers mean equal arrays, so that the results of steps can be reused."""

    arrays: list[np.ndarray] = field(default_factory=list)
    contents: dict[tuple[tuple[int, ...], bytes], int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    """By `id` of an array of the problem, which `Elimination` keeps alive."""
    sums: dict[tuple[int, int], int] = field(default_factory=dict)
    transposes: dict[int, int] = field(default_factory=dict)
    ends: dict[tuple[int, int], tuple[np.ndarray, int]] = field(default_factory=dict)
    chains: dict[tuple[int, int, int], tuple[np.ndarray, int]] = field(default_factory=dict)
    steps: dict[tuple[object, ...], tuple[np.ndarray, int]] = field(default_factory=dict)

    def add(self, array: np.ndarray) -> int:
        """Return the number of an array: that of an equal one, if it is small."""
        if array.size > _SMALL:
            self.arrays.append(array)
            return len(self.arrays) - 1
        number = self.contents.setdefault((array.shape, array.tobytes()), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(array)
        return number

    def number(self, source: np.ndarray) -> int:
        """Return the number of an array of the problem."""
        if id(source) not in self.numbers:
            self.numbers[id(source)] = self.add(np.asarray(source, dtype=np.float64))
        return self.numbers[id(source)]

    def sum(self, first: int, other: int) -> int:
        """Return the number of the sum of two arrays of one shape."""
        key = (first, other) if first < other else (other, first)
        if key not in self.sums:
            self.sums[key] = self.add(self.arrays[first] + self.arrays[other])
        return self.sums[key]

    def transpose(self, number: int) -> int:
        """Return the number of the transpose of an array."""
        if number not in self.transposes:
            transposed = self.transposes[number] = self.add(np.ascontiguousarray(self.arrays[number].T))
            self.transposes[transposed] = number
        return self.transposes[number]

    def end(self, costs: int, pair: int) -> tuple[np.ndarray, int]:
        """Remove a variable with one neighbour: return its best value for each of the neighbour's, and the number of the least sums.

        `costs` is the variable's table, `pair` the table of the variable (axis 0) and the neighbour (axis 1).
        """
        key = (costs, pair)
        if key not in self.ends:
            sums = self.arrays[costs][:, None] + self.arrays[pair]
            self.ends[key] = sums.argmin(0), self.add(sums.min(0))
        return self.ends[key]

    def chain(self, costs: int, first: int, other: int) -> tuple[np.ndarray, int]:
        """Remove a variable with two neighbours: return its best value for each pair of values of theirs, and the least sums."""
        key = (costs, first, other)
        if key not in self.chains:
            sums = (self.arrays[costs][:, None] + self.arrays[first])[:, :, None] + self.arrays[other][:, None, :]
            self.chains[key] = sums.argmin(0), self.add(sums.min(0))
        return self.chains[key]

    def step(self, parts: Sequence[tuple[int, tuple[int, ...]]], count: int, shape: Sequence[int]) -> tuple[np.ndarray, int]:
        """Return the best value for each entry of the neighbours' table, and the number of the table of least sums.

        Each part is an array and, for each of its axes, the position of the neighbour; -1 is the variable with `count` values itself.
        """
        key = (count, *shape, *parts)
        if key not in self.steps:
            views = []
            for number, positions in parts:
                array = self.arrays[number]
                at = positions.index(-1)
                if at:
                    array = array.transpose([at, *(axis for axis in range(array.ndim) if axis != at)])
                views.append(array.reshape([count, *(size if axis in positions else 1 for axis, size in enumerate(shape))]))
            best, least = _least(views, count, shape)
            self.steps[key] = best, self.add(least)
        return self.steps[key]


class Elimination:
    """A problem that is solved once, or for several known solutions: steps that depend on none of them are done once."""

    def __init__(self, unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], limit: int = LIMIT) -> None:
        self.unary, self.edges, self.limit = unary, edges, limit
        self.sizes = [len(costs) for costs in unary]
        self._arrays = _Arrays()
        self.steps: list[tuple[int, Scope, np.ndarray]] = []
        self.entries = 0
        costs_of, pairs = self._reduced()
        self.tables: list[dict[Scope, int]] = [{} for _ in unary]
        self.neighbours: list[set[int]] = [set() for _ in unary]
        for at in self.remaining:
            self._put((at,), costs_of[at])
            for other, number in pairs[at].items():
                if at < other:
                    self._put((at, other), number)
        self.now = [self._width(at) if at in self.remaining else 0 for at in range(len(self.sizes))]
        self.waiting = [(self.now[at], at) for at in self.remaining]
        heapq.heapify(self.waiting)
        self._go_on(None, [])

    def _reduced(self) -> tuple[list[int], list[dict[int, int]]]:
        """Remove variables with at most two neighbours until every other has more; `remaining` are those.

        Return the number of each variable's table, and by variable and neighbour that of their common table, whose axis 0 is the variable.
        """
        arrays = self._arrays
        costs_of = [arrays.number(costs) for costs in self.unary]
        pairs: list[dict[int, int]] = [{} for _ in self.unary]

        def join(first: int, other: int, number: int) -> None:
            if other in pairs[first]:
                number = arrays.sum(pairs[first][other], number)
            pairs[first][other] = number
            pairs[other][first] = arrays.transpose(number)

        for first, other, costs in self.edges:
            if first == other:
                diagonal = arrays.add(np.diagonal(costs).astype(np.float64))
                costs_of[first] = arrays.sum(costs_of[first], diagonal)
            else:
                join(first, other, arrays.number(costs))
        self.remaining = set(range(len(self.sizes)))
        small = [at for at in range(len(pairs)) if len(pairs[at]) < 3]
        while small:
            at = small.pop()
            if at not in self.remaining or len(pairs[at]) > 2 or prod([self.sizes[each] for each in (at, *pairs[at])]) > self.limit:
                continue
            self.remaining.discard(at)
            scope = tuple(sorted(pairs[at]))
            for other in scope:
                del pairs[other][at]
            if len(scope) == 2:
                best, number = arrays.chain(costs_of[at], pairs[at][scope[0]], pairs[at][scope[1]])
                join(*scope, number)
            elif scope:
                best, number = arrays.end(costs_of[at], pairs[at][scope[0]])
                costs_of[scope[0]] = arrays.sum(costs_of[scope[0]], number)
            else:
                best = np.asarray(arrays.arrays[costs_of[at]].argmin())
            self.steps.append((at, scope, best))
            self.entries += best.size * self.sizes[at]
            small += [other for other in scope if len(pairs[other]) < 3]
        return costs_of, pairs

    @property
    def is_exact(self) -> bool:
        """True if every step stays below the limit."""
        return not self.remaining

    def solved(self, start: Sequence[int]) -> Solution:
        """Return the values with the least sum; `start` are values whose sum is finite, and is read if a table is too large."""
        before = (self.tables, self.neighbours, self.remaining, self.steps, self.now, self.waiting, self.entries)
        if not self.is_exact:
            self.tables, self.neighbours = [dict(table) for table in self.tables], [set(table) for table in self.neighbours]
            self.remaining, self.steps = set(self.remaining), list(self.steps)
            self.now, self.waiting = list(self.now), list(self.waiting)
        values = [-1] * len(self.sizes)
        guessed = self._go_on(start, values)
        for at, scope, best in reversed(self.steps):
            values[at] = int(best[tuple([values[other] for other in scope])])
        solution = Solution(values, total_of(self.unary, self.edges, values), self.entries, guessed)
        self.tables, self.neighbours, self.remaining, self.steps, self.now, self.waiting, self.entries = before
        return solution

    def _go_on(self, start: Sequence[int] | None, values: list[int]) -> int:
        """Remove all variables; return how many got their value of `start`. Without `start`, stop at the first that needs one."""
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
        """Let variables wait with their present width."""
        for other in changed:
            width = self._width(other)
            if width != self.now[other]:
                self.now[other] = width
                heapq.heappush(self.waiting, (width, other))

    def _put(self, scope: Scope, number: int) -> None:
        tables = self.tables[scope[0]]
        if scope in tables:
            number = self._arrays.sum(tables[scope], number)
        for at in scope:
            self.tables[at][scope] = number
            if len(scope) > 1:
                self.neighbours[at].update(scope)
                self.neighbours[at].discard(at)

    def _width(self, at: int) -> int:
        width = self.sizes[at]
        for other in self.neighbours[at]:
            width *= self.sizes[other]
            if width > 1 << 60:
                break
        return width

    def _eliminate(self, at: int) -> tuple[Scope, np.ndarray]:
        """Remove a variable; return its neighbours and its best value for each of their values."""
        scope = tuple(sorted(self.neighbours[at]))
        position = {variable: axis for axis, variable in enumerate(scope)}
        position[at] = -1
        parts = []
        for table_scope, number in self.tables[at].items():
            parts.append((number, tuple([position[variable] for variable in table_scope])))
            for other in table_scope:
                if other != at:
                    del self.tables[other][table_scope]
        self.tables[at] = {}
        shape = [self.sizes[variable] for variable in scope]
        self.entries += prod(shape) * self.sizes[at]
        for other in scope:
            self.neighbours[other].discard(at)
        best, least = self._arrays.step(sorted(parts), self.sizes[at], shape)
        if scope:
            self._put(scope, least)
        return scope, best

    def _guess(self, at: int, value: int) -> list[int]:
        """Give a variable a value; return its neighbours."""
        touched = sorted(self.neighbours[at])
        for scope, number in list(self.tables[at].items()):
            for other in scope:
                del self.tables[other][scope]
            rest = tuple(variable for variable in scope if variable != at)
            if rest:
                self._put(rest, self._arrays.add(self._arrays.arrays[number].take(value, axis=scope.index(at))))
        for other in touched:
            self.neighbours[other].discard(at)
        return touched


def _least(parts: Sequence[np.ndarray], count: int, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a table, return the first value of a variable whose sum is the least, and that sum."""
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
    """Return the sum for these values."""
    total = sum(float(costs[value]) for costs, value in zip(unary, values))
    return total + sum(float(costs[values[first], values[other]]) for first, other, costs in edges)


def solve(
    unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], start: Sequence[int], limit: int = LIMIT,
) -> Solution:
    """Return the values with the least sum; `start` are values whose sum is finite."""
    return Elimination(unary, edges, limit).solved(start)
