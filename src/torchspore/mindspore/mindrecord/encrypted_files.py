"""Encrypted MindRecord files and their indexes.

A file: blocks of an encrypted checkpoint (`base/encryption.py`), each after its length in 4 bytes, big-endian; then a length of 0, the
mode in 7 bytes and `ENCRYPT`. The output of a program's encryption function is stored unchanged, with the mode `UDF-ENC`. For reading, the
decrypted content is written into a private folder of this user, which is removed with the process.
"""
from __future__ import annotations

import atexit
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from torchspore.base.text import message
from torchspore.errors import DataDamaged
from torchspore.mindspore.mindrecord import config
from torchspore.mindspore.mindrecord.exceptions import MindRecordException

_END, _CUSTOM, _GCM = b"ENCRYPT", b"UDF-ENC", b"AES-GCM"
_TRAILER = 4 + len(_GCM) + len(_END)
_LONGEST = (64 << 20) + 4096


class SealedFile(MindRecordException, RuntimeError):
    """A MindRecord file is encrypted but there is no key, or the reverse, or the key is wrong."""


def seal(source: BinaryIO, size: int, target: BinaryIO) -> None:
    """Encrypt the first `size` bytes of `source`."""
    key, mode, _ = config.current()
    assert key is not None
    source.seek(0)
    if callable(mode):
        mode(source, size, target, key)
        target.write(bytes(4) + _CUSTOM + _END)
        return
    from torchspore.base import encryption

    encryption.check("set_enc_key", "enc", key.encode(), "AES-GCM")
    while part := source.read(min(encryption.BLOCK, size)):
        size -= len(part)
        for block in encryption.encrypted(part, key.encode(), "AES-GCM"):
            target.write(struct.pack(">I", len(block)) + block)
    target.write(bytes(4) + _GCM + _END)


def readable(path: Path) -> Path:
    """Return a path of the decrypted content of a file, and of its index. Raises SealedFile, FileFormatError."""
    key, mode, other = config.current()
    kind = _kind(path)
    if kind is None:
        if key is not None:
            hint = "set_enc_key(None) reads plain ones"
            raise SealedFile(message(f"{path}: a file that is not encrypted", "an encrypted one", hint=hint))
        return path
    if key is None:
        raise SealedFile(message(f"{path}: an encrypted file", "a key", hint="call mindspore.mindrecord.set_enc_key(...)"))
    status = path.stat()
    cache_key = (str(path.absolute()), status.st_mtime_ns, status.st_size, key, other or mode)
    if cache_key not in _plain:
        folder = Path(tempfile.mkdtemp(prefix="torchspore-mindrecord-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for source in (path, path.with_name(path.name + ".db")):
            if source.is_file():
                _open(source, folder / source.name, key, other or mode)
        _plain[cache_key] = folder / path.name
    return _plain[cache_key]


_plain: dict[tuple[object, ...], Path] = {}


def _kind(path: Path) -> bytes | None:
    """Return the mode at the end of an encrypted file, None for another file."""
    if not path.is_file() or path.stat().st_size < _TRAILER:
        return None
    with path.open("rb") as file:
        file.seek(-len(_END) - len(_GCM), 2)
        kind, end = file.read(len(_GCM)), file.read()
    return kind if end == _END and kind in (_GCM, _CUSTOM) else None


def _open(path: Path, target: Path, key: str, mode: object) -> None:
    kind = _kind(path)
    with path.open("rb") as file, target.open("xb") as out:
        if callable(mode):
            mode(file, path.stat().st_size - len(_END), out, key)
            return
        if kind == _CUSTOM:
            hint = "call mindspore.mindrecord.set_dec_mode(function)"
            subject = f"{path}: encrypted by a function of the program that wrote it"
            raise SealedFile(message(subject, "the function that decrypts it", hint=hint))
        for part in _blocks(path, file, key):
            out.write(part)


def _blocks(path: Path, file: BinaryIO, key: str) -> Iterator[bytes]:
    from torchspore.base import encryption

    encryption.check("set_enc_key", "enc", key.encode(), "AES-GCM")
    while True:
        position, head = file.tell(), file.read(4)
        length = int.from_bytes(head, "big")
        block = file.read(length) if length <= _LONGEST else b""
        if len(head) < 4 or len(block) < length:
            raise DataDamaged(message(f"{path}: no complete block at byte {position}", "an encrypted MindRecord file"))
        if not length:
            return
        try:
            yield encryption.decrypted(block, key.encode(), "AES-GCM")
        except encryption.NotDecrypted as error:
            raise SealedFile(message(f"{path}: {error}", "the key with which it was written")) from None
