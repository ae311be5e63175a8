"""Encrypted files in MindSpore's format: AES or SM4 over blocks of 64 MiB, by the library `cryptography`.

Each block: a magic number for the mode (4 bytes), for GCM the tag (16), then as little-endian int32 the number of bytes that follow,
the length of the initialisation vector and the vector, the length of the encrypted bytes and these. Measured on files of 2.10: of the 16
bytes of GCM's vector the first 12 count, and CBC pads as PKCS #7 does.
"""
from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

from torchspore.base.text import list_choices, message

MODES = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9, "SM4-CBC": 0x7F3A5EDA}
KEYS = (16, 24, 32)
BLOCK = 64 * 1024**2
_VECTOR, _TAG, _COUNTED = 16, 16, 12


class NotDecrypted(ValueError):
    """The bytes were not encrypted with this key and mode; the text has the details."""


def check(call: str, prefix: str, key: Any, mode: Any) -> None:
    """Raises TypeError and ValueError for a key or mode that can't be used; `prefix` is 'enc' or 'dec'."""
    if not isinstance(key, bytes):
        raise TypeError(message(f"{call}({prefix}_key=...)", f"bytes, got {type(key).__name__}"))
    if mode not in MODES:
        raise ValueError(message(f"{call}({prefix}_mode={mode!r})", list_choices(MODES)))
    lengths = (16,) if mode == "SM4-CBC" else KEYS
    if len(key) not in lengths:
        expected = f"{list_choices(map(str, lengths))} bytes"
        raise ValueError(message(f"{call}({prefix}_key=...) of {len(key)} bytes", expected).replace("'", ""))
    _library(call)


def encrypted(content: bytes, key: bytes, mode: str) -> Iterator[bytes]:
    """Yield the file's blocks."""
    for start in range(0, max(len(content), 1), BLOCK):
        part, vector = content[start : start + BLOCK], os.urandom(_VECTOR)
        tag = b""
        if mode == "AES-GCM":
            worker = _cipher(key, mode, vector, None).encryptor()
            part = worker.update(part) + worker.finalize()
            tag = worker.tag
        else:
            pad = _VECTOR - len(part) % _VECTOR
            worker = _cipher(key, mode, vector, None).encryptor()
            part = worker.update(part + bytes([pad]) * pad) + worker.finalize()
        block = struct.pack("<i", _VECTOR) + vector + struct.pack("<i", len(part)) + part
        yield struct.pack("<I", MODES[mode]) + tag + struct.pack("<i", len(block)) + block


def is_encrypted(content: bytes | memoryview) -> bool:
    """Return whether a file begins like an encrypted one."""
    return len(content) >= 4 and struct.unpack("<I", content[:4])[0] in MODES.values()


def decrypted(content: bytes | memoryview, key: bytes, mode: str) -> bytes:
    """Return the decrypted content. Raises NotDecrypted."""
    if not is_encrypted(content):
        raise NotDecrypted("it is not encrypted")
    parts, at = [], 0
    while at < len(content):
        part, at = _block(memoryview(content), at, key, mode)
        parts.append(part)
    return b"".join(parts)


def _block(content: memoryview, at: int, key: bytes, mode: str) -> tuple[bytes, int]:
    def take(count: int) -> bytes:
        nonlocal at
        if not 0 <= count <= len(content) - at:
            raise NotDecrypted(f"it is truncated at byte {at}")
        at += count
        return bytes(content[at - count : at])

    magic = struct.unpack("<I", take(4))[0]
    if magic != MODES[mode]:
        other = next((name for name, number in MODES.items() if number == magic), None)
        raise NotDecrypted(f"it was encrypted with {other!r}" if other else f"a block begins with {magic:#x}")
    tag = take(_TAG) if mode == "AES-GCM" else None
    take(4)
    vector = take(struct.unpack("<i", take(4))[0])
    part = take(struct.unpack("<i", take(4))[0])
    if len(vector) != _VECTOR:
        raise NotDecrypted(f"it has a vector of {len(vector)} bytes")
    try:
        worker = _cipher(key, mode, vector, tag).decryptor()
        plain = worker.update(part) + worker.finalize()
    except Exception:  # the library has one class for each reason, without further information
        raise NotDecrypted("the key is another one, or the file was changed") from None
    if tag is not None:
        return plain, at
    pad = plain[-1] if plain else 0
    if not 1 <= pad <= _VECTOR or plain[-pad:] != bytes([pad]) * pad:
        raise NotDecrypted("the key is another one, or the file was changed")
    return plain[:-pad], at


def _cipher(key: bytes, mode: str, vector: bytes, tag: bytes | None) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if mode == "AES-GCM":
        return Cipher(algorithms.AES(key), modes.GCM(vector[:_COUNTED], tag))
    if mode == "AES-CBC":
        return Cipher(algorithms.AES(key), modes.CBC(vector))
    return Cipher(algorithms.SM4(key), modes.CBC(vector))


def _library(call: str) -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ImportError(message(f"{call}: the library cryptography is missing", "it to be installed",
                                  hint='write pip install "torchspore[encryption]"')) from None
