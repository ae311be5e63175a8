"""Parameters that strategy files split among processes: the part of each process, merging of parts, splitting of full values."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from torchspore.base.text import message
from torchspore.distributed.shard.strategy_file import StoredLayout, StrategyFile, stage_of

if TYPE_CHECKING:
    from torchspore.distributed.shard.strategy_validation.layout import TensorLayout

Shape = tuple[int, ...]


@dataclass(frozen=True)
class ParameterSharding:
    """The sharding of a Parameter among the processes of its pipeline stages."""

    layout: StoredLayout
    stages: tuple[int, ...] = (0,)

    @property
    def devices(self) -> int:
        """The number of processes of a stage."""
        return max(1, prod(self.layout.dev_matrix))

    def holds(self, rank: int) -> bool:
        """Return whether the process has a part of it."""
        return rank // self.devices in self.stages

    def ranks(self) -> range:
        """Return the processes of the first stage that has it."""
        start = self.stages[0] * self.devices
        return range(start, start + self.devices)

    def tensor(self, shape: Shape) -> TensorLayout:
        """Return the layout of a Tensor whose parts have this shape. Raises ValueError if it has other axes."""
        from torchspore.distributed.shard.strategy_validation.layout import TensorLayout

        return TensorLayout(self.layout.dev_matrix or (1,), _nested(self.layout, shape))

    def _check_even(self, name: str) -> None:
        if self.layout.rows:
            raise ValueError(message(f"{name!r} with rows {self.layout.rows}", "a Parameter of which each process has as many rows"))

    def _in_group(self, rank: int) -> int:
        """Return the index of a process among those that share its part for the optimizer."""
        return (rank % self.devices) // self.layout.opt_weight_shard_step % self.layout.opt_weight_shard_size

    @property
    def is_shared_out(self) -> bool:
        """True if the optimizer additionally splits axis 0."""
        return self.layout.opt_weight_shard_size > 1 and self.layout.opt_weight_shard_step > 0

    def merged(self, name: str, parts: Mapping[int, np.ndarray]) -> np.ndarray:
        """Merge the parts of the processes. Raises ValueError if one is missing or has another shape."""
        self._check_even(name)
        shapes = {part.shape for part in parts.values()}
        if len(shapes) != 1:
            raise ValueError(message(f"parts of {name!r} of shapes {', '.join(map(str, sorted(shapes)))}", "parts of one shape"))
        (shape,) = shapes
        layout = self.tensor(shape)
        shared = self.layout.opt_weight_shard_size if self.is_shared_out else 1
        part_shape = (shape[0] * shared, *shape[1:]) if shared > 1 else shape
        array = np.empty([size * cut for size, cut in zip(part_shape, layout.cuts())], next(iter(parts.values())).dtype)
        missing = {(corner, index) for corner in np.ndindex(*layout.cuts()) for index in range(shared)}
        for rank, part in parts.items():
            if not self.holds(rank):
                continue
            corner, index = layout.coordinates(rank % self.devices), self._in_group(rank) if shared > 1 else 0
            at = [slice(part * size, (part + 1) * size) for part, size in zip(corner, part_shape)]
            if shared > 1:
                at[0] = slice(at[0].start + index * shape[0], at[0].start + (index + 1) * shape[0])
            array[tuple(at)] = part
            missing.discard((corner, index))
        if missing:
            expected = f"the parts of all {self.devices} processes that hold it"
            raise ValueError(message(f"{name!r} of processes {_describe(parts)}", expected))
        return array

    def part(self, name: str, full: np.ndarray, rank: int) -> np.ndarray:
        """Return the part of one process. Raises ValueError if the sharding does not divide the shape."""
        self._check_even(name)
        layout = self.tensor(full.shape)
        cuts = layout.cuts()
        shared = self.layout.opt_weight_shard_size if self.is_shared_out else 1
        along = (cuts[0] * shared, *cuts[1:]) if shared > 1 and cuts else cuts
        if any(size % cut for size, cut in zip(full.shape, along)):
            raise ValueError(message(f"{name!r} of shape {full.shape} split by {along}", "numbers of slices that divide the shape"))
        part = full[layout.slices(rank % self.devices, full.shape)]
        return np.split(part, shared)[self._in_group(rank)] if shared > 1 else part


def _describe(parts: Mapping[int, object]) -> str:
    return ", ".join(map(str, sorted(parts)))


def _nested(layout: StoredLayout, shape: Shape) -> tuple[int | tuple[int, ...], ...]:
    """Return the tensor map with one entry for each axis of a Tensor or of its part of this shape."""
    if not shape:                                # files have one entry for a scalar, which is not split
        return ()
    if layout.nested is not None and len(layout.nested) == len(shape):
        return tuple(group or -1 for group in layout.nested)
    if len(layout.tensor_map) == len(shape):
        return layout.tensor_map
    if len(shape) == 1:
        return (tuple(axis for axis in layout.tensor_map if axis != -1) or -1,)
    if layout.tensor_shape is None or len(layout.tensor_shape) != len(layout.tensor_map):
        raise ValueError(message(f"a Parameter of shape {shape} split by {layout.tensor_map}", "an entry for each of its axes"))
    for lengths in (layout.tensor_shape, _local(layout)):
        grouped = _grouped(layout.tensor_map, lengths, shape)
        if grouped is not None:
            return grouped
    raise ValueError(message(f"a Parameter of shape {shape} split by {layout.tensor_map}", f"axes that {layout.tensor_shape} is made of"))


def _local(layout: StoredLayout) -> Shape:
    sizes = layout.dev_matrix
    pairs = zip(layout.tensor_shape or (), layout.tensor_map)
    lengths = [size // (1 if device_axis == -1 else sizes[len(sizes) - 1 - device_axis]) for size, device_axis in pairs]
    if lengths and layout.opt_weight_shard_size > 1:
        first = next((at for at, size in enumerate(lengths) if size % layout.opt_weight_shard_size == 0 and size > 1), 0)
        lengths[first] //= layout.opt_weight_shard_size
    return tuple(lengths)


def _grouped(tensor_map: tuple[int, ...], lengths: Shape, shape: Shape) -> tuple[int | tuple[int, ...], ...] | None:
    """Return the indices of the adjacent axes of `lengths` whose product is each axis of `shape`; None if there are none."""
    nested: list[int | tuple[int, ...]] = []
    at = 0
    for size in shape:
        group, length = [], 1
        while at < len(lengths) and (not group or length < size):
            group.append(tensor_map[at])
            length *= lengths[at]
            at += 1
        if length != size:
            return None
        cuts = tuple(axis for axis in group if axis != -1)
        nested.append(cuts[0] if len(cuts) == 1 else cuts or -1)
    return tuple(nested) if at == len(lengths) else None


def shardings_of(file: StrategyFile) -> dict[str, ParameterSharding]:
    """Return the sharding of each Parameter of a strategy file by its name.

    In a file of several stages, which `merge_pipeline_strategys` writes, a name has its stage before it: '1-weight'.
    """
    shardings: dict[str, ParameterSharding] = {}
    for key, layout in file.layouts.items():
        stage, name = stage_of(key)
        if stage is None:
            shardings[key] = ParameterSharding(layout)
        elif name in shardings:
            shardings[name] = replace(shardings[name], stages=tuple(sorted({*shardings[name].stages, stage})))
        else:
            shardings[name] = ParameterSharding(layout, (stage,))
    return shardings


def processes(shardings: Mapping[str, ParameterSharding]) -> int:
    """Return the number of processes in all stages; 1 without shardings."""
    return max((sharding.devices * (sharding.stages[-1] + 1) for sharding in shardings.values()), default=1)
