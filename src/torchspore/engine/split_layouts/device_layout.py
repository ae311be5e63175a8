"""Layouts: which part of a value each device of a grid holds."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.translations import translate

Axes = tuple[int, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The distribution of a value over a grid of devices; along grid axes that the layout does not name, the devices store copies."""

    dim_axes: tuple[Axes, ...]
    """One entry for each dimension of the value: the grid axes that split it, the outermost first; () if it is not split.

    `((0, 2), ())` is a matrix whose rows are split along the axes 0 and 2 of the grid, and whose columns are not split.
    """
    partial: tuple[tuple[int, str], ...] = ()
    """Pairs of a grid axis along which each device holds a term only, and how the terms become the value: 'sum', 'avg', 'max', 'min'."""

    @property
    def is_unsplit(self) -> bool:
        """True if each device holds all of it."""
        return not self.partial and not any(self.dim_axes)

    @property
    def axes(self) -> frozenset[int]:
        """All grid axes that split it."""
        return frozenset(axis for axes in self.dim_axes for axis in axes)

    @property
    def terms(self) -> Mapping[int, str]:
        """Return by grid axis how the terms along it become the value."""
        return dict(self.partial)

    def settled(self) -> Layout:
        """Return the same layout without terms."""
        return Layout(self.dim_axes) if self.partial else self

    def counts(self, mesh: Mesh) -> Shape:
        """Return into how many parts each dimension is split."""
        return tuple(mesh.product(axes) for axes in self.dim_axes)

    def local(self, mesh: Mesh, shape: Sequence[int]) -> Shape:
        """Return the shape of the part that each device holds of a value of this shape."""
        return tuple(size // count for size, count in zip(shape, self.counts(mesh)))

    def fits(self, mesh: Mesh, shape: Sequence[int]) -> bool:
        """Return whether all parts are equally long."""
        return len(self.dim_axes) == len(shape) and all(size % count == 0 for size, count in zip(shape, self.counts(mesh)))

    def part(self, mesh: Mesh, shape: Sequence[int], rank: int) -> tuple[slice, ...]:
        """Return the slices of the value that a device holds."""
        slices = []
        for axes, size in zip(self.dim_axes, self.local(mesh, shape)):
            at = mesh.position(rank, axes)
            slices.append(slice(at * size, (at + 1) * size))
        return tuple(slices)

    def describe(self, mesh: Mesh) -> str:
        """Return a text for people: into how many parts each dimension is split, as strategies are written."""
        shown = "(" + ", ".join(map(str, self.counts(mesh))) + ("," if len(self.dim_axes) == 1 else "") + ")"
        partial = translate("{kind} over {count}")
        return shown + "".join(f" {partial.format(kind=kind, count=mesh.sizes[axis])}" for axis, kind in self.partial)


def unsplit(rank: int) -> Layout:
    """Return the layout of a value with `rank` dimensions of which each device holds all."""
    return Layout(((),) * rank)


def from_matrix(mesh: Mesh, matrix: tuple[int, ...], tensor_map: Sequence[int | tuple[int, ...]]) -> Layout:
    """Return the layout that MindSpore writes as a device matrix and a tensor map.

    A number of the map counts the matrix's axes from behind; -1 is none.
    """
    matrix_axes = mesh.axes_of(matrix)

    def axes(entry: int | tuple[int, ...]) -> Axes:
        if isinstance(entry, tuple):
            return tuple(axis for part in entry for axis in axes(part))
        return () if entry == -1 else matrix_axes[len(matrix) - 1 - entry]

    return Layout(tuple(map(axes, tensor_map)))


def by_counts(mesh: Mesh, counts: Sequence[int]) -> Layout:
    """Return the layout that splits each dimension into `counts` parts, along the grid's axes in order; ValueError if it does not exist."""
    matrix = (*counts, mesh.count // max(1, math.prod(counts)))
    return from_matrix(mesh, matrix, tuple(len(matrix) - 1 - axis for axis in range(len(counts))))
