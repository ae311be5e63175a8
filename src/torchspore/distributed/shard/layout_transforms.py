"""Steps that change the layout of stored parts of a Tensor: gathers, slices and reshapes of each device, by MindSpore's names.

A layout is (device matrix, tensor map, full shape), and each device performs one list of steps: ('Reshape', shape),
('AllConcat', [*ranks, axis]) and ('StridedSlice', [*begins, *ends, *strides]). Two layouts are first written on one grid of devices and one
full shape, in which each axis of the grid splits at most one dimension. The order of the steps is MindSpore 2.10's.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, prod
from typing import Any

from torchspore.base.text import message

Step = tuple[str, list[int]]
_UNSPLIT = -1


def axis_lists(tensor_map: Sequence[Any]) -> list[list[int]]:
    """Return the axes of the grid that split each dimension, the major first; axes are counted from the last one."""
    return [list(entry) if isinstance(entry, (list, tuple)) else [] if entry == _UNSPLIT else [entry] for entry in tensor_map]


def cuts_of(matrix: Sequence[int], tensor_map: Sequence[Any]) -> list[int]:
    """Return into how many parts each dimension is split."""
    return [prod(matrix[len(matrix) - 1 - axis] for axis in axes if axis != _UNSPLIT) for axes in axis_lists(tensor_map)]


def _common_sizes(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return the coarsest sizes of which the sizes of both sequences, with equal products, are products of neighbours."""
    strides = sorted({prod(sizes[at:]) for sizes in (first, second) for at in range(len(sizes) + 1)})
    for smaller, larger in pairwise(strides):
        if larger % smaller:
            raise ValueError(message(f"layouts of sizes {tuple(first)} and {tuple(second)}", "sizes that divide each other"))
    return [larger // smaller for smaller, larger in pairwise(strides)][::-1]


def _parts(sizes: Sequence[int], finer: Sequence[int]) -> list[list[int]]:
    """Return for each size the positions of the finer sizes whose product it is."""
    positions, remaining = [], list(range(len(finer)))
    for size in sizes:
        part: list[int] = []
        while size > 1:
            part.append(remaining.pop(0))
            size //= finer[part[-1]]
        positions.append(part)
    return positions


class _Grid:
    """Two layouts on one grid and one full shape."""

    def __init__(self, source: Sequence[Any], target: Sequence[Any]) -> None:
        if prod(source[0]) != prod(target[0]) or prod(source[2]) != prod(target[2]):
            wrote = f"layouts {source} and {target}"
            raise ValueError(message(wrote, "as many devices and as many elements"))
        self.sizes = _common_sizes(source[0], target[0])
        layouts = [(source, source[2]), (target, target[2])]
        while True:
            dimensions_of_layouts = [self._dimensions(layout) for layout, _ in layouts]
            shape = _common_sizes(*([size for size, _ in dimensions] for dimensions in dimensions_of_layouts))
            finer = self._finer(dimensions_of_layouts, shape)
            if finer == self.sizes:
                break
            self.sizes = finer
        self.shape = shape
        self.source, self.target = (self._map(dimensions) for dimensions in dimensions_of_layouts)

    def _axes(self, layout: Sequence[Any]) -> list[list[int]]:
        """Return the axes of the common grid that split each dimension, as positions from the front."""
        parts = _parts(layout[0], self.sizes)
        return [[at for axis in axes for at in parts[len(parts) - 1 - axis]] for axes in axis_lists(layout[1])]

    def _dimensions(self, layout: Sequence[Any]) -> list[tuple[int, int]]:
        """Return dimensions with at most one axis each, as (length, axis)."""
        dimensions: list[tuple[int, int]] = []
        for length, axes in zip(layout[2], self._axes(layout)):
            for axis in axes[:-1]:
                dimensions.append((self.sizes[axis], axis))
                length //= self.sizes[axis]
            dimensions.append((length, axes[-1] if axes else _UNSPLIT))
        return dimensions

    def _finer(self, dimensions_of_layouts: Sequence[list[tuple[int, int]]], shape: list[int]) -> list[int]:
        """Return the sizes of the grid, with each axis divided that is longer than the first common dimension that it splits."""
        for dimensions in dimensions_of_layouts:
            for (_, axis), positions in zip(dimensions, _parts([size for size, _ in dimensions], shape)):
                if axis != _UNSPLIT and positions and shape[positions[0]] % self.sizes[axis]:
                    first = gcd(shape[positions[0]], self.sizes[axis])
                    if first in (1, self.sizes[axis]):
                        raise ValueError(message(f"a dimension {shape[positions[0]]} on {self.sizes[axis]} devices", "parts that divide"))
                    return [*self.sizes[:axis], first, self.sizes[axis] // first, *self.sizes[axis + 1:]]
        return self.sizes

    def _map(self, dimensions: Sequence[tuple[int, int]]) -> list[int]:
        tensor_map = [_UNSPLIT] * len(self.shape)
        for (_, axis), positions in zip(dimensions, _parts([size for size, _ in dimensions], self.shape)):
            if axis != _UNSPLIT and positions:
                tensor_map[positions[0]] = axis
        return tensor_map

    def part(self, tensor_map: Sequence[int]) -> list[int]:
        """Return the shape of a device's part."""
        return [size // (1 if axis == _UNSPLIT else self.sizes[axis]) for size, axis in zip(self.shape, tensor_map)]

    def coordinate(self, position: int, axis: int) -> int:
        """Return the position of a device along an axis."""
        return position // prod(self.sizes[axis + 1:]) % self.sizes[axis]

    def group(self, position: int, axis: int) -> list[int]:
        """Return the positions of the devices that differ from a device along an axis alone."""
        stride = prod(self.sizes[axis + 1:])
        first = position - self.coordinate(position, axis) * stride
        return [first + at * stride for at in range(self.sizes[axis])]


class _Changes:
    """The changes from one tensor map to another: ('join', dimension, axis) and ('take', dimension, axis)."""

    def __init__(self, source: Sequence[int], target: Sequence[int]) -> None:
        self._target = target
        self._pending = {at: axis for at, axis in enumerate(source) if axis != target[at]}
        self.steps: list[tuple[str, int, int]] = []
        while self._pending:
            count = len(self.steps)
            self._take_and_move()
            self._join()
            if count == len(self.steps) and self._pending:                  # axes change places in a circle
                at, axis = next(iter(self._pending.items()))
                self.steps.append(("join", at, axis))
                self._pending[at] = _UNSPLIT

    def _take_and_move(self) -> None:
        count = -1
        while count != len(self._pending):
            count = len(self._pending)
            for at in list(self._pending):
                if self._pending[at] == _UNSPLIT and self._target[at] not in self._pending.values():
                    self._take(at)
            moved = -1
            while moved != len(self._pending):
                moved = len(self._pending)
                self._move()

    def _take(self, at: int) -> None:
        self.steps.append(("take", at, self._target[at]))
        del self._pending[at]

    def _move(self) -> None:
        """Move axes between dimensions: each is joined where it is, and taken where it goes."""
        for at in list(self._pending):
            if at not in self._pending:
                continue
            if self._pending[at] == self._target[at]:
                del self._pending[at]
            elif self._pending[at] == _UNSPLIT and self._target[at] in self._pending.values():
                before = next(other for other, axis in self._pending.items() if axis == self._target[at])
                self.steps.append(("join", before, self._target[at]))
                self._take(at)
                self._pending[before] = _UNSPLIT

    def _join(self) -> None:
        for at in list(self._pending):
            if self._pending[at] != _UNSPLIT and self._pending[at] not in self._target:
                self.steps.append(("join", at, self._pending[at]))
                if self._target[at] == _UNSPLIT:
                    del self._pending[at]
                else:
                    self._pending[at] = _UNSPLIT


def steps(source: Sequence[Any], target: Sequence[Any], devices: Sequence[int], rank: int) -> list[Step]:
    """Return the steps of a device that change its part from one layout to another. Raises ValueError for layouts that do not fit."""
    grid, position = _Grid(source, target), list(devices).index(rank)
    part, result = grid.part(grid.source), []
    before = [size // cut for size, cut in zip(source[2], cuts_of(source[0], source[1]))]
    after = [size // cut for size, cut in zip(target[2], cuts_of(target[0], target[1]))]
    changes = _Changes(grid.source, grid.target).steps
    if part != before and changes:
        result.append(("Reshape", list(part)))
    for kind, at, axis in changes:
        if kind == "join":
            part[at] *= grid.sizes[axis]
            result.append(("AllConcat", [*(devices[other] for other in grid.group(position, axis)), at]))
        else:
            part[at] //= grid.sizes[axis]
            begin = [grid.coordinate(position, axis) * part[at] if axis_at == at else 0 for axis_at in range(len(part))]
            result.append(("StridedSlice", [*begin, *(first + size for first, size in zip(begin, part)), *(1,) * len(part)]))
    if after != (part if changes else before):
        result.append(("Reshape", after))
    return result


def steps_by_rank(source: Sequence[Any], target: Sequence[Any], devices: Sequence[int], rank: int) -> dict[int, list[Step]]:
    """Return the steps of a device, and of each device whose part it needs, by rank."""
    steps_by_rank, pending = {rank: steps(source, target, devices, rank)}, [rank]
    while pending:
        for kind, numbers in steps_by_rank[pending.pop(0)]:
            for other in numbers[:-1] if kind == "AllConcat" else ():
                if other not in steps_by_rank:
                    steps_by_rank[other] = steps(source, target, devices, other)
                    pending.append(other)
    return steps_by_rank


def ordered_steps(steps_by_rank: dict[int, list[Step]], rank: int) -> list[tuple[int, int, Step]]:
    """Return (rank, number, step) in the reversed order of execution: the last step of `rank` is first.

    Before a gather, all its devices perform the steps with lower numbers.
    """
    result: list[tuple[int, int, Step]] = []
    ranks = [rank]
    for number in reversed(range(len(steps_by_rank[rank]))):
        needed: list[int] = []
        for at in ranks:
            step = steps_by_rank[at][number]
            result.append((at, number, step))
            needed.extend(step[1][:-1] if step[0] == "AllConcat" else [at])
        ranks = list(dict.fromkeys(needed))
    return result


def optimizer_layout(
    matrix: Sequence[int], tensor_map: Sequence[Any], size: int, shape: Sequence[int],
) -> tuple[list[int], list[Any], list[int]]:
    """Return a layout in which the optimizer splits axis 0 once more among `size` devices that store equal parts; -1 for all of them.

    The rows become dimensions: those of the strategy, and one for each axis of the grid that the optimizer uses, the lowest free ones.
    Fewer free devices than `size` are all used. Raises ValueError if there are none, or if rows do not divide.
    """
    sizes, axes = list(matrix), axis_lists(tensor_map)
    used = {axis for entry in axes for axis in entry}
    free = [axis for axis in range(len(sizes)) if axis not in used]
    available = prod(sizes[len(sizes) - 1 - axis] for axis in free)
    cut = cuts_of(matrix, tensor_map)[0]
    if size == -1 and available == 1:
        return sizes, list(tensor_map), list(shape)
    size = available if size == -1 else min(size, available)
    if available == 1 or available % size or shape[0] % cut:
        wrote = f"an optimizer that splits {shape[0]} rows, {cut} parts on {tuple(matrix)} devices, among {size}"
        raise ValueError(message(wrote, f"a size that divides {available}, and rows that {cut} divides"))
    chosen: list[int] = []
    for axis in free:
        length = sizes[len(sizes) - 1 - axis]
        if size == 1:
            break
        if length > size:                                        # a part of an axis: the minor one is the optimizer's
            sizes[len(sizes) - 1 - axis:len(sizes) - axis] = [length // size, size]
            axes = [[other + (other > axis) for other in entry] for entry in axes]
            length = size
        if length > 1:
            chosen.insert(0, axis)
            size //= length
    numbers = [entry[0] if len(entry) == 1 else entry or _UNSPLIT for entry in axes]
    rows = [sizes[len(sizes) - 1 - axis] for axis in chosen[:-1]]
    return sizes, [numbers[0], *chosen, *numbers[1:]], [cut, *rows, shape[0] // (cut * prod(rows)), *shape[1:]]
