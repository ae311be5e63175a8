"""MindRecord's packing of int32 and int64 arrays: each number takes only as many bytes as it needs.

First a big-endian uint32 with the count. Then one byte for every four numbers with two bits for each - 0: one byte, 1: two, 2: four, 3:
eight - the first in the highest bits; then the numbers, little-endian. Determined from files that MindSpore 2.10 wrote.
"""
from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_GROUP = 4
_SHIFTS = np.array([6, 4, 2, 0])
_WIDTHS = np.array([1, 2, 4, 8])
_SMALLER = (np.int8, np.int16, np.int32)


def pack(values: Array) -> bytes:
    """Pack an array of integers, in C order."""
    flat = np.ascontiguousarray(values, np.int64).reshape(-1)
    codes = np.zeros(-(-flat.size // _GROUP) * _GROUP, np.int64)
    for code, kind in enumerate(_SMALLER, 1):
        limits = np.iinfo(kind)
        codes[: flat.size][(flat < limits.min) | (flat > limits.max)] = code
    heads = (codes.reshape(-1, _GROUP) << _SHIFTS).sum(axis=1).astype(np.uint8)
    starts, end = _offsets(codes[: flat.size])
    out = np.zeros(end, np.uint8)
    for code, width in enumerate(_WIDTHS):
        chosen = np.flatnonzero(codes[: flat.size] == code)
        out[starts[chosen][:, None] + np.arange(width)] = flat[chosen].astype(f"<i{width}").view(np.uint8).reshape(-1, width)
    return flat.size.to_bytes(4, "big") + heads.tobytes() + out.tobytes()


def unpack(content: bytes) -> Array:
    """Return the numbers (N,), int64. Raises ValueError if the length of the content does not match."""
    count = int.from_bytes(content[:4], "big")
    groups = -(-count // _GROUP)
    data = np.frombuffer(content, np.uint8)[4:]
    if len(content) < 4 or groups > data.size:
        raise ValueError(f"{len(content)} bytes of packed integers with the count {count}")
    codes = ((data[:groups, None] >> _SHIFTS) & 3).reshape(-1)[:count]
    starts, end = _offsets(codes)
    if end != data.size - groups:
        raise ValueError(f"{len(content)} bytes of packed integers, where {count} of them end elsewhere")
    out = np.zeros(count, np.int64)
    for code, width in enumerate(_WIDTHS):
        chosen = np.flatnonzero(codes == code)
        out[chosen] = data[groups + starts[chosen][:, None] + np.arange(width)].reshape(-1).view(f"<i{width}")
    return out


def _offsets(codes: Array) -> tuple[Array, int]:
    """Return the start of each number, and the end of the last one."""
    ends = _WIDTHS[codes].cumsum()
    return ends - _WIDTHS[codes], int(ends[-1]) if codes.size else 0
