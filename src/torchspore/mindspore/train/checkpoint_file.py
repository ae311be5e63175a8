"""MindSpore's checkpoint file, read and written as a stream.

The file is a protobuf message: field 1, repeated, is one parameter { 1 tag: its name, 2 tensor { 1 dims: repeated int64, absent for a 0-d
tensor, 2 type name, 3 content: little-endian, C order } }. A large parameter comes in several such entries under one tag, each with the
whole shape. In front stands a field that MindSpore skips: "a checksum ends this file" or, in an encrypted file, which has no checksum, the
length of the rest. It reveals a file of torchspore that was cut between two parameters.

The wire format is written here by hand: protobuf's Python messages hold at most 2 GB, copy the content twice, and a message type with these
names would clash with real MindSpore's in the same process.
"""
from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchspore.base.files import READ_ONLY, atomic_file
from torchspore.base.messages import SIZE_FIELD, with_size
from torchspore.base.text import message, short
from torchspore.errors import FileFormatError
from torchspore.mindspore.train import encryption

PIECE_BYTES = 512 * 2**20
"""How much of one parameter stands in one entry, as MindSpore writes it."""

_CHECKSUM_MARK = b"crc_num"
_CHECKSUM_BYTES = 10
_COMPLETE_FIELD = 14
"""The number of the field in front whose value 1 says that a checksum ends the file."""
_COMPLETE_HEAD = bytes([_COMPLETE_FIELD << 3, 1])
_LENGTH_DELIMITED = 2
_MOST_AXES = 32
"""What every NumPy holds."""

NUMPY_TYPES = {
    "Bool": np.bool_, "Int8": np.int8, "Int16": np.int16, "Int32": np.int32, "Int64": np.int64, "UInt8": np.uint8, "UInt16": np.uint16,
    "UInt32": np.uint32, "UInt64": np.uint64, "Float16": np.float16, "Float32": np.float32, "Float64": np.float64,
    "Complex64": np.complex64, "Complex128": np.complex128, "BFloat16": np.uint16,
}
"""The type names that a file may hold. BFloat16 stands as the upper 16 bits of float32: NumPy has no such type."""

TEXT = "str"


class Entry(NamedTuple):
    """One parameter: its name, MindSpore's type name, its shape and its values (BFloat16: the bits as uint16; str: a Python str)."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    values: Any


# Writing ---------------------------------------------------------------------------------------------------------------------------------


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | _LENGTH_DELIMITED]) + _number(len(content)) + content


def _head(name: str, type_name: str, dims: tuple[int, ...], size: int) -> bytes:
    """All of an entry but its content of `size` bytes, which follows."""
    tensor = b"".join(b"\x08" + _number(size) for size in dims) + _field(2, type_name.encode()) + b"\x1a" + _number(size)
    tag = _field(1, name.encode())
    inner = tag + b"\x12" + _number(len(tensor) + size) + tensor
    return b"\x0a" + _number(len(inner) + size) + inner


def pieces(entry: Entry, size: int = PIECE_BYTES) -> Iterator[tuple[bytes, Any]]:
    """The file's bytes for one parameter: a head and a content of at most `size` bytes, as often as it takes."""
    if entry.type_name == TEXT:
        content: Any = entry.values.encode("utf-32-le")
        dims: tuple[int, ...] = (0,)
    else:
        content = memoryview(np.ascontiguousarray(entry.values).reshape(-1)).cast("B") if np.size(entry.values) else b""
        dims = entry.shape
    for start in range(0, max(len(content), 1), size):
        part = content[start : start + size]
        yield _head(entry.name, entry.type_name, dims, len(part)), part


def write(
    path: Path, entries: Iterator[Entry], key: bytes | None = None, mode: str = "AES-GCM", piece: int = PIECE_BYTES,
) -> None:
    """Writes a checkpoint file with MindSpore's CRC-32 of all bytes at its end, which MindSpore reads with and without `crc_check`.

    With a `key` it is encrypted, and has no checksum: MindSpore reads none there. Values of more than `piece` bytes come in several.
    """
    if key is not None:
        content = b"".join(bytes(part) for entry in entries for head_and_content in pieces(entry, piece) for part in head_and_content)
        with atomic_file(path, READ_ONLY, durable=True) as file:
            for block in encryption.encrypted(with_size(content), key, mode):
                file.write(block)
        return
    total = zlib.crc32(_COMPLETE_HEAD)
    with atomic_file(path, READ_ONLY, durable=True) as file:
        file.write(_COMPLETE_HEAD)
        for entry in entries:
            for head, content in pieces(entry, piece):
                file.write(head)
                file.write(content)
                total = zlib.crc32(content, zlib.crc32(head, total))
        file.write(_CHECKSUM_MARK + total.to_bytes(_CHECKSUM_BYTES, "big"))


# Reading ---------------------------------------------------------------------------------------------------------------------------------


class _Damaged(Exception):
    """The bytes are no checkpoint file; the text says where."""


def read(path: Path, key: bytes | None = None, mode: str = "AES-GCM") -> tuple[list[Entry], bool]:
    """All parameters of a checkpoint file, in its order, and whether it has a checksum, which they fit then.

    With a `key` the file is an encrypted one. Raises FileFormatError, which names the file, for one that is cut short or foreign.
    """
    try:
        content = np.memmap(path, np.uint8, mode="r") if path.stat().st_size else np.empty(0, np.uint8)
        if key is not None:
            content = np.frombuffer(encryption.decrypted(memoryview(content), key, mode), np.uint8)
        elif encryption.is_encrypted(memoryview(content[:4])):
            raise encryption.NotDecrypted("it is encrypted")
        return _entries(memoryview(content))
    except encryption.NotDecrypted as error:
        hint = "pass dec_key and dec_mode as it was saved with"
        raise FileFormatError(message(f"{path}: {error}", "a checkpoint file for this dec_key and dec_mode", hint=hint)) from None
    except _Damaged as error:
        hint = "save it again, or copy it again from where it came"
        raise FileFormatError(message(f"{path}: {error}", "a whole checkpoint file of MindSpore", hint=hint)) from None


def _entries(content: memoryview) -> tuple[list[Entry], bool]:
    tail = len(_CHECKSUM_MARK) + _CHECKSUM_BYTES
    is_checked = len(content) >= tail and bytes(content[-tail:-_CHECKSUM_BYTES]) == _CHECKSUM_MARK
    if is_checked:
        written = int.from_bytes(content[-_CHECKSUM_BYTES:], "big")
        content = content[:-tail]
        if zlib.crc32(content) != written:
            raise _Damaged("its checksum does not fit its content")
    content = _without_head(content, is_checked)
    found: dict[str, list[tuple[str, tuple[int, ...], memoryview]]] = {}
    for number, entry in _fields(content, 0, len(content)):
        if number != 1 or not isinstance(entry, tuple):
            raise _Damaged(f"field {number} where only parameters stand")
        name, parts = _parameter(content, *entry)
        found.setdefault(name, []).append(parts)
    return [_joined(name, parts) for name, parts in found.items()], is_checked


def _without_head(content: memoryview, is_checked: bool) -> memoryview:
    """Return the parameters of a file without the field in front. Raises _Damaged if the field shows that the file is cut short."""
    if bytes(content[:2]) == _COMPLETE_HEAD:
        if not is_checked:
            raise _Damaged("it is cut short: its checksum is missing")
        return content[2:]
    if len(content) and content[0] == SIZE_FIELD << 3:
        size, place = _read_number(content, 1, len(content))
        if size != len(content) - place:
            raise _Damaged(f"it is cut short: {size} bytes are announced, {len(content) - place} are there")
        return content[place:]
    return content


def _read_number(content: memoryview, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= end or shift > 63:
            raise _Damaged(f"it ends within a number at byte {place}")
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place


def _fields(content: memoryview, place: int, end: int) -> Iterator[tuple[int, Any]]:
    """The fields of a message: (number, int) or (number, (start, end))."""
    while place < end:
        start = place
        key, place = _read_number(content, place, end)
        number, kind = key >> 3, key & 7
        if number and kind == 0:
            value, place = _read_number(content, place, end)
            yield number, value
        elif number and kind == _LENGTH_DELIMITED:
            size, place = _read_number(content, place, end)
            if place + size > end:
                raise _Damaged(f"it is cut short: {size} bytes are announced at byte {start}, {end - place} are there")
            yield number, (place, place + size)
            place += size
        else:
            raise _Damaged(f"no field of a checkpoint at byte {start}")


def _parameter(content: memoryview, start: int, end: int) -> tuple[str, tuple[str, tuple[int, ...], memoryview]]:
    name = None
    tensor = None
    for number, value in _fields(content, start, end):
        if number == 1 and isinstance(value, tuple):
            name = _text(content, value)
        elif number == 2 and isinstance(value, tuple):
            tensor = value
    if name is None or tensor is None:
        raise _Damaged(f"a parameter without a name or a value at byte {start}")
    dims: list[int] = []
    type_name = None
    values = memoryview(b"")
    for number, value in _fields(content, *tensor):
        if number == 1 and isinstance(value, int):
            dims.append(value)
        elif number == 1:  # the packed form, which other writers of protobuf choose
            place, stop = value
            while place < stop and len(dims) <= _MOST_AXES:
                size, place = _read_number(content, place, stop)
                dims.append(size)
        elif number == 2 and isinstance(value, tuple):
            type_name = _text(content, value)
        elif number == 3 and isinstance(value, tuple):
            values = content[value[0] : value[1]]
        if len(dims) > _MOST_AXES:
            raise _Damaged(f"the parameter {name!r:.80} has more than {_MOST_AXES} axes")
    if type_name is None:
        raise _Damaged(f"the parameter {name!r} has no type")
    return name, (type_name, tuple(dims), values)


def _text(content: memoryview, place: tuple[int, int]) -> str:
    try:
        return bytes(content[place[0] : place[1]]).decode()
    except UnicodeDecodeError:
        raise _Damaged(f"a name that is no text at byte {place[0]}") from None


def _joined(name: str, parts: list[tuple[str, tuple[int, ...], memoryview]]) -> Entry:
    type_name, shape, _ = parts[0]
    if any(part[:2] != (type_name, shape) for part in parts):
        raise _Damaged(f"the parameter {name!r:.80} stands there twice, with two types or shapes")
    size = sum(len(values) for _, _, values in parts)
    if type_name == TEXT:
        try:
            return Entry(name, TEXT, (), b"".join(values for _, _, values in parts).decode("utf-32-le"))
        except UnicodeDecodeError:
            raise _Damaged(f"the text {name!r:.80} is no text") from None
    if type_name not in NUMPY_TYPES:
        raise _Damaged(f"the parameter {name!r:.80} has the type {type_name!r:.40}, which is none of MindSpore's")
    dtype = np.dtype(NUMPY_TYPES[type_name]).newbyteorder("<")
    wanted = math.prod(shape) * dtype.itemsize
    if size != wanted or any(length >> 62 for length in shape):
        told = f"{wanted}" if wanted < 1 << 63 else "more than any file holds"
        raise _Damaged(f"the parameter {name!r:.80} of shape {short(list(shape))} and type {type_name} has {size} bytes, not {told}")
    content = bytearray()
    for _, _, values in parts:
        content += values
    return Entry(name, type_name, shape, np.frombuffer(content, dtype).reshape(shape))
