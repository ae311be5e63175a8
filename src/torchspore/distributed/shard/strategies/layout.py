"""The layout of a Tensor on devices: a grid of devices, and for each axis of the Tensor the axes of the grid that split it."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from torchspore.base.text import message

Place = int | tuple[int, ...]
"""One entry of a tensor map: an axis of the grid counted from behind, -1 for none, or several of them, the major first."""


@dataclass(frozen=True)
class TensorLayout:
    """The layout of one Tensor as MindSpore writes it: `m` in `tensor_map` is axis `len(device_matrix) - 1 - m` of the grid, -1 none."""

    device_matrix: tuple[int, ...]
    tensor_map: tuple[Place, ...]

    def axes(self, dimension: int) -> tuple[int, ...]:
        """The axes of the grid, counted from the front, that cut an axis of the Tensor, the major first."""
        last = len(self.device_matrix) - 1
        return tuple(last - one for one in _places(self.tensor_map[dimension]))

    def cuts(self) -> tuple[int, ...]:
        """Into how many parts each axis of the Tensor is cut."""
        return tuple(prod(self.device_matrix[axis] for axis in self.axes(place)) for place in range(len(self.tensor_map)))

    def is_whole(self) -> bool:
        """Return whether every device holds all of it."""
        return all(cut == 1 for cut in self.cuts())

    def slice_shape(self, shape: Iterable[int]) -> tuple[int, ...]:
        """The shape of the part that one device holds. Raises ValueError where the layout does not divide the shape."""
        whole, cuts = tuple(shape), self.cuts()
        if len(whole) != len(cuts) or any(size % cut for size, cut in zip(whole, cuts)):
            raise ValueError(message(f"a Tensor of shape {whole} cut by {self}", f"a shape of {len(cuts)} axes that {cuts} divide"))
        return tuple(size // cut for size, cut in zip(whole, cuts))

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Which part of each axis the device with this number in the grid holds."""
        at = _unravelled(rank, self.device_matrix)
        found = []
        for dimension in range(len(self.tensor_map)):
            part = 0
            for axis in self.axes(dimension):
                part = part * self.device_matrix[axis] + at[axis]
            found.append(part)
        return tuple(found)

    def slices(self, rank: int, shape: Iterable[int]) -> tuple[slice, ...]:
        """The part of a whole Tensor that the device with this number in the grid holds. Raises ValueError as `slice_shape`."""
        sizes = self.slice_shape(shape)
        return tuple(slice(part * size, (part + 1) * size) for part, size in zip(self.coordinates(rank), sizes))

    def squeezed(self) -> TensorLayout:
        """The same layout without axes of the grid that have one device, as MindSpore's files have it."""
        kept = [axis for axis, size in enumerate(self.device_matrix) if size > 1]
        renamed = {axis: len(kept) - 1 - place for place, axis in enumerate(kept)}
        places = []
        for dimension in range(len(self.tensor_map)):
            left = tuple(renamed[axis] for axis in self.axes(dimension) if axis in renamed)
            places.append(left[0] if len(left) == 1 else left or -1)
        return TensorLayout(tuple(self.device_matrix[axis] for axis in kept), tuple(places))

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.device_matrix)) or '1'} devices, map {self.tensor_map}"


def _places(place: Place) -> tuple[int, ...]:
    return tuple(one for one in ((place,) if isinstance(place, int) else place) if one != -1)


def _unravelled(rank: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    found = []
    for size in reversed(sizes):
        rank, at = divmod(rank, size)
        found.append(at)
    return tuple(reversed(found))


def whole(rank: int, devices: int) -> TensorLayout:
    """The layout of a Tensor of `rank` axes that each of the devices holds whole."""
    return TensorLayout((devices,), (-1,) * rank)


def read(layout: Any) -> TensorLayout:
    """The layout that a `mindspore.Layout` stands for; an axis named interleaved_parallel cuts on one device, and so not at all here."""
    if isinstance(layout, TensorLayout):
        return layout
    facts = layout.to_dict()
    devices, places = tuple(facts["device_matrix"]), tuple(facts["tensor_map"])
    if not facts.get("interleaved_parallel"):
        return TensorLayout(devices, places)
    dropped = len(devices) - 1 - tuple(facts["alias_name"]).index("interleaved_parallel")
    kept = tuple(size for place, size in enumerate(reversed(devices)) if place != dropped)[::-1]

    def renamed(place: Place) -> Place:
        left = tuple(_without(_places(place), dropped))
        return left[0] if len(left) == 1 else left or -1

    return TensorLayout(kept, tuple(map(renamed, places)))


def _without(places: Iterable[int], dropped: int) -> Iterator[int]:
    return (one - (one > dropped) for one in places if one != dropped)
