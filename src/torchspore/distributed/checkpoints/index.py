"""The index of a sharded checkpoint: which file has which part of each value.

A checkpoint `step5.dcp` is a folder:

    step5.dcp/checkpoint.json                  the index, a JSON text; it is written last, atomically
    step5.dcp/save-0123456789abcdef/           the files of one save, a safetensors file of each process that stores values

Until the index names the folder of a save, that save is invisible: a killed save leaves the previous index, or none.
"""
from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchspore.base import files, json_text
from torchspore.base.checkpoint_file import NUMPY_TYPES
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.errors import FileFormatError

NAME = "checkpoint.json"
_FORMAT, _VERSION = "torchspore sharded checkpoint", 1
FOLDER = re.compile(r"save-[0-9a-f]{16}")
_FILE = re.compile(r"shard-\d{5,7}-model-00001-of-00001\.safetensors")
_LARGEST_INDEX = 1 << 30
_MOST_AXES = 32
_LARGEST_SIZE = 1 << 48
Shape = tuple[int, ...]
TORCH_TYPES = {str(kind): dtype for dtype, kind in dtypes.FROM_TORCH.items() if str(kind) in NUMPY_TYPES and str(kind) != "Complex128"}
"""torch's dtype of each of MindSpore's types that checkpoints and safetensors files can store."""


@dataclass(frozen=True)
class Part:
    """A part of a value in a file: the number of the file, the index of its first element, its shape, the CRC-32 of its bytes."""

    file: int
    offsets: Shape
    sizes: Shape
    checksum: int


@dataclass(frozen=True)
class StoredValue:
    """A value: MindSpore's name of its type, its full shape, its parts."""

    type_name: str
    shape: Shape
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Index:
    """The values of a checkpoint by name, a str for a text, in the order of the program; and the files of one save with their sizes."""

    folder: str
    files: tuple[tuple[str, int], ...]
    values: Mapping[str, StoredValue | str]


def file_name(rank: int) -> str:
    """Return the name of the file of a process, as torch's HuggingFaceStorageWriter forms it."""
    return f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"


def write(path: Path, index: Index) -> None:
    """Write the index of the checkpoint `path`, which thereby becomes complete. Raises OSError."""
    content = {
        "format": _FORMAT, "version": _VERSION, "folder": index.folder, "files": index.files,
        "values": {name: value if isinstance(value, str) else _listed(value) for name, value in index.values.items()},
    }
    with files.atomic_file(path / NAME, files.READ_ONLY, durable=True) as file:
        file.write(json.dumps(content).encode())


def _listed(value: StoredValue) -> list[Any]:
    parts = [[part.file, part.offsets, part.sizes, part.checksum] for part in value.parts]
    return [value.type_name, value.shape, parts]


def read(path: Path) -> Index:
    """Return the index of a checkpoint. Raises FileFormatError, which names it, for an incomplete, damaged or foreign one.

    Nothing in the folder is executed: torch's pickled index is refused.
    """
    listed = path / NAME
    if not listed.is_file():
        raise FileFormatError(_missing_index(path))
    if listed.stat().st_size > _LARGEST_INDEX:
        raise FileFormatError(message(f"{listed}: {listed.stat().st_size} bytes", "an index of a gigabyte at most"))
    try:
        return _parsed(json_text.parse(files.read_plain(listed)))
    except (ValueError, TypeError, KeyError, OverflowError, OSError) as error:
        hint = "save it again, or copy it again from its source"
        raise FileFormatError(message(f"{listed}: {error!s:.200}", "the index of a sharded checkpoint", hint=hint)) from None


def _missing_index(path: Path) -> str:
    if (path / ".metadata").exists():
        return message(
            f"{path}: an index of torch.distributed.checkpoint, a pickle, which could run code", "a checkpoint of format='dcp'",
            hint="load it with torch, save its state_dict with torch.save, and run torchspore ckpt from-torch",
        )
    if any(FOLDER.fullmatch(child.name) for child in path.iterdir()):
        return message(f"{path}: an incomplete checkpoint, because the program ended while it was saved", f"a folder with {NAME}",
                       hint="load an earlier checkpoint")
    return message(f"{path}: a folder without {NAME}", "a checkpoint of format='dcp'")


def _parsed(content: Any) -> Index:
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError("another format")
    if content["version"] != _VERSION:
        raise ValueError(f"version {short(content['version'])}; this version of torchspore reads {_VERSION}")
    folder, listed, values = content["folder"], content["files"], content["values"]
    if not isinstance(folder, str) or not FOLDER.fullmatch(folder):
        raise ValueError(f"the folder {short(folder)}")
    if not isinstance(listed, list) or not isinstance(values, dict):
        raise ValueError("no lists of files and values")
    files_of_save = tuple((_checked_file(name), _count(size)) for name, size in listed)
    if len({name for name, _ in files_of_save}) < len(files_of_save):
        raise ValueError("a file that is listed twice")
    index = Index(folder, files_of_save, {name: _value(value) for name, value in values.items()})
    check(index)
    return index


def _checked_file(name: Any) -> str:
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise ValueError(f"the file {short(name)}")
    return name


def _count(value: Any, limit: int = _LARGEST_SIZE) -> int:
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError(f"the number {short(value)}")
    return value


def _shape(value: Any) -> Shape:
    if not isinstance(value, list) or len(value) > _MOST_AXES:
        raise ValueError(f"the shape {short(value)}")
    return tuple(map(_count, value))


def _value(value: Any) -> StoredValue | str:
    if isinstance(value, str):
        return value
    type_name, shape, parts = value
    if not isinstance(type_name, str) or type_name not in TORCH_TYPES:
        raise ValueError(f"the type {short(type_name)}")
    return StoredValue(type_name, _shape(shape), tuple(
        Part(_count(file), _shape(offsets), _shape(sizes), _count(checksum)) for file, offsets, sizes, checksum in parts
    ))


def check(index: Index) -> None:
    """Raise ValueError unless the parts of each value cover it exactly once, and each file is large enough for its parts."""
    bytes_by_file = [0] * len(index.files)
    for name, value in index.values.items():
        if isinstance(value, str):
            continue
        if not is_covered(value.shape, [(part.offsets, part.sizes) for part in value.parts]):
            raise ValueError(f"parts of {name!r:.80} that do not cover its shape {short(list(value.shape))}")
        itemsize = TORCH_TYPES[value.type_name].itemsize
        for part in value.parts:
            if part.file >= len(index.files):
                raise ValueError(f"a part of {name!r:.80} in file {part.file} of {len(index.files)}")
            bytes_by_file[part.file] += math.prod(part.sizes) * itemsize
    for (name, size), used in zip(index.files, bytes_by_file):
        if used > size:
            raise ValueError(f"parts of {used} bytes in {name} of {size}")


def is_covered(shape: Shape, parts: Sequence[tuple[Shape, Shape]]) -> bool:
    """Return whether parts (offsets, sizes) form a grid that has each element of a value of this shape exactly once."""
    if any(len(offsets) != len(shape) or len(sizes) != len(shape) for offsets, sizes in parts):
        return False
    lengths: list[dict[int, int]] = []           # on each axis, the length that begins at each offset
    for axis, size in enumerate(shape):
        starts = sorted({offsets[axis] for offsets, _ in parts})
        if not starts or starts[0] != 0 or (starts[-1] >= size and size > 0):
            return False
        lengths.append({start: stop - start for start, stop in zip(starts, [*starts[1:], size])})
    is_grid = all(sizes[axis] == lengths[axis][offsets[axis]] for offsets, sizes in parts for axis in range(len(shape)))
    return is_grid and len({offsets for offsets, _ in parts}) == len(parts) == math.prod(map(len, lengths))
