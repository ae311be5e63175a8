"""Saving of a sharded checkpoint: each process writes the parts that it stores; torch.distributed.checkpoint collects their positions.

The files are those of torch's HuggingFaceStorageWriter, so that torch.distributed.checkpoint.load reads them with its
HuggingFaceStorageReader.
"""
from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchspore.base import files
from torchspore.base.text import message
from torchspore.distributed.checkpoints import index as index_file
from torchspore.distributed.checkpoints import local_parts
from torchspore.distributed.checkpoints.index import Index, Part, StoredValue
from torchspore.distributed.checkpoints.local_parts import LocalPart
from torchspore.distributed.comm import collectives, groups
from torchspore.engine import safetensors_writer
from torchspore.engine.tensors import dtypes
from torchspore.errors import CommunicationError

CALL = "save_checkpoint(format='dcp')"
_GROUP = "_checkpoints"
"""The group whose exchanges a writing thread makes, while the program makes others."""


@dataclass(frozen=True)
class Description:
    """A part that a process writes, as the other processes see it."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass
class Contents:
    """The contribution of this process to a checkpoint."""

    path: Path
    names: tuple[str, ...]
    """The names of all values, in order."""
    texts: Mapping[str, str]
    parts: Mapping[str, LocalPart]
    """The parts that this process writes."""

    def descriptions(self) -> list[Description]:
        """Return the parts without their elements."""
        return [
            Description(name, str(dtypes.FROM_TORCH[part.elements.dtype]), part.shape, part.offsets, tuple(part.elements.shape))
            for name, part in self.parts.items()
        ]

    @property
    def fingerprint(self) -> str:
        """A text that is equal in all processes that save the same values."""
        return hashlib.sha256(json.dumps([str(self.path), sorted(self.names)]).encode()).hexdigest()

    def copied(self) -> Contents:
        """Return contents whose elements the next training step does not change."""
        return replace(self, parts={
            name: replace(part, elements=part.elements.detach().clone()) for name, part in self.parts.items()
        })


def contents(path: Path, values: Mapping[str, Any]) -> Contents:
    """Return what this process contributes; `values` are Tensors and texts. Raises TypeError for types that safetensors does not have."""
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    parts = {name: local_parts.part_of(value) for name, value in values.items() if not isinstance(value, str)}
    stored = {name: part for name, part in parts.items() if part is not None}
    for name, part in stored.items():
        if str(dtypes.FROM_TORCH.get(part.elements.dtype)) not in index_file.TORCH_TYPES:
            raise TypeError(message(f"{CALL}: {name!r} is {part.elements.dtype}", "a type of safetensors"))
    savers, rank = local_parts.savers(stored), groups.rank()
    return Contents(path, tuple(values), texts, {name: part for name, part in stored.items() if savers[name] == rank})


def prepare(is_async: bool) -> Any:
    """Wait until all processes save, and return torch's group for their exchanges; None for a single process.

    The error names a process that does something else.
    """
    if groups.size() == 1:
        return None
    collectives.meet(f"{CALL}, which all processes must call", groups.world())
    group = groups.create(_GROUP, groups.world().ranks) if is_async else groups.world()
    return groups.process_group(group)


def save(mine: Contents, process_group: Any) -> None:
    """Write this process's file; the first process writes the index when all files are complete. Raises OSError, in every process."""
    if process_group is None:
        folder = new_folder()
        with _removed_if_new(mine.path), removed_after_error(mine.path / folder):
            write_index(mine, folder, [(0, mine.descriptions(), write_parts(mine, folder, 0))])
        return
    from torchspore.distributed.checkpoints import torch_engine

    torch_engine.save(mine, process_group)


@contextlib.contextmanager
def removed_after_error(folder: Path) -> Iterator[None]:
    """A block that writes this folder; an error removes it."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def _removed_if_new(path: Path) -> Iterator[None]:
    """A block that creates this folder; an error removes it if it did not exist and has no files."""
    exists = path.exists()
    try:
        yield
    except BaseException:
        if not exists:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def new_folder() -> str:
    """Return the name of a folder that no other save has."""
    return f"save-{secrets.token_hex(8)}"


def write_parts(mine: Contents, folder: str, rank: int) -> tuple[int, list[int]]:
    """Write the file of one process. Return its size, and the CRC-32 of each part. Raises OSError."""
    target = mine.path / folder / index_file.file_name(rank)
    mine.path.mkdir(exist_ok=True)
    target.parent.mkdir(exist_ok=True)
    tensors: dict[str, torch.Tensor] = {}
    addresses: set[int] = set()
    for name, part in mine.parts.items():
        t = part.elements.detach().to("cpu").contiguous()
        t = t if t.numel() else torch.empty(t.shape, dtype=t.dtype)             # an array of no elements may have the stride 0
        tensors[name] = t.clone() if t.data_ptr() in addresses else t           # the library refuses two names of one memory
        addresses.add(t.data_ptr())
    sums = [zlib.crc32(t.reshape(-1).view(torch.uint8).numpy().data) for t in tensors.values()]
    offsets = {name: {"saved_offsets": list(part.offsets)} for name, part in mine.parts.items()}
    metadata = {"DCP_SHARDING_INFO": json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}
    with files.atomic_file(target, files.READ_ONLY, durable=True) as file:
        safetensors_writer.write(tensors, file.name, metadata)
    return target.stat().st_size, sums


def write_index(mine: Contents, folder: str, saved: Sequence[tuple[int, Sequence[Description], tuple[int, Sequence[int]]]]) -> None:
    """Write the index of the files of all processes, (rank, parts, (size, checksums)) of each, and remove the files of earlier saves."""
    values: dict[str, StoredValue] = {}
    for number, (_, descriptions, (_, sums)) in enumerate(saved):
        for described, checksum in zip(descriptions, sums):
            part = Part(number, described.offsets, described.sizes, checksum)
            before = values.get(described.name, StoredValue(described.type_name, described.shape, ()))
            if (before.type_name, before.shape) != (described.type_name, described.shape):
                raise CommunicationError(message(
                    f"{CALL}: {described.name!r} is {before.type_name} {list(before.shape)} in one process and {described.type_name} "
                    f"{list(described.shape)} in another", "one type and shape in all processes",
                ))
            values[described.name] = replace(before, parts=(*before.parts, part))
    stored_files = tuple((index_file.file_name(rank), size) for rank, _, (size, _) in saved)
    for name, size in stored_files:
        written = mine.path / folder / name
        if not written.is_file() or written.stat().st_size != size:
            reason = "another process wrote it, and the first process does not see it: the folder is not shared"
            raise OSError(errno.ENOENT, reason, str(written))
    missing = [name for name in mine.names if name not in values and name not in mine.texts]
    if missing:
        raise CommunicationError(message(f"{CALL}: no process stores {missing[0]!r}", "values that the processes store"))
    index = Index(folder, stored_files, {name: mine.texts[name] if name in mine.texts else values[name] for name in mine.names})
    index_file.check(index)
    index_file.write(mine.path, index)
    remove_earlier_saves(mine.path, folder)


def remove_earlier_saves(path: Path, folder: str | None) -> None:
    """Remove the folders of saves but `folder`, also those of killed programs."""
    for child in path.iterdir():
        if child.name != folder and index_file.FOLDER.fullmatch(child.name):
            shutil.rmtree(child, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a checkpoint: first its index, so that a part of it never loads. A folder with other files remains."""
    (path / index_file.NAME).unlink(missing_ok=True)
    remove_earlier_saves(path, None)
    try:
        path.rmdir()
    except OSError:
        pass
