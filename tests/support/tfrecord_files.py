"""Makes TFRecord files of `tf.train.Example`s, byte by byte: nothing of what reads them is used."""
from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np


def _crc(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _feature(value, packed):
    if isinstance(value, list):
        return _field(1, b"".join(_field(1, value_bytes) for value_bytes in value))
    if value.dtype.kind == "f":
        numbers = [array.tobytes() for array in value.astype("<f4")]
        return _field(2, _field(1, b"".join(numbers)) if packed else b"".join(b"\x0d" + content for content in numbers))
    numbers = [_varint(int(number)) for number in value]
    return _field(3, _field(1, b"".join(numbers)) if packed else b"".join(b"\x08" + content for content in numbers))


def example(features, packed=True):
    """An Example with lists of bytes, arrays of floating-point numbers and of integers."""
    entries = [_field(1, _field(1, name.encode()) + _field(2, _feature(value, packed))) for name, value in features.items()]
    return _field(1, b"".join(entries))


def record(content):
    """A record with its checksums."""
    head = struct.pack("<Q", len(content))
    return head + _crc(head) + content + _crc(content)


def row(n):
    """What the tests write: each kind of feature."""
    return {
        "id": np.array([n, -n]), "score": np.array([n / 4], np.float32), "name": [b"name%d" % n], "many": [b"x" * n, b"yyy"],
        "data": [bytes([n % 256]) * 5],
    }


def write(path, numbers, compression="", packed=True):
    """A file with a row for each number."""
    content = b"".join(record(example(row(n), packed)) for n in numbers)
    if compression:
        packer = zlib.compressobj(wbits=zlib.MAX_WBITS | (16 if compression == "GZIP" else 0))
        content = packer.compress(content) + packer.flush()
    Path(path).write_bytes(content)
    return str(path)
