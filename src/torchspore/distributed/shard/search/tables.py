"""The tables of an elimination, each computed once: layers repeat, and a step whose tables all occurred before takes the earlier result."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

_SMALL = 8192
"""A smaller table is computed at once; a larger one value by value of the variable, so that the intermediate sums fit into the cache."""


@dataclass
class Arrays:
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

    def diagonal(self, number: int) -> int:
        """Return the number of the diagonal of a table whose two variables are the same."""
        return self.add(np.diagonal(self.arrays[number]).copy())

    def take(self, number: int, axis: int, value: int) -> int:
        """Return the number of a table in which one variable has a value."""
        return self.add(self.arrays[number].take(value, axis=axis))

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

    def least(self, costs: int) -> tuple[np.ndarray, int]:
        """Remove a variable without neighbours: return its best value, and the number of the least of its costs."""
        return np.asarray(self.arrays[costs].argmin()), self.add(np.asarray(self.arrays[costs].min()))

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
