"""Conversion of checkpoint entries from the sharding of one strategy to that of another."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from torchspore.base import checkpoint_file
from torchspore.base.checkpoint_file import Entry
from torchspore.base.text import message
from torchspore.mindspore.train.serialization import read_file, write_file
from torchspore.mindspore.train.slices import ParameterSharding

Files = Mapping[int, Mapping[str, Entry]]


class Resharding:
    """A conversion from the shardings of a source to those of a target; None stands for one process with all Parameters."""

    def __init__(self, source: Mapping[str, ParameterSharding] | None, target: Mapping[str, ParameterSharding] | None) -> None:
        self._source, self._target = source or {}, target

    def _is_on(self, name: str, rank: int) -> bool:
        """Return whether a process of the target has the Parameter; one without a strategy is on all."""
        return self._target is None or name not in self._target or self._target[name].holds(rank)

    def needed(self, rank: int) -> set[int]:
        """Return the processes of the source whose parts a process of the target needs."""
        stages = {stage for sharding in self._source.values() for stage in sharding.stages}
        if len(stages) > 1:
            return {
                source_rank for sharding in self._source.values() for stage in sharding.stages for source_rank in range(
                    stage * sharding.devices, (stage + 1) * sharding.devices,
                )
            }
        ranks: set[int] = set()
        for name, sharding in self._source.items():
            if self._is_on(name, rank):
                ranks |= set(_holders(sharding, rank))
        return ranks or {rank if rank in range(max((sharding.devices for sharding in self._source.values()), default=1)) else 0}

    def entries(self, rank: int, files: Files) -> list[Entry]:
        """Return the entries of one target process's file. Raises ValueError if a part is missing or does not fit."""
        merged = []
        for name in dict.fromkeys(name for entries in files.values() for name in entries):
            if not self._is_on(name, rank):
                continue
            parts = {source_rank: entries[name] for source_rank, entries in files.items() if name in entries}
            first = parts.get(rank, next(iter(parts.values())))
            entry = self._merged(name, parts, first)
            merged.append(part_of(entry, (self._target or {}).get(name), rank))
        self._check_complete(rank, {entry.name for entry in merged})
        return merged

    def _merged(self, name: str, parts: Mapping[int, Entry], first: Entry) -> Entry:
        """Return a merged Parameter, or the entry that all files have."""
        if name not in self._source or first.type_name == checkpoint_file.TEXT:
            shapes = {entry.shape for entry in parts.values()}
            if len(shapes) > 1:
                subject = f"{name!r} of shapes {', '.join(map(str, sorted(shapes)))}"
                raise ValueError(message(subject, "one shape of the Parameters that the source's strategy does not name"))
            return first
        if len({entry.type_name for entry in parts.values()}) > 1:
            raise ValueError(
                message(f"{name!r} of types {', '.join(sorted({part.type_name for part in parts.values()}))}", "parts of one type")
            )
        merged = self._source[name].merged(name, {rank: np.asarray(entry.values).reshape(entry.shape) for rank, entry in parts.items()})
        return Entry(name, first.type_name, merged.shape, merged)

    def _check_complete(self, rank: int, names: Iterable[str]) -> None:
        """Raises ValueError if no file has a Parameter that source and target name."""
        required = [name for name in self._source if self._is_on(name, rank) and (self._target is None or name in self._target)]
        lacking = sorted(set(required) - set(names))
        if lacking:
            raise ValueError(
                message(f"{lacking[0]!r}, which the strategy of the source splits", "it in the checkpoints"),
            )


def part_of(entry: Entry, sharding: ParameterSharding | None, rank: int) -> Entry:
    """Return one process's part of a full Parameter. Raises ValueError if the sharding does not divide its shape."""
    if sharding is None or entry.type_name == checkpoint_file.TEXT:
        return entry
    part = sharding.part(entry.name, np.asarray(entry.values).reshape(entry.shape), rank)
    return Entry(entry.name, entry.type_name, part.shape, np.ascontiguousarray(part))


def _holders(sharding: ParameterSharding, rank: int) -> Iterable[int]:
    """Return the processes that together have all of a Parameter; of several such sets, the one with this process."""
    layout = sharding.layout
    split_axes = {len(layout.dev_matrix) - 1 - device_axis for device_axis in layout.tensor_map if device_axis != -1}
    sizes = layout.dev_matrix or (1,)
    at = np.unravel_index(rank % sharding.devices, sizes)
    for candidate in sharding.ranks():
        coordinates = np.unravel_index(candidate % sharding.devices, sizes)
        if all(axis in split_axes or int(coordinates[axis]) == int(at[axis]) for axis in range(len(sizes))) or sharding.is_shared_out:
            yield candidate


def read_entries(path: Path) -> dict[str, Entry]:
    """Return the entries of a checkpoint by name. Raises ValueError for a truncated file or another format."""
    return {entry.name: entry for entry in read_file(path, path.suffix[1:])}


def write_all(files: Mapping[Path, Callable[[], list[Entry]]]) -> None:
    """Write the checkpoints with the entries of each maker, all of them or none. Raises OSError, and the errors of a maker."""
    staged: dict[Path, Path] = {}
    first = next(iter(files))
    top = next(folder for folder in first.absolute().parents if folder.is_dir())
    staging = Path(tempfile.mkdtemp(dir=top, prefix=".resharding-"))
    try:
        for number, (path, make) in enumerate(files.items()):
            staged[path] = staging / f"{number}{path.suffix}"
            write_file(staged[path], make(), path.suffix[1:])
        for path, temporary in staged.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(staging)
