"""The native file that counts torch's memory on the CPU and refuses requests beyond a limit (allocator.cpp)."""
from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.engine.native.native_build import Source

KINDS = ("activation", "gradient", "workspace", "parameter", "optimizer state")
"""The kinds of blocks, in the order of the native file."""
ACTIVATION, GRADIENT, WORKSPACE, PARAMETER, STATE = range(5)
_MOST_BLOCKS = 1 << 16

_SOURCE = Source(Path(__file__).with_name("allocator.cpp"))


class _Block(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64), ("size", ctypes.c_uint64), ("number", ctypes.c_uint64), ("operation", ctypes.c_uint64),
        ("kind", ctypes.c_uint8), ("dtype", ctypes.c_uint8), ("axes", ctypes.c_uint8), ("unused", ctypes.c_uint8),
        ("lengths", ctypes.c_uint32 * 6), ("name", ctypes.c_char * 44),
    ]


class _Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("used", "peak", "blocks", "number", "limit", "refusals")] + [
        ("kinds", ctypes.c_uint64 * 5), ("peaks", ctypes.c_uint64 * 5)]


class _Refusal(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint64), ("requested", ctypes.c_uint64), ("used", ctypes.c_uint64), ("limit", ctypes.c_uint64),
                ("name", ctypes.c_char * 48)]


_SIZES = ctypes.sizeof(_Block) << 32 | ctypes.sizeof(_Figures) << 16 | ctypes.sizeof(_Refusal)


@dataclass(frozen=True)
class Block:
    """Memory that was taken and is not free: where, how much, by which operator (empty: none), as what, and the value in it if known."""

    address: int
    size: int
    number: int
    kind: int
    operator: str
    dtype: int | None
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Figures:
    """Current and peak bytes, and their division among `KINDS`; `number` counts all allocations."""

    used: int
    peak: int
    number: int
    refusals: int
    kinds: tuple[int, ...]
    peaks: tuple[int, ...]


@dataclass(frozen=True)
class Refusal:
    """A refusal of the limit: bytes requested, bytes in use then, the operator, and the largest blocks in use."""

    number: int
    requested: int
    used: int
    limit: int
    operator: str
    blocks: list[Block]


_library: Any = None
has_failed = False
"""True if the library was not built although nothing spoke against it."""
is_on = False
"""True if memory is counted; callers check it before they report anything."""


def why_not() -> str:
    """Return why memory cannot be counted here; empty if it can."""
    return _SOURCE.why_not() or ("the C++ compiler failed" if has_failed else "")


def start() -> bool:
    """Count allocations from now on; return whether that works. A missing library is built first, which takes seconds."""
    global _library, is_on, has_failed
    if _library is None:
        try:
            path = _SOURCE.build()
        except OSError:
            path = None
        if path is None:
            has_failed = True
            return False
        library = ctypes.CDLL(str(path))
        library.torchspore_memory_sizes.restype = ctypes.c_uint64
        library.torchspore_memory_on.restype = library.torchspore_memory_mark.restype = ctypes.c_bool
        library.torchspore_memory_limit.argtypes = [ctypes.c_uint64, ctypes.c_char_p]
        library.torchspore_memory_mark.argtypes = [ctypes.c_uint64, ctypes.c_uint8]
        library.torchspore_memory_follow.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        library.torchspore_memory_phase.argtypes = [ctypes.c_uint8]
        library.torchspore_memory_refusal.restype = library.torchspore_memory_blocks.restype = ctypes.c_uint64
        library.torchspore_memory_refusal.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        library.torchspore_memory_blocks.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        if library.torchspore_memory_sizes() != _SIZES:
            return False
        _library = library
    is_on = bool(_library.torchspore_memory_on())
    return is_on


def stop() -> None:
    """Stop counting; blocks that were counted are followed until they are freed."""
    global is_on
    if is_on:
        limit(0, "")
        _library.torchspore_memory_off()
        is_on = False


def limit(size: int, name: str) -> None:
    """Refuses from now on what would make the bytes held more than `size`, in the name of `name`; 0 refuses nothing."""
    _library.torchspore_memory_limit(size, name.encode(errors="replace"))


def figures() -> Figures | None:
    """Return the current figures; None if nothing is counted."""
    if not is_on:
        return None
    figures = _Figures()
    _library.torchspore_memory_figures(ctypes.byref(figures))
    return Figures(figures.used, figures.peak, figures.number, figures.refusals, tuple(figures.kinds), tuple(figures.peaks))


def reset_peak() -> None:
    """Reset the peak to the current bytes."""
    if is_on:
        _library.torchspore_memory_reset_peak()


def mark(address: int, kind: int) -> bool:
    """Set the kind of the block at `address`; return False if there is no such block."""
    return bool(_library.torchspore_memory_mark(address, kind))


def follow(before: torch.Tensor, now: torch.Tensor) -> None:
    """Record that `now` replaces `before`, which may be a Parameter."""
    if type(before) is torch.Tensor is type(now) and _is_on_cpu(before) and _is_on_cpu(now):
        _library.torchspore_memory_follow(before.untyped_storage().data_ptr(), now.untyped_storage().data_ptr())


def _is_on_cpu(t: torch.Tensor) -> bool:
    return t.device.type == "cpu" and t.layout is torch.strided


def phase(kind: int | None) -> None:
    """Set the kind of this thread's allocations; None leaves it to the native file: activation, or gradient in a backward pass."""
    _library.torchspore_memory_phase(len(KINDS) if kind is None else kind)


@contextmanager
def aside() -> Iterator[None]:
    """Exclude this thread's allocations in the block from the count and the limit: the compiler's trials are not the program's."""
    counted = _library if is_on else None
    if counted is not None:
        counted.torchspore_memory_aside(1)
    try:
        yield
    finally:
        if counted is not None:
            counted.torchspore_memory_aside(-1)


def tidy() -> None:
    """Free what a capture leaves behind, if memory is counted: Python would free it later, and a limit cannot wait."""
    if is_on:
        gc.collect()


def refusal(number: int) -> Refusal:
    """Return the refusal with this number; the last refusal for 0, or if that number is no longer stored."""
    refusal, rows = _Refusal(), (_Block * _MOST_BLOCKS)()
    count = _library.torchspore_memory_refusal(number, ctypes.byref(refusal), rows, _MOST_BLOCKS)
    return Refusal(refusal.number, refusal.requested, refusal.used, refusal.limit, _text(refusal.name), _blocks(rows, count))


def blocks() -> list[Block]:
    """Return the existing blocks, the largest first."""
    rows = (_Block * _MOST_BLOCKS)()
    return _blocks(rows, _library.torchspore_memory_blocks(rows, _MOST_BLOCKS))


def _blocks(rows: Any, count: int) -> list[Block]:
    return [_block(row) for row in rows[: min(count, _MOST_BLOCKS)]]


def _block(row: Any) -> Block:
    has_shape = row.axes <= 6
    return Block(row.address, row.size, row.number, row.kind, _text(row.name), row.dtype if has_shape else None,
                 tuple(row.lengths[: row.axes]) if has_shape else None)


def _text(name: bytes) -> str:
    return name.decode(errors="replace")
