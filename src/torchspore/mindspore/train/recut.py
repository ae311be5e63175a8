"""Entries of checkpoints from the cuts of one strategy to those of another."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.train import checkpoint_file
from torchspore.mindspore.train.checkpoint_file import Entry
from torchspore.mindspore.train.serialization import read_file, write_file
from torchspore.mindspore.train.slices import Cut

Files = Mapping[int, Mapping[str, Entry]]


class Recut:
    """From the cuts of a source to those of a target; None is one process that has everything."""

    def __init__(self, source: Mapping[str, Cut] | None, target: Mapping[str, Cut] | None) -> None:
        self._source, self._target = source or {}, target

    def _is_on(self, name: str, rank: int) -> bool:
        """Whether a process of the target has the Parameter; one that the strategy does not name is on all."""
        return self._target is None or name not in self._target or self._target[name].holds(rank)

    def needed(self, rank: int) -> set[int]:
        """The processes of the source whose parts a process of the target needs."""
        stages = {stage for cut in self._source.values() for stage in cut.stages}
        if len(stages) > 1:
            return {
                one for cut in self._source.values() for stage in cut.stages for one in range(
                    stage * cut.devices, (stage + 1) * cut.devices,
                )
            }
        found: set[int] = set()
        for name, cut in self._source.items():
            if self._is_on(name, rank):
                found |= set(_holders(cut, rank))
        return found or {rank if rank in range(max((cut.devices for cut in self._source.values()), default=1)) else 0}

    def entries(self, rank: int, files: Files) -> list[Entry]:
        """What the file of one process of the target holds. Raises ValueError where a part is missing or does not fit."""
        found = []
        for name in dict.fromkeys(name for entries in files.values() for name in entries):
            if not self._is_on(name, rank):
                continue
            parts = {one: entries[name] for one, entries in files.items() if name in entries}
            first = parts.get(rank, next(iter(parts.values())))
            entry = self._whole(name, parts, first)
            found.append(part_of(entry, (self._target or {}).get(name), rank))
        self._check_complete(rank, {entry.name for entry in found})
        return found

    def _whole(self, name: str, parts: Mapping[int, Entry], first: Entry) -> Entry:
        """A Parameter put together, or the entry that all files have."""
        if name not in self._source or first.type_name == checkpoint_file.TEXT:
            shapes = {entry.shape for entry in parts.values()}
            if len(shapes) > 1:
                wrote = f"{name!r} of shapes {', '.join(map(str, sorted(shapes)))}"
                raise ValueError(message(wrote, "one shape of what the source's strategy does not name"))
            return first
        if len({entry.type_name for entry in parts.values()}) > 1:
            raise ValueError(
                message(f"{name!r} of types {', '.join(sorted({one.type_name for one in parts.values()}))}", "parts of one type")
            )
        whole = self._source[name].whole(name, {rank: np.asarray(entry.values).reshape(entry.shape) for rank, entry in parts.items()})
        return Entry(name, first.type_name, whole.shape, whole)

    def _check_complete(self, rank: int, names: Iterable[str]) -> None:
        """Raises ValueError where no file has a Parameter that source and target name."""
        wanted = [name for name in self._source if self._is_on(name, rank) and (self._target is None or name in self._target)]
        lacking = sorted(set(wanted) - set(names))
        if lacking:
            raise ValueError(
                message(f"{lacking[0]!r}, which the strategy of the source cuts", "it in the checkpoints, which do not have it"),
            )


def part_of(entry: Entry, cut: Cut | None, rank: int) -> Entry:
    """What one process has of a whole Parameter. Raises ValueError where the cuts do not divide its shape."""
    if cut is None or entry.type_name == checkpoint_file.TEXT:
        return entry
    part = cut.part(entry.name, np.asarray(entry.values).reshape(entry.shape), rank)
    return Entry(entry.name, entry.type_name, part.shape, np.ascontiguousarray(part))


def _holders(cut: Cut, rank: int) -> Iterable[int]:
    """The processes that together hold all of a Parameter, of several such sets the one that this process is in."""
    layout = cut.layout
    cutting = {len(layout.dev_matrix) - 1 - place for place in layout.tensor_map if place != -1}
    sizes = layout.dev_matrix or (1,)
    at = np.unravel_index(rank % cut.devices, sizes)
    for one in cut.ranks():
        place = np.unravel_index(one % cut.devices, sizes)
        if all(axis in cutting or int(place[axis]) == int(at[axis]) for axis in range(len(sizes))) or cut.is_shared_out:
            yield one


def read_entries(path: Path) -> dict[str, Entry]:
    """The entries of a checkpoint by name. Raises ValueError for a file that is cut short or foreign."""
    return {entry.name: entry for entry in read_file(path, path.suffix[1:])}


def written_whole(files: Mapping[Path, Callable[[], list[Entry]]]) -> None:
    """Writes checkpoints of what each of these gives, all of them or none. Raises OSError, and what a maker raises."""
    staged: dict[Path, Path] = {}
    first = next(iter(files))
    top = next(folder for folder in first.absolute().parents if folder.is_dir())
    room = Path(tempfile.mkdtemp(dir=top, prefix=".recut-"))
    try:
        for number, (path, make) in enumerate(files.items()):
            staged[path] = room / f"{number}{path.suffix}"
            write_file(staged[path], make(), path.suffix[1:])
        for path, temporary in staged.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(room)
