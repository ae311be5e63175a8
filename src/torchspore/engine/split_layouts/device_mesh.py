"""The grid of N devices: the coarsest grid that contains the device matrices of all strategies."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.base.text import message


@dataclass(frozen=True)
class Mesh:
    """Devices 0 to N - 1 in row-major order; `sizes` are the lengths of the grid's axes, none of them 1."""

    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of devices."""
        return math.prod(self.sizes)

    def product(self, axes: Iterable[int]) -> int:
        """Return the number of devices along these axes together."""
        return math.prod(self.sizes[axis] for axis in axes)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Return the coordinates of a device on each axis."""
        ranks = []
        for size in reversed(self.sizes):
            rank, at = divmod(rank, size)
            ranks.append(at)
        return tuple(reversed(ranks))

    def position(self, rank: int, axes: Iterable[int]) -> int:
        """The number of a device among those along these axes, the first of which counts most."""
        at, number = self.coordinates(rank), 0
        for axis in axes:
            number = number * self.sizes[axis] + at[axis]
        return number

    def group(self, rank: int, axes: Iterable[int]) -> tuple[int, ...]:
        """The devices that differ from `rank` on these axes alone, in order of their positions."""
        at, strides, below = list(self.coordinates(rank)), [], 1
        for size in reversed(self.sizes):
            strides.append(below)
            below *= size
        strides.reverse()
        axes = tuple(axes)
        first = sum(0 if axis in axes else coordinate * strides[axis] for axis, coordinate in enumerate(at))
        ranges = [range(0, self.sizes[axis] * strides[axis], strides[axis]) for axis in axes]
        return tuple(first + sum(steps) for steps in itertools.product(*ranges))

    def extent(self, axes: Iterable[int]) -> int:
        """Return the size of the aligned block of consecutive devices in which each group along these axes lies."""
        return max((math.prod(self.sizes[axis:]) for axis in axes), default=1)

    def axes_of(self, matrix: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return for each axis of a device matrix the axes of this grid that form it. Raises ValueError if it does not fit the grid."""
        axes_found, position = [], 0
        for size in matrix:
            start, reached = position, 1
            while reached < size and position < len(self.sizes):
                reached *= self.sizes[position]
                position += 1
            if reached != size:
                raise ValueError(message(f"a device matrix {matrix}", f"one that fits into the grid {self.sizes}"))
            axes_found.append(tuple(range(start, position)))
        return tuple(axes_found)


def mesh_of(count: int, matrices: Iterable[tuple[int, ...]] = ()) -> Mesh:
    """Return the coarsest grid of `count` devices that contains all `matrices`.

    Raises ValueError if none exists: (2, 3) and (3, 2) of six devices do not fit one grid.
    """
    bounds: dict[int, tuple[int, ...]] = {count: (count,), 1: (count,)}
    for matrix in matrices:
        below = count
        if math.prod(matrix) != count:
            raise ValueError(message(f"a device matrix {matrix}", f"one of {count} devices"))
        for size in matrix:
            below //= size
            bounds.setdefault(below, matrix)
    steps = sorted(bounds, reverse=True)
    for above, below in itertools.pairwise(steps):
        if above % below:
            raise ValueError(message(
                f"the device matrices {bounds[above]} and {bounds[below]} of two operators", "matrices that fit into one grid",
                hint=f"split by the same numbers in the same order, for example both as {bounds[above]}",
            ))
    return Mesh(tuple(above // below for above, below in itertools.pairwise(steps)))
