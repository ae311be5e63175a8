"""Checkpoint files compared byte by byte: without the field that torchspore writes in front, which MindSpore skips."""
from __future__ import annotations

import zlib

HEAD, MARK, CHECKSUM = b"\x70\x01", b"crc_num", 10


def without_head(content: bytes) -> bytes:
    """Return the file without the field in front, with the checksum of the rest at its end; a file of MindSpore as it is."""
    if not content.startswith(HEAD):
        return content
    entries = content[len(HEAD) : -len(MARK) - CHECKSUM]
    return entries + MARK + zlib.crc32(entries).to_bytes(CHECKSUM, "big")
