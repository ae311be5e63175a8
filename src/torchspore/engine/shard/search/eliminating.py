"""The least sum of tables over variables, exactly: variables go one after the other, what is left of each is a table of its neighbours.

Where such a table would be too wide a variable is given a value that is known to be good; the result is then no worse than that.
"""
from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LIMIT = 1 << 15
"""The most entries that a table may have."""
Table = tuple[tuple[int, ...], np.ndarray]


@dataclass(frozen=True)
class Solved:
    """A value for each variable, their sum, how many entries tables had, and how many variables were given a value beforehand."""

    values: list[int]
    total: float
    entries: int
    guessed: int


class _Elimination:
    def __init__(self, unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], start: Sequence[int], limit: int) -> None:
        self.sizes = [len(one) for one in unary]
        self.start, self.limit = start, limit
        self.tables: list[dict[tuple[int, ...], np.ndarray]] = [{} for _ in unary]
        self.neighbours: list[set[int]] = [set() for _ in unary]
        self.values = [-1] * len(unary)
        self.entries = self.guessed = 0
        for at, one in enumerate(unary):
            self._put((at,), np.asarray(one, dtype=np.float64))
        for one_at, other_at, costs in edges:
            if one_at == other_at:
                self._put((one_at,), np.diagonal(costs))
            elif one_at < other_at:
                self._put((one_at, other_at), costs)
            else:
                self._put((other_at, one_at), costs.T)

    def _put(self, scope: tuple[int, ...], table: np.ndarray) -> None:
        for at in scope:
            own = self.tables[at]
            own[scope] = own[scope] + table if scope in own else table
            self.neighbours[at].update(other for other in scope if other != at)

    def _width(self, at: int) -> int:
        width = self.sizes[at]
        for other in self.neighbours[at]:
            width *= self.sizes[other]
            if width > 1 << 60:
                break
        return width

    def run(self) -> list[int]:
        steps: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        left = set(range(len(self.sizes)))
        waiting = [(self._width(at), at) for at in sorted(left)]
        heapq.heapify(waiting)
        while left:
            width, at = heapq.heappop(waiting)
            if at not in left:
                continue
            now = self._width(at)
            if now != width:
                heapq.heappush(waiting, (now, at))
                continue
            if now > self.limit:
                widest = max((at, *self.neighbours[at]), key=lambda one: (len(self.neighbours[one]), self.sizes[one], -one))
                for other in self._guess(widest):
                    heapq.heappush(waiting, (self._width(other), other))
                left.discard(widest)
                if widest != at:
                    heapq.heappush(waiting, (self._width(at), at))
                continue
            left.discard(at)
            steps.append((at, *self._eliminate(at)))
            for other in steps[-1][1]:
                heapq.heappush(waiting, (self._width(other), other))
        for at, scope, best in reversed(steps):
            self.values[at] = int(best[tuple(self.values[other] for other in scope)])
        return self.values

    def _eliminate(self, at: int) -> tuple[tuple[int, ...], np.ndarray]:
        """Takes a variable out; gives its best value for each of its neighbours' values."""
        scope = tuple(sorted(self.neighbours[at]))
        full = (*scope, at)
        total = np.zeros([self.sizes[one] for one in full])
        for own, table in list(self.tables[at].items()):
            order = sorted(range(len(own)), key=lambda place: full.index(own[place]))
            shape = [self.sizes[one] if one in own else 1 for one in full]
            total = total + table.transpose(order).reshape(shape)
            for other in own:
                del self.tables[other][own]
        self.entries += total.size
        for other in scope:
            self.neighbours[other].discard(at)
        best = total.argmin(-1)
        if scope:
            self._put(scope, total.min(-1))
        return scope, best

    def _guess(self, at: int) -> list[int]:
        """Gives a variable the value that is known; gives its neighbours."""
        self.guessed += 1
        self.values[at] = value = self.start[at]
        touched = sorted(self.neighbours[at])
        for own, table in list(self.tables[at].items()):
            for other in own:
                del self.tables[other][own]
            rest = tuple(one for one in own if one != at)
            if rest:
                self._put(rest, table.take(value, axis=own.index(at)))
        for other in touched:
            self.neighbours[other].discard(at)
        return touched


def total_of(unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], values: Sequence[int]) -> float:
    """The sum for given values."""
    found = sum(float(one[value]) for one, value in zip(unary, values))
    return found + sum(float(costs[values[one], values[other]]) for one, other, costs in edges)


def solve(
    unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], start: Sequence[int], limit: int = LIMIT,
) -> Solved:
    """The values with the least sum; `start` are values whose sum is known to be finite."""
    run = _Elimination(unary, edges, start, limit)
    values = run.run()
    return Solved(values, total_of(unary, edges, values), run.entries, run.guessed)
