"""The layout of a Tensor on devices: a grid of devices, and for each axis of the Tensor the axes of the grid that split it."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from torchspore.base.text import message

MapEntry = int | tuple[int, ...]
"""An entry of a tensor map: an axis of the grid counted from the last, -1 for none, or several axes, the major first."""


@dataclass(frozen=True)
class TensorLayout:
    """The layout of one Tensor as MindSpore writes it: `m` in `tensor_map` is axis `len(device_matrix) - 1 - m` of the grid, -1 none."""

    device_matrix: tuple[int, ...]
    tensor_map: tuple[MapEntry, ...]

    def axes(self, dimension: int) -> tuple[int, ...]:
        """Return the axes of the grid, counted from the front, that split an axis of the Tensor, the major first."""
        last = len(self.device_matrix) - 1
        return tuple(last - entry for entry in _entries_of(self.tensor_map[dimension]))

    def cuts(self) -> tuple[int, ...]:
        """Return the number of parts of each axis of the Tensor."""
        return tuple(prod(self.device_matrix[axis] for axis in self.axes(dimension)) for dimension in range(len(self.tensor_map)))

    def is_unsplit(self) -> bool:
        """Return whether every device stores the full Tensor."""
        return all(cut == 1 for cut in self.cuts())

    def slice_shape(self, shape: Iterable[int]) -> tuple[int, ...]:
        """Return the shape of the part that one device stores. Raises ValueError if the layout does not divide the shape."""
        slice_shape, cuts = tuple(shape), self.cuts()
        if len(slice_shape) != len(cuts) or any(size % cut for size, cut in zip(slice_shape, cuts)):
            raise ValueError(message(f"a Tensor of shape {slice_shape} split by {self}", f"a shape of {len(cuts)} axes that {cuts} divide"))
        return tuple(size // cut for size, cut in zip(slice_shape, cuts))

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Return the index of the part of each axis on the device with this number in the grid."""
        at = _unravelled(rank, self.device_matrix)
        dims = []
        for dimension in range(len(self.tensor_map)):
            part = 0
            for axis in self.axes(dimension):
                part = part * self.device_matrix[axis] + at[axis]
            dims.append(part)
        return tuple(dims)

    def slices(self, rank: int, shape: Iterable[int]) -> tuple[slice, ...]:
        """Return the part of a full Tensor that the device with this number in the grid stores. Raises ValueError as `slice_shape` does."""
        sizes = self.slice_shape(shape)
        return tuple(slice(part * size, (part + 1) * size) for part, size in zip(self.coordinates(rank), sizes))

    def squeezed(self) -> TensorLayout:
        """Return the layout without axes of the grid that have one device, as in MindSpore's files."""
        sizes = [axis for axis, size in enumerate(self.device_matrix) if size > 1]
        renamed = {axis: len(sizes) - 1 - position for position, axis in enumerate(sizes)}
        tensor_map = []
        for dimension in range(len(self.tensor_map)):
            remaining_axes = tuple(renamed[axis] for axis in self.axes(dimension) if axis in renamed)
            tensor_map.append(remaining_axes[0] if len(remaining_axes) == 1 else remaining_axes or -1)
        return TensorLayout(tuple(self.device_matrix[axis] for axis in sizes), tuple(tensor_map))

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.device_matrix)) or '1'} devices, map {self.tensor_map}"


def _entries_of(entry: MapEntry) -> tuple[int, ...]:
    return tuple(axis for axis in ((entry,) if isinstance(entry, int) else entry) if axis != -1)


def _unravelled(rank: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    dims = []
    for size in reversed(sizes):
        rank, at = divmod(rank, size)
        dims.append(at)
    return tuple(reversed(dims))


def replicated_layout(rank: int, devices: int) -> TensorLayout:
    """Return the layout of a Tensor of `rank` axes that each device stores in full."""
    return TensorLayout((devices,), (-1,) * rank)


def read(layout: Any) -> TensorLayout:
    """Return the layout that a `mindspore.Layout` describes; an axis named interleaved_parallel splits on one device, and so not at all
    here."""
    if isinstance(layout, TensorLayout):
        return layout
    facts = layout.to_dict()
    devices, tensor_map = tuple(facts["device_matrix"]), tuple(map(_without_none, facts["tensor_map"]))
    if not facts.get("interleaved_parallel"):
        return TensorLayout(devices, tensor_map)
    dropped = len(devices) - 1 - tuple(facts["alias_name"]).index("interleaved_parallel")
    sizes = tuple(size for position, size in enumerate(reversed(devices)) if position != dropped)[::-1]

    def renamed(renamed_entry: MapEntry) -> MapEntry:
        remaining_axes = tuple(_without(_entries_of(renamed_entry), dropped))
        return remaining_axes[0] if len(remaining_axes) == 1 else remaining_axes or -1

    return TensorLayout(sizes, tuple(map(renamed, tensor_map)))


def _without_none(entry: MapEntry) -> MapEntry:
    """Return the entry without the -1 that 'None' stands for in a tuple of names."""
    if isinstance(entry, int):
        return entry
    axes = _entries_of(entry)
    return axes[0] if len(axes) == 1 else axes or -1


def _without(entries: Iterable[int], dropped: int) -> Iterator[int]:
    return (axis - (axis > dropped) for axis in entries if axis != dropped)
