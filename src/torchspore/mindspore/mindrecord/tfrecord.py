"""The TFRecord file and the `tf.train.Example` in its records, read without TensorFlow.

A record: 8 bytes of length (little-endian), a masked CRC-32C of these (RFC 3720), the content, a masked CRC-32C of the content. The first
CRC is checked; only protobuf checks the content, as in MindSpore.
"""
from __future__ import annotations

import functools
import os
import struct
import tempfile
import weakref
import zlib
from array import array
from pathlib import Path
from typing import IO, Any

import google_crc32c
import numpy as np

from torchspore.base.files import read_at
from torchspore.base.messages import messages
from torchspore.base.text import message
from torchspore.errors import DataDamaged, FileFormatError

_HEAD, _TAIL = 12, 4
_MESSAGES = {
    "Example": "1 features Features", "Features": "1 feature Entry*", "Entry": "1 key string, 2 value Feature",
    "Feature": "1 bytes_list BytesList, 2 float_list FloatList, 3 int64_list Int64List", "BytesList": "1 value bytes*",
    "FloatList": "1 value float*", "Int64List": "1 value int64*",
}
_WINDOWS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
COMPRESSIONS = ("", *_WINDOWS)


@functools.cache
def _example() -> Any:
    return messages("tf_example", _MESSAGES, packed=True)["Example"]


def masked_crc(content: bytes) -> int:
    """Return the masked checksum of a record."""
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(row: dict[str, np.ndarray]) -> bytes:
    """Return a record with an Example of the row: text and bytes as bytes, integers as int64, other numbers as float32; all flat."""
    example = _example()()
    for name, value in row.items():
        feature = example.features.feature.add()
        feature.key = name
        flat = np.asarray(value).reshape(-1)
        if flat.dtype.kind in "SU":
            feature.value.bytes_list.value.extend(item if isinstance(item, bytes) else item.encode() for item in flat.tolist())
        elif flat.dtype.kind in "iub":
            feature.value.int64_list.value.extend(flat.astype(np.int64).tolist())
        elif flat.dtype.kind == "f":
            feature.value.float_list.value.extend(flat.astype(np.float32).tolist())
        else:
            raise TypeError(message(f"column {name!r} of {flat.dtype}", "numbers or text"))
    content = example.SerializeToString()
    length = struct.pack("<Q", len(content))
    return b"".join([length, struct.pack("<I", masked_crc(length)), content, struct.pack("<I", masked_crc(content))])


class Records:
    """The records of a file, by number. Raises FileFormatError, which names file and byte, if it is damaged or another format."""

    def __init__(self, path: Path, compression: str = "") -> None:
        self.path = path
        self._file: IO[bytes] = _unpacked(path, compression) if compression else path.open("rb")
        self.close = weakref.finalize(self, self._file.close)
        try:
            self._positions = self._find()
        except FileFormatError:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._positions) // 2

    def _find(self) -> array[int]:
        """Return the first byte and the length of each record's content."""
        size, position, positions = self._file.seek(0, os.SEEK_END), 0, array("Q")
        while position < size:
            head = read_at(self._file.fileno(), _HEAD, position)
            length, crc = struct.unpack("<QI", head) if len(head) == _HEAD else (0, -1)
            if crc != masked_crc(head[:8]):
                raise DataDamaged(message(f"{self.path}: no record at byte {position}", "a complete TFRecord file"))
            end = position + _HEAD + length + _TAIL
            if end > size:
                raise DataDamaged(message(f"{self.path}: ends at byte {size}, within the record at byte {position}", "a whole file"))
            positions.extend((position + _HEAD, length))
            position = end
        return positions

    def example(self, number: int) -> dict[str, Any]:
        """Return the features of a record: lists of bytes, arrays of float32 or of int64."""
        from google.protobuf.message import DecodeError

        position, length = self._positions[2 * number : 2 * number + 2]
        message_object = _example()()
        try:
            message_object.ParseFromString(read_at(self._file.fileno(), length, position))
        except DecodeError:
            raise DataDamaged(message(f"{self.path}: the record at byte {position - _HEAD} is not a tf.train.Example", "one")) from None
        return {entry.key: _values(entry.value) for entry in message_object.features.feature}


def _values(feature: Any) -> Any:
    if feature.HasField("bytes_list"):
        return list(feature.bytes_list.value)
    if feature.HasField("float_list"):
        return np.array(feature.float_list.value, np.float32)
    return np.array(feature.int64_list.value, np.int64)


def _unpacked(path: Path, compression: str) -> IO[bytes]:
    """Return an unnamed file with the decompressed content, which is then on disk, not in memory."""
    out = tempfile.TemporaryFile()  # noqa: SIM115  (it goes with the Records that reads it)
    unpacker = zlib.decompressobj(_WINDOWS[compression])
    try:
        with path.open("rb") as source:
            while block := source.read(1 << 20):
                while block:
                    out.write(unpacker.decompress(block, 1 << 24))
                    block = unpacker.unconsumed_tail
        out.write(unpacker.flush())
    except zlib.error as error:
        out.close()
        raise DataDamaged(message(f"{path}: {error}", f"a file packed with {compression}")) from None
    if not unpacker.eof:
        out.close()
        raise DataDamaged(message(f"{path}: ends too early", f"a complete file packed with {compression}"))
    out.flush()
    return out
