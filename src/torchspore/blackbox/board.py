"""The memory that the program and its watcher share: what each thread runs now, and a ring of the last operators.

observe/debug/watch.cpp writes the slots and the ring with this layout; without it, Python's marks (`marks.py`) are the only source.
"""
from __future__ import annotations

import itertools
import mmap
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

HEADER, SLOT, MARK, ENTRY = 4096, 128, 256, 256
SLOTS, RING = 64, 2048
SIZE = HEADER + SLOTS * (SLOT + MARK) + RING * ENTRY
MAGIC = b"tsboard1"
_MARKS = HEADER + SLOTS * SLOT
_RING = _MARKS + SLOTS * MARK

RUNNING, ENDED, RECORDED = 0, 1, 2
"""The program runs; ended normally; wrote its record itself."""

_DTYPES = dict(enumerate(
    "UInt8 Int8 Int16 Int32 Int64 Float16 Float32 Float64 Complex32 Complex64 Complex128 Bool QInt8 QUInt8 QInt32 BFloat16".split()
)) | {23: "Float8E5M2", 24: "Float8E4M3FN", 27: "UInt16", 28: "UInt32", 29: "UInt64"}
_CODES = {name.lower(): code for code, name in _DTYPES.items()}
_BYTES = {
    "UInt8": 1, "Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8, "Float16": 2, "Float32": 4, "Float64": 8, "Complex32": 4, "Complex64": 8,
    "Complex128": 16, "Bool": 1, "BFloat16": 2, "UInt16": 2, "UInt32": 4, "UInt64": 8,
}
_DEVICES = {0: "CPU", 1: "GPU", 14: "Meta", 20: "Ascend"}


@dataclass(frozen=True)
class Running:
    """The current activity of a thread: a torch operator, or a section that Python marked."""

    thread: int
    """The thread id of pthread_self and faulthandler."""
    start: int
    """In nanoseconds of the monotonic clock."""
    name: str
    kind: str = "operator"


@dataclass(frozen=True)
class Value:
    """A Tensor that is an input of an operator."""

    dtype: str
    device: str
    shape: tuple[int, ...] | None
    address: int

    @property
    def bytes(self) -> int:
        """The size of its elements in bytes; 0 if unknown."""
        size = _BYTES.get(self.dtype, 0) if self.shape is not None else 0
        for length in self.shape or ():
            size *= length
        return size

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.dtype}[{shape}]" + ("" if self.device == "CPU" else f"@{self.device}")


@dataclass(frozen=True)
class OperatorRun:
    """One operator of the ring; `duration` is 0 if it had not ended."""

    number: int
    start: int
    duration: int
    thread: int
    name: str
    values: tuple[Value, ...]
    left_out: int


class Board:
    """The shared memory, used by both sides."""

    name_bytes = MARK - 17
    """Maximum length of a mark's kind and name: two numbers precede it, a zero follows it."""

    def __init__(self, handle: int) -> None:
        if os.fstat(handle).st_size < SIZE:
            raise ValueError(f"the watcher's memory has {os.fstat(handle).st_size} bytes, expected {SIZE}")
        self.handle = handle
        self.memory = mmap.mmap(handle, SIZE)
        self._numbers = itertools.count(1)

    @classmethod
    def create(cls) -> Board:
        """Create a board that only this process and its watcher can access."""
        handle = shared_file("board")
        os.ftruncate(handle, SIZE)
        board = cls(handle)
        board.begin()
        return board

    def begin(self) -> None:
        """Reset the board for this process. Threads keep their slots: they may be in the middle of an operator."""
        struct.pack_into("<8sQQQBB", self.memory, 0, MAGIC, os.getpid(), time.monotonic_ns(), 0, RUNNING, 0)
        self.memory[_RING:SIZE] = bytes(SIZE - _RING)

    # ---- the header

    @property
    def process(self) -> int:
        """The program's process."""
        return struct.unpack_from("<Q", self.memory, 8)[0]

    @property
    def started(self) -> int:
        """The time of the board's creation, in nanoseconds of the monotonic clock."""
        return struct.unpack_from("<Q", self.memory, 16)[0]

    @property
    def limit(self) -> int:
        """The longest time that an operator may run, in nanoseconds; 0 for no limit."""
        return struct.unpack_from("<Q", self.memory, 24)[0]

    @limit.setter
    def limit(self, nanoseconds: int) -> None:
        struct.pack_into("<Q", self.memory, 24, nanoseconds)

    @property
    def state(self) -> int:
        """RUNNING, ENDED or RECORDED."""
        return self.memory[32]

    @state.setter
    def state(self, state: int) -> None:
        self.memory[32] = state

    @property
    def mode(self) -> int:
        """0: nothing is recorded; 1: after a fault; 2: also at a normal end."""
        return self.memory[33]

    @mode.setter
    def mode(self, mode: int) -> None:
        self.memory[33] = mode

    @property
    def count(self) -> int:
        """The total number of operators written to the ring."""
        return struct.unpack_from("<Q", self.memory, 64)[0]

    # ---- current activity

    def running(self) -> Iterator[Running]:
        """Yield the current activity of every thread."""
        for at in range(HEADER, _MARKS, SLOT):
            thread, start = struct.unpack_from("<QQ", self.memory, at)
            if thread and start:
                yield Running(thread, start, _text(self.memory[at + 32 : at + SLOT]))
        for at in range(_MARKS, _RING, MARK):
            thread, start = struct.unpack_from("<QQ", self.memory, at)
            if thread and start:
                kind, _, name = _text(self.memory[at + 16 : at + MARK]).partition(" ")
                yield Running(thread, start, name, kind)

    def mark_slot(self, thread: int) -> int:
        """Return the offset of this thread's marks, or 0 if no slot is free; the caller holds a lock."""
        for at in range(_MARKS, _RING, MARK):
            if not struct.unpack_from("<Q", self.memory, at)[0]:
                struct.pack_into("<QQ", self.memory, at, thread, 0)
                return at
        return 0

    def free_marks(self, alive: set[int]) -> None:
        """Free the slots of threads that have ended."""
        for at in range(_MARKS, _RING, MARK):
            if struct.unpack_from("<Q", self.memory, at)[0] not in alive:
                struct.pack_into("<QQ", self.memory, at, 0, 0)

    def write(self, name: str, start: int, end: int, thread: int, values: list[tuple[str, tuple[int, ...]]], left_out: int) -> None:
        """Write an operator to the ring from Python: its times, and the dtype and shape of its inputs."""
        number = next(self._numbers)
        at = _RING + (number - 1) % RING * ENTRY
        entry = bytearray(ENTRY)
        struct.pack_into("<QQQIBB", entry, 0, number, start, max(1, end - start), thread & 0xFFFFFFFF, len(values), min(left_out, 255))
        entry[32:79] = name.encode()[:47].ljust(47, b"\0")
        for index, (dtype, shape) in enumerate(values):
            lengths = [min(length, 0xFFFFFFFF) for length in (*shape, *[0] * 6)[:6]]
            struct.pack_into("<BBBB6I", entry, 80 + 40 * index, _CODES.get(dtype, 255), 0, len(shape), 255, *lengths)
        self.memory[at : at + ENTRY] = bytes(entry)
        struct.pack_into("<Q", self.memory, 64, number)

    def ring(self) -> list[OperatorRun]:
        """Return the last operators in their order."""
        runs = []
        for at in range(_RING, SIZE, ENTRY):
            entry = _entry(self.memory[at : at + ENTRY])
            if entry is not None:
                runs.append(entry)
        return sorted(runs, key=lambda entry: entry.number)


def shared_file(name: str) -> int:
    """Return the handle of an unlinked file, which disappears with the last process that has it open."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(f"torchspore_{name}")
    import tempfile  # only if the system has no anonymous files

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def contents(handle: int, most: int = 1 << 26) -> bytes:
    """Return the contents of such a file, at most `most` bytes."""
    return os.pread(handle, min(most, os.fstat(handle).st_size), 0)


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _entry(raw: bytes) -> OperatorRun | None:
    number, start, duration, thread, count, left_out = struct.unpack_from("<QQQIBB", raw)
    if not number:
        return None
    values = []
    for at in range(80, 80 + 40 * min(count, 4), 40):
        dtype, device, axes, index, *lengths = struct.unpack_from("<BBBB6I", raw, at)
        shape = None if axes == 255 else tuple(lengths[:axes])
        where = _DEVICES.get(device, f"device{device}") + (f":{index}" if device not in (0, 14) and index != 255 else "")
        values.append(Value(_DTYPES.get(dtype, f"dtype{dtype}"), where, shape, struct.unpack_from("<Q", raw, at + 32)[0]))
    return OperatorRun(number, start, duration, thread, _text(raw[32:80]), tuple(values), left_out)
