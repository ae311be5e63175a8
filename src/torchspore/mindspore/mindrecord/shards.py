"""The files of one MindRecord set, read row by row without loading a complete file."""
from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from torchspore.base.files import BINARY, read_at
from torchspore.base.text import message
from torchspore.errors import DataDamaged, FileFormatError
from torchspore.mindspore.mindrecord import encrypted_files, index
from torchspore.mindspore.mindrecord.exceptions import MRMOpenError
from torchspore.mindspore.mindrecord.layout import LENGTH, LONGEST_HEADER, Header, decode_blobs, decode_raw, header_from_bytes

_RAW, _BLOB = slice(1, 4), slice(5, 8)
"""The columns of the index: page, first and last byte."""


def read_header(path: Path) -> Header:
    """Read the header of a file. Raises FileNotFoundError, FileFormatError, which name the file."""
    if not path.is_file():
        shown = str(path) if str(path).isprintable() else repr(str(path))
        raise MRMOpenError(f"{message(shown, 'a MindRecord file')} The file {shown} does not exist or permission denied!")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH), "little")
        if not 0 < length <= min(LONGEST_HEADER, path.stat().st_size - LENGTH):
            raise DataDamaged(message(f"{path}: {path.stat().st_size} bytes with another beginning", "a MindRecord file"))
        text = file.read(length)
    try:
        return header_from_bytes(text)
    except FileFormatError as error:
        raise DataDamaged(message(f"{path}: {error}", "a MindRecord file")) from None


def paths_of(file_name: str | Path, number: int) -> list[Path]:
    """Return the files of a set of `number`: `file_name` itself for one, otherwise with appended numbers of equal width."""
    path = Path(file_name).expanduser()
    digits = len(str(number - 1))
    return [path] if number == 1 else [path.with_name(f"{path.name}{at:0{digits}}") for at in range(number)]


def all_shards(path: Path) -> list[Path]:
    """Return the files of the set that `path` belongs to, in its folder."""
    header = read_header(encrypted_files.readable(path))
    if Path(path).name not in [Path(name).name for name in header.shards]:
        return [path]
    return [path.with_name(Path(name).name) for name in header.shards]


class Shard:
    """One file and its index, open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = encrypted_files.readable(path)
        """Return the path of the decrypted content, which differs from the file's for an encrypted file."""
        self.header, self.positions = read_header(self.file), index.read(self.file)
        self._handle = os.open(self.file, os.O_RDONLY | BINARY)
        self._size = os.fstat(self._handle).st_size
        self.close = weakref.finalize(self, os.close, self._handle)

    def __len__(self) -> int:
        return len(self.positions)

    def row(self, number: int, columns: list[str]) -> dict[str, Any]:
        """Read the columns of a row. Raises FileFormatError, which names file and row, if it is damaged."""
        blobs = self.header.blobs
        position = self.positions[number]
        try:
            values = decode_raw(self._read(position[_RAW])) if any(name not in blobs for name in columns) else {}
            if any(name in blobs for name in columns):
                values.update(decode_blobs(self.header.schema, blobs, self._read(position[_BLOB]), columns))
            return {name: values[name] for name in columns}
        except (ValueError, KeyError, msgpack.UnpackException) as error:
            where = f"{self.path}, row {number}: {error!s:.200}"
            raise DataDamaged(message(where, "a row of MindRecord; the file is damaged")) from None

    def _read(self, position: np.ndarray[Any, Any]) -> bytes:
        page, start, end = map(int, position)
        first = self.header.page_offset(page) + start
        if not start + LENGTH <= end or first + end - start > self._size:
            raise ValueError(f"bytes {first} to {first + end - start} of {self._size}; the index is that of another file")
        content = read_at(self._handle, end - start, first)
        length = int.from_bytes(content[:LENGTH], "little")
        if length != end - start - LENGTH:
            raise ValueError(f"a length of {length} where the index has {end - start - LENGTH}")
        return content[LENGTH:]


class Shards:
    """Several files with one schema, as one sequence of rows."""

    def __init__(self, paths: list[Path]) -> None:
        self.shards = [Shard(path) for path in paths]
        self.header = self.shards[0].header
        for shard in self.shards:
            if shard.header.schema != self.header.schema:
                raise DataDamaged(message(f"{shard.path}: another schema", f"that of {self.shards[0].path}: {self.header.schema}"))
        self._ends = np.cumsum([len(shard) for shard in self.shards])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def lengths(self) -> list[int]:
        """Return the number of rows of each file."""
        return [len(shard) for shard in self.shards]

    def row(self, number: int, columns: list[str]) -> dict[str, Any]:
        """Read the columns of a row, counted over all files."""
        shard = int(np.searchsorted(self._ends, number, side="right"))
        return self.shards[shard].row(number - (int(self._ends[shard - 1]) if shard else 0), columns)

    def close(self) -> None:
        """Close the files."""
        for shard in self.shards:
            shard.close()
