"""The order in which variables are removed, with the tables that each step reads; it depends only on the graph and on domain sizes.

The axes and grids of a search are problems over one graph, so that one order serves them all. The neighbours with the smallest product of
domain sizes go first. Most variables have one or two neighbours; these are removed first, in lists that contain only pairs.
"""
from __future__ import annotations

import copy
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

Scope = tuple[int, ...]
"""The variables of a table, in ascending order: one for each axis of the array."""


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of two tables of one shape."""

    first: int
    other: int


@dataclass(frozen=True, slots=True)
class Transpose:
    """A table with its two axes exchanged."""

    table: int


@dataclass(frozen=True, slots=True)
class Diagonal:
    """The diagonal of a table over one variable twice."""

    table: int


@dataclass(frozen=True, slots=True)
class Take:
    """A table in which one variable has a value."""

    table: int
    axis: int
    value: int


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of a variable: its tables become one over `scope`, its neighbours.

    Without `parts`, `tables` are its costs and, for each of at most two neighbours, the table with it (axis 0 is the variable). `parts` has
    for each table the positions of its axes in the scope; -1 is the variable.
    """

    variable: int
    scope: Scope
    tables: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...] | None = None


Step = Sum | Transpose | Diagonal | Take | Removal


class Order:
    """The steps for one graph. Tables have numbers: those of the variables, those of the edges, then one for the result of each step."""

    def __init__(self, sizes: Sequence[int], ends: Sequence[tuple[int, int]], limit: int) -> None:
        self.sizes, self.limit = list(sizes), limit
        self.steps: list[Step] = []
        self._count = len(sizes) + len(ends)
        costs_of, pairs = self._remove_pairs(ends)
        self._tables: list[dict[Scope, int]] = [{} for _ in sizes]
        self._neighbours: list[set[int]] = [set() for _ in sizes]
        for at in self.remaining:
            self._put((at,), costs_of[at])
            for other, table in pairs[at].items():
                if at < other:
                    self._put((at, other), table)
        self._widths = [self._width(at) if at in self.remaining else 0 for at in range(len(sizes))]
        self._waiting = [(self._widths[at], at) for at in self.remaining]
        heapq.heapify(self._waiting)
        self._remove_all(None, {})

    @property
    def is_exact(self) -> bool:
        """True if every step stays below the limit."""
        return not self.remaining

    def with_guesses(self, start: Sequence[int]) -> tuple[list[Step], dict[int, int]]:
        """Return the steps after those of the order, and the variables that keep their value of `start` because tables are too large."""
        rest = copy.copy(self)
        rest._tables, rest._neighbours = [dict(table) for table in self._tables], [set(each) for each in self._neighbours]
        rest.remaining, rest.steps = set(self.remaining), []
        rest._widths, rest._waiting = list(self._widths), list(self._waiting)
        guesses: dict[int, int] = {}
        rest._remove_all(start, guesses)
        return rest.steps, guesses

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        self._count += 1
        return self._count - 1

    def _remove_pairs(self, ends: Sequence[tuple[int, int]]) -> tuple[list[int], list[dict[int, int]]]:
        """Remove variables with at most two neighbours until every other has more; `remaining` are those.

        Return the table of each variable, and by variable and neighbour their common table, whose axis 0 is the variable.
        """
        count = len(self.sizes)
        costs_of = list(range(count))
        pairs: list[dict[int, int]] = [{} for _ in range(count)]

        def join(first: int, other: int, table: int) -> None:
            if other in pairs[first]:
                table = self._add(Sum(pairs[first][other], table))
            pairs[first][other] = table
            pairs[other][first] = self._add(Transpose(table))

        for table, (first, other) in enumerate(ends, start=count):
            if first == other:
                costs_of[first] = self._add(Sum(costs_of[first], self._add(Diagonal(table))))
            else:
                join(first, other, table)
        self.remaining = set(range(count))
        small = [at for at in range(count) if len(pairs[at]) < 3]
        while small:
            at = small.pop()
            if at not in self.remaining or len(pairs[at]) > 2 or prod([self.sizes[each] for each in (at, *pairs[at])]) > self.limit:
                continue
            self.remaining.discard(at)
            scope = tuple(sorted(pairs[at]))
            for other in scope:
                del pairs[other][at]
            table = self._add(Removal(at, scope, (costs_of[at], *[pairs[at][other] for other in scope])))
            if len(scope) == 2:
                join(*scope, table)
            elif scope:
                costs_of[scope[0]] = self._add(Sum(costs_of[scope[0]], table))
            small += [other for other in scope if len(pairs[other]) < 3]
        return costs_of, pairs

    def _remove_all(self, start: Sequence[int] | None, guesses: dict[int, int]) -> None:
        """Remove all variables; those of too large steps get their value of `start`. Without `start`, stop at the first of these."""
        while self.remaining:
            width, at = self._waiting[0]
            if at not in self.remaining or width != self._widths[at]:
                heapq.heappop(self._waiting)
                continue
            if width > self.limit:
                if start is None:
                    break
                widest = max(
                    (at, *self._neighbours[at]), key=lambda variable: (len(self._neighbours[variable]), self.sizes[variable], -variable)
                )
                self.remaining.discard(widest)
                guesses[widest] = start[widest]
                self._update_widths(self._guess(widest, start[widest]))
                continue
            heapq.heappop(self._waiting)
            self.remaining.discard(at)
            self._update_widths(self._remove(at))

    def _update_widths(self, changed: Iterable[int]) -> None:
        """Update the queue with the variables' present widths."""
        for other in changed:
            width = self._width(other)
            if width != self._widths[other]:
                self._widths[other] = width
                heapq.heappush(self._waiting, (width, other))

    def _put(self, scope: Scope, table: int) -> None:
        tables = self._tables[scope[0]]
        if scope in tables:
            table = self._add(Sum(tables[scope], table))
        for at in scope:
            self._tables[at][scope] = table
            if len(scope) > 1:
                self._neighbours[at].update(scope)
                self._neighbours[at].discard(at)

    def _width(self, at: int) -> int:
        width = self.sizes[at]
        for other in self._neighbours[at]:
            width *= self.sizes[other]
            if width > 1 << 60:
                break
        return width

    def _remove(self, at: int) -> Scope:
        """Remove a variable; return its neighbours."""
        scope = tuple(sorted(self._neighbours[at]))
        position = {variable: axis for axis, variable in enumerate(scope)}
        position[at] = -1
        tables, parts = [], []
        for table_scope, table in self._tables[at].items():
            tables.append(table)
            parts.append(tuple([position[variable] for variable in table_scope]))
            for other in table_scope:
                if other != at:
                    del self._tables[other][table_scope]
        self._tables[at] = {}
        for other in scope:
            self._neighbours[other].discard(at)
        least = self._add(Removal(at, scope, tuple(tables), tuple(parts)))
        if scope:
            self._put(scope, least)
        return scope

    def _guess(self, at: int, value: int) -> list[int]:
        """Give a variable a value; return its neighbours."""
        touched = sorted(self._neighbours[at])
        for scope, table in list(self._tables[at].items()):
            for other in scope:
                del self._tables[other][scope]
            rest = tuple(variable for variable in scope if variable != at)
            if rest:
                self._put(rest, self._add(Take(table, scope.index(at), value)))
        for other in touched:
            self._neighbours[other].discard(at)
        return touched
