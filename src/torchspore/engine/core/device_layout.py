"""Which part of a value each device holds."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchspore.engine.core.device_mesh import Mesh

Axes = tuple[int, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """For each dimension the axes of the grid that cut it, the one that counts most first; what it is whole on is copied along the others.

    `partial` names the axes along which each device holds a term only, and how terms become the value: 'sum', 'avg', 'max' or 'min'.
    """

    cuts: tuple[Axes, ...]
    partial: tuple[tuple[int, str], ...] = ()

    @property
    def is_unsplit(self) -> bool:
        """True if each device holds all of it."""
        return not self.partial and not any(self.cuts)

    @property
    def axes(self) -> frozenset[int]:
        """The axes that cut it."""
        return frozenset(axis for axes in self.cuts for axis in axes)

    @property
    def terms(self) -> Mapping[int, str]:
        """By axis how the terms along it become the value."""
        return dict(self.partial)

    def settled(self) -> Layout:
        """The same cuts, without terms."""
        return Layout(self.cuts) if self.partial else self

    def counts(self, mesh: Mesh) -> Shape:
        """Into how many parts each dimension is cut."""
        return tuple(mesh.product(axes) for axes in self.cuts)

    def local(self, mesh: Mesh, shape: Sequence[int]) -> Shape:
        """The shape that each device holds of a value of this shape."""
        return tuple(size // count for size, count in zip(shape, self.counts(mesh)))

    def fits(self, mesh: Mesh, shape: Sequence[int]) -> bool:
        """Return whether all parts are equally long."""
        return len(self.cuts) == len(shape) and all(size % count == 0 for size, count in zip(shape, self.counts(mesh)))

    def part(self, mesh: Mesh, shape: Sequence[int], rank: int) -> tuple[slice, ...]:
        """Where in the whole value the part of a device lies."""
        slices = []
        for axes, size in zip(self.cuts, self.local(mesh, shape)):
            at = mesh.position(rank, axes)
            slices.append(slice(at * size, (at + 1) * size))
        return tuple(slices)

    def describe(self, mesh: Mesh) -> str:
        """For people: into how many parts each dimension is cut, as strategies are written."""
        shown = "(" + ", ".join(map(str, self.counts(mesh))) + ("," if len(self.cuts) == 1 else "") + ")"
        return shown + "".join(f" {kind} over {mesh.sizes[axis]}" for axis, kind in self.partial)


def unsplit(rank: int) -> Layout:
    """The layout of a value with so many dimensions of which each device holds all."""
    return Layout(((),) * rank)


def from_matrix(mesh: Mesh, matrix: tuple[int, ...], tensor_map: Sequence[int | tuple[int, ...]]) -> Layout:
    """The layout that MindSpore writes as a device matrix and a tensor map: a number counts the matrix's axes from behind, -1 is none."""
    matrix_axes = mesh.axes_of(matrix)

    def axes(entry: int | tuple[int, ...]) -> Axes:
        if isinstance(entry, tuple):
            return tuple(axis for part in entry for axis in axes(part))
        return () if entry == -1 else matrix_axes[len(matrix) - 1 - entry]

    return Layout(tuple(map(axes, tensor_map)))


def by_counts(mesh: Mesh, counts: Sequence[int]) -> Layout:
    """The layout that cuts each dimension into so many parts, along the grid's axes in order. Raises ValueError where the grid has none."""
    matrix = (*counts, mesh.count // max(1, math.prod(counts)))
    return from_matrix(mesh, matrix, tuple(len(matrix) - 1 - axis for axis in range(len(counts))))
