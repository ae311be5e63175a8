"""MindSpore's checkpoint file, read and written as a stream.

The file is a protobuf message: field 1, repeated, is one parameter { 1 tag: its name, 2 tensor { 1 dims: repeated int64, absent for a 0-d
tensor, 2 type name, 3 content: little-endian, C order } }. A large parameter has several such entries under one tag, each with the
full shape. The first field of the file is one that MindSpore skips: "a checksum ends this file" or, in an encrypted file, which has no
checksum, the length of the following bytes. It reveals a file of torchspore that was truncated between two parameters.

This module implements the wire format itself: protobuf's Python messages are limited to 2 GB and copy the content twice, and a message type
with these names would clash with real MindSpore's in the same process.
"""
from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchspore.base import bfloat16, encryption
from torchspore.base.files import READ_ONLY, atomic_file
from torchspore.base.messages import SIZE_FIELD, with_size
from torchspore.base.text import message, short
from torchspore.errors import FileFormatError
from torchspore.translations import translate

PIECE_BYTES = 512 * 2**20
"""Maximum bytes of a parameter in one entry, as in MindSpore."""

_CHECKSUM_MARK = b"crc_num"
_CHECKSUM_BYTES = 10
_COMPLETE_FIELD = 14
"""The number of the first field, whose value 1 means that a checksum ends the file."""
_COMPLETE_HEAD = bytes([_COMPLETE_FIELD << 3, 1])
_LENGTH_DELIMITED = 2
_MOST_AXES = 32
"""NumPy's maximum number of axes."""

NUMPY_TYPES = {
    "Bool": np.bool_, "Int8": np.int8, "Int16": np.int16, "Int32": np.int32, "Int64": np.int64, "UInt8": np.uint8, "UInt16": np.uint16,
    "UInt32": np.uint32, "UInt64": np.uint64, "Float16": np.float16, "Float32": np.float32, "Float64": np.float64,
    "Complex64": np.complex64, "Complex128": np.complex128, "BFloat16": np.uint16,
}
"""The type names of a file. BFloat16 is stored as the upper 16 bits of float32: NumPy does not have this type."""

TEXT = "str"


class Entry(NamedTuple):
    """One parameter: its name, MindSpore's type name, its shape and its values (BFloat16: the bits as uint16; str: a Python str)."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    values: Any

    def array(self) -> Any:
        """Return the values as an array of the entry's shape; BFloat16 as float32, which NumPy has. A text has no array."""
        if self.type_name == "BFloat16":
            return bfloat16.to_float32(self.values).reshape(self.shape)
        return np.require(self.values, self.values.dtype.newbyteorder("="), ["W"])


class BlockedValues:
    """The values of an entry that come in blocks of rows, so that a checkpoint of them needs the memory of one block.

    `blocks` returns the arrays of the rows in order, of `dtype`; together they have `shape`.
    """

    def __init__(self, blocks: Callable[[], Iterator[Any]], shape: tuple[int, ...], dtype: Any) -> None:
        self.blocks, self.shape, self.dtype = blocks, shape, np.dtype(dtype)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return all values as one array."""
        result: Any = np.concatenate(list(self.blocks())).reshape(self.shape) if self.shape else next(self.blocks())
        return result if dtype is None else result.astype(dtype, copy=False)


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
    """Return an entry without its content of `size` bytes, which follows."""
    tensor = b"".join(b"\x08" + _number(size) for size in dims) + _field(2, type_name.encode()) + b"\x1a" + _number(size)
    tag = _field(1, name.encode())
    inner = tag + b"\x12" + _number(len(tensor) + size) + tensor
    return b"\x0a" + _number(len(inner) + size) + inner


def pieces(entry: Entry, size: int = PIECE_BYTES) -> Iterator[tuple[bytes, Any]]:
    """Yield the file's bytes for one parameter: alternately a head and a content of at most `size` bytes.

    A content that comes in blocks follows its head in several parts; the heads of the others are empty.
    """
    if isinstance(entry.values, BlockedValues):
        yield from _blocked_pieces(entry, size)
        return
    if entry.type_name == TEXT:
        content: Any = entry.values.encode("utf-32-le")
        dims: tuple[int, ...] = (0,)
    else:
        values: Any = np.ascontiguousarray(entry.values).reshape(-1)
        content = memoryview(values).cast("B") if values.size else b""
        dims = entry.shape
    for start in range(0, max(len(content), 1), size):
        part = content[start : start + size]
        yield _head(entry.name, entry.type_name, dims, len(part)), part


def _blocked_pieces(entry: Entry, size: int) -> Iterator[tuple[bytes, Any]]:
    total, position = entry.values.nbytes, 0
    if not total:
        yield _head(entry.name, entry.type_name, entry.shape, 0), b""
    for block in entry.values.blocks():
        flat: Any = np.ascontiguousarray(block).reshape(-1)
        content, start = memoryview(flat).cast("B"), 0
        while start < len(content):
            is_first = position % size == 0
            part = content[start:start + size - position % size]
            head = _head(entry.name, entry.type_name, entry.shape, min(size, total - position)) if is_first else b""
            yield head, part
            start, position = start + len(part), position + len(part)


def write(
    path: Path, entries: Iterator[Entry], key: bytes | None = None, mode: str = "AES-GCM", piece: int = PIECE_BYTES,
) -> None:
    """Write a checkpoint file with MindSpore's CRC-32 of all bytes at its end, which MindSpore reads with and without `crc_check`.

    With a `key` it is encrypted and has no checksum, because MindSpore does not read one there. Values of more than `piece` bytes are
    divided.
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
    """The bytes are not a checkpoint file; the text names the position."""


def read(path: Path, key: bytes | None = None, mode: str = "AES-GCM") -> tuple[list[Entry], bool]:
    """Return all parameters of a checkpoint file, in its order, and whether it has a (matching) checksum.

    With a `key` the file is encrypted. Raises FileFormatError, which names the file, for a truncated file or another format.
    """
    try:
        content: Any = np.memmap(path, np.uint8, mode="r") if path.stat().st_size else np.empty(0, np.uint8)
        if key is not None:
            content = np.frombuffer(encryption.decrypted(memoryview(content), key, mode), np.uint8)
        elif encryption.is_encrypted(memoryview(content[:4])):
            raise encryption.NotDecrypted(translate("it is encrypted"))
        return _entries(memoryview(content))
    except encryption.NotDecrypted as error:
        hint = translate("pass dec_key and dec_mode as it was saved with")
        expected = translate("a checkpoint file for this dec_key and dec_mode")
        raise FileFormatError(message(f"{path}: {error}", expected, hint=hint)) from None
    except _Damaged as error:
        hint = translate("save it again, or copy it again from its source")
        raise FileFormatError(message(f"{path}: {error}", translate("a complete checkpoint file of MindSpore"), hint=hint)) from None


def _entries(content: memoryview) -> tuple[list[Entry], bool]:
    tail = len(_CHECKSUM_MARK) + _CHECKSUM_BYTES
    is_checked = len(content) >= tail and bytes(content[-tail:-_CHECKSUM_BYTES]) == _CHECKSUM_MARK
    if is_checked:
        stored_checksum = int.from_bytes(content[-_CHECKSUM_BYTES:], "big")
        content = content[:-tail]
        if zlib.crc32(content) != stored_checksum:
            raise _Damaged(translate("its checksum does not fit its content"))
    content = _without_head(content, is_checked)
    parts_by_name: dict[str, list[tuple[str, tuple[int, ...], memoryview]]] = {}
    for number, entry in _fields(content, 0, len(content)):
        if number != 1 or not isinstance(entry, tuple):
            raise _Damaged(translate("field {number} where a file has only parameters").format(number=number))
        name, parts = _parameter(content, *entry)
        parts_by_name.setdefault(name, []).append(parts)
    return [_joined(name, parts) for name, parts in parts_by_name.items()], is_checked


def _without_head(content: memoryview, is_checked: bool) -> memoryview:
    """Return the parameters of a file without the field in front. Raises _Damaged if the field shows that the file is cut short."""
    if bytes(content[:2]) == _COMPLETE_HEAD:
        if not is_checked:
            raise _Damaged(translate("it is truncated: its checksum is missing"))
        return content[2:]
    if len(content) and content[0] == SIZE_FIELD << 3:
        size, position = _read_number(content, 1, len(content))
        if size != len(content) - position:
            text = translate("it is truncated: {size} bytes are expected, {present} are there")
            raise _Damaged(text.format(size=size, present=len(content) - position))
        return content[position:]
    return content


def _read_number(content: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= end or shift > 63:
            raise _Damaged(f"it ends within a number at byte {position}")
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _fields(content: memoryview, position: int, end: int) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message: (number, int) or (number, (start, end))."""
    while position < end:
        start = position
        key, position = _read_number(content, position, end)
        number, kind = key >> 3, key & 7
        if number and kind == 0:
            value, position = _read_number(content, position, end)
            yield number, value
        elif number and kind == _LENGTH_DELIMITED:
            size, position = _read_number(content, position, end)
            if position + size > end:
                text = translate("it is truncated: {size} bytes are expected at byte {start}, {present} are there")
                raise _Damaged(text.format(size=size, start=start, present=end - position))
            yield number, (position, position + size)
            position += size
        else:
            raise _Damaged(translate("no field of a checkpoint at byte {start}").format(start=start))


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
            position, stop = value
            while position < stop and len(dims) <= _MOST_AXES:
                size, position = _read_number(content, position, stop)
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


def _text(content: memoryview, span: tuple[int, int]) -> str:
    try:
        return bytes(content[span[0] : span[1]]).decode()
    except UnicodeDecodeError:
        raise _Damaged(f"an invalid name at byte {span[0]}") from None


def _joined(name: str, parts: list[tuple[str, tuple[int, ...], memoryview]]) -> Entry:
    type_name, shape, _ = parts[0]
    if any(part[:2] != (type_name, shape) for part in parts):
        raise _Damaged(f"the parameter {name!r:.80} occurs twice, with two types or shapes")
    size = sum(len(values) for _, _, values in parts)
    if type_name == TEXT:
        try:
            return Entry(name, TEXT, (), b"".join(values for _, _, values in parts).decode("utf-32-le"))
        except UnicodeDecodeError:
            raise _Damaged(f"the text {name!r:.80} is no text") from None
    if type_name not in NUMPY_TYPES:
        raise _Damaged(f"the parameter {name!r:.80} has the type {type_name!r:.40}, which MindSpore does not have")
    dtype = np.dtype(NUMPY_TYPES[type_name]).newbyteorder("<")
    expected_size = math.prod(shape) * dtype.itemsize
    if size != expected_size or any(length >> 62 for length in shape):
        description = f"{expected_size}" if expected_size < 1 << 63 else "more than any file has"
        raise _Damaged(f"the parameter {name!r:.80} of shape {short(list(shape))} and type {type_name} has {size} bytes, not {description}")
    content = bytearray()
    for _, _, values in parts:
        content += values
    return Entry(name, type_name, shape, np.frombuffer(content, dtype).reshape(shape))
