"""Destinations of moved memory: an unlinked file on disk or, for an accelerator, the memory of its host.

A *store* takes the memory of a tensor and returns a *piece*, which prefetches it (`fetch`) and returns it (`get`) any number of times.
Copies run concurrently with the program: in separate threads to and from disk, in a separate stream to and from the host. `totals` counts
the moved bytes.
"""
from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from torchspore.base.text import format_bytes
from torchspore.engine.memory.unlinked_file import Full, NamelessFile

Memory = torch.UntypedStorage


@dataclass
class Totals:
    """Totals of this process: pieces and bytes moved out and back, and the seconds that the program waited for them."""

    pieces: int = 0
    out: int = 0
    back: int = 0
    waited: float = 0.0
    refused: int = 0
    """Bytes that stayed because there was not a room for them."""

    def __str__(self) -> str:
        out, back = format_bytes(self.out), format_bytes(self.back)
        text = f"{out} moved out in {self.pieces} pieces, {back} came back, {self.waited:.2f} s waited for"
        return text + (f"; {format_bytes(self.refused)} stayed, because the space is used up" if self.refused else "")


totals = Totals()


class Piece(Protocol):
    """Memory that has moved out."""

    size: int

    def fetch(self) -> None:
        """Begins to bring it back."""

    def get(self) -> Memory:
        """It, back again; waits for it."""


class Store(Protocol):
    """A store that takes memory."""

    def move(self, memory: Memory) -> Piece | None:
        """Return the memory as a piece, so that the caller can release it; None if the store is full."""

    def can_fetch(self) -> bool:
        """Return whether one more piece may be fetched ahead."""


class Disk:
    """An unlinked file. Up to `depth` reads, and as many writes, run concurrently with the program; 0 runs them one after the other."""

    def __init__(self, folder: str, most: int | None, depth: int, step: int) -> None:
        self.file = NamelessFile(folder, most)
        self.step, self._depth = step, depth
        self._writing: deque[Future[None]] = deque()
        self.reading: set[int] = set()
        # Reads do not wait for writes.
        self._writers = ThreadPoolExecutor(min(depth, 8), "torchspore-offload") if depth else None
        self.readers = ThreadPoolExecutor(min(depth, 8), "torchspore-offload") if depth else None

    def move(self, memory: Memory) -> DiskPiece | None:
        """Writes it into a region of the file. Raises OffloadFailed where this, or an earlier write, did not go well."""
        started, size = time.perf_counter(), memory.nbytes()
        while self._writing and (len(self._writing) >= self._depth or self._writing[0].done()):
            self._writing.popleft().result()
        try:
            at = self.file.take(size)
        except Full:
            totals.refused += size
            return None
        piece = DiskPiece(self, at, size)
        if self._writers is None:
            self._write(memory, at)
        else:
            piece.writing = self._writers.submit(self._write, memory, at)
            self._writing.append(piece.writing)
        totals.pieces, totals.out, totals.waited = totals.pieces + 1, totals.out + size, totals.waited + time.perf_counter() - started
        return piece

    def _write(self, memory: Memory, at: int) -> None:
        self.file.write(_bytes(memory), at, self.step)

    def can_fetch(self) -> bool:
        return len(self.reading) < self._depth


class DiskPiece:
    """A region of the file, which is released with the last reference to the piece."""

    writing: Future[None] | None = None
    _coming: Future[Memory] | None = None

    def __init__(self, disk: Disk, at: int, size: int) -> None:
        self.disk, self.at, self.size = disk, at, size

    def fetch(self) -> None:
        if self._coming is None and self.disk.readers is not None:
            self.disk.reading.add(id(self))
            self._coming = self.disk.readers.submit(self._read, Memory(self.size))

    def get(self) -> Memory:
        started = time.perf_counter()
        if self._coming is not None:
            block, self._coming = self._coming.result(), None
            self.disk.reading.discard(id(self))
        else:
            block = self._read(Memory(self.size))
        totals.back, totals.waited = totals.back + self.size, totals.waited + time.perf_counter() - started
        return block

    def _read(self, memory: Memory) -> Memory:
        if self.writing is not None:
            self.writing.result()
            self.writing = None
        self.disk.file.read(_bytes(memory), self.at, self.disk.step)
        return memory

    def __del__(self) -> None:
        self.disk.reading.discard(id(self))
        file, at, size = self.disk.file, self.at, self.size
        waits = [future for future in (self.writing, self._coming) if future is not None and not future.cancel() and not future.done()]
        if waits:
            waits[-1].add_done_callback(lambda _: file.give(at, size))     # a read waits for its write
        else:
            file.give(at, size)


def _bytes(memory: Memory) -> Any:
    """The bytes of memory on the CPU."""
    return memoryview((ctypes.c_char * memory.nbytes()).from_address(memory.data_ptr())).cast("B")


class Host:
    """The host's memory, for values of an accelerator: at most `most` bytes, allocated in blocks of `block` bytes, pinned on request.

    Copies run in a separate stream. Beyond `most` the `next` store takes over, if one is set.
    """

    def __init__(self, device: torch.device, most: int | None, block: int, pinned: bool, following: Any = None) -> None:
        self._module: Any = torch.get_device_module(device)
        self.device, self._most, self._block, self._pinned, self._following = device, most, block, pinned, following
        self.stream = self._module.Stream(device=device)
        self._pool = HostPool(most, block, pinned)
        self.fetching: set[int] = set()

    def move(self, memory: Memory) -> Piece | None:
        """Copy the memory to the host while the device continues."""
        size = memory.nbytes()
        there = self._pool.take(size)
        if there is None:
            if self._following is not None:
                return self._through(memory)
            totals.refused += size
            return None
        self.stream.wait_stream(self._module.current_stream(self.device))
        here = full_storage(memory)
        with self._module.stream(self.stream):
            there.copy_(here, non_blocking=self._pinned)
        # The device's allocator hands this memory out again only when the copy has been made.
        here.record_stream(self.stream)
        done = self._module.Event()
        done.record(self.stream)
        totals.pieces, totals.out = totals.pieces + 1, totals.out + size
        return HostPiece(self, there, done, size)

    def _through(self, memory: Memory) -> Piece | None:
        """To the disk, through the host's memory."""
        piece = self._following.move(full_storage(memory).cpu().untyped_storage())
        return None if piece is None else ThroughPiece(piece, self.device)

    def can_fetch(self) -> bool:
        return len(self.fetching) < 2

    def wait(self, event: Any, memory: torch.Tensor) -> None:
        """Make the program's stream wait for a copy, and keep the memory that the copy reads."""
        current = self._module.current_stream(self.device)
        current.wait_event(event)
        memory.record_stream(current)

    def give(self, there: torch.Tensor) -> None:
        self._pool.give(there)

    def copied(self, there: torch.Tensor, out: Any) -> tuple[torch.Tensor, Any]:
        """A copy on the device, on its way there, and the event of its arrival."""
        self.stream.wait_event(out)
        with self._module.stream(self.stream):
            here = torch.empty(there.numel(), dtype=torch.uint8, device=self.device)
            here.copy_(there, non_blocking=self._pinned)
            arrived = self._module.Event()
            arrived.record(self.stream)
        return here, arrived


class HostPiece:
    """A copy in the host's memory."""

    _coming: tuple[torch.Tensor, Any] | None = None

    def __init__(self, host: Host, there: torch.Tensor, out: Any, size: int) -> None:
        self._host, self._there, self._out, self.size = host, there, out, size

    def fetch(self) -> None:
        if self._coming is None:
            self._host.fetching.add(id(self))
            self._coming = self._host.copied(self._there, self._out)

    def get(self) -> Memory:
        self.fetch()
        assert self._coming is not None
        here, arrived = self._coming
        self._coming = None
        self._host.fetching.discard(id(self))
        self._host.wait(arrived, here)
        totals.back += self.size
        return here.untyped_storage()

    def __del__(self) -> None:
        self._host.fetching.discard(id(self))
        # Pending copies use this memory in the stream of all later copies, which run after them: Python need not wait.
        self._host.give(self._there)


class ThroughPiece:
    """A copy on disk of what lay on an accelerator."""

    def __init__(self, piece: DiskPiece, device: torch.device) -> None:
        self._piece, self._device, self.size = piece, device, piece.size

    def fetch(self) -> None:
        self._piece.fetch()

    def get(self) -> Memory:
        return full_storage(self._piece.get()).to(self._device).untyped_storage()


class HostPool:
    """Memory of the host in blocks, divided into pieces; a released piece is reused for the next piece of its size."""

    def __init__(self, most: int | None, block: int, pinned: bool) -> None:
        self._most, self._block, self._pinned = most, block, pinned
        self._taken, self._lock = 0, threading.Lock()
        self._free: dict[int, list[torch.Tensor]] = {}
        self._rest: torch.Tensor | None = None
        self._returned: deque[torch.Tensor] = deque()

    def take(self, size: int) -> torch.Tensor | None:
        """Return a piece of this size; None if the limit is reached."""
        with self._lock:
            while self._returned:
                there = self._returned.popleft()
                self._free.setdefault(there.numel(), []).append(there)
            if self._free.get(size):
                return self._free[size].pop()
            if self._rest is None or self._rest.numel() < size:
                block_size = max(size, self._block)
                if self._most is not None and self._taken + block_size > self._most:
                    block_size = size
                if self._most is not None and self._taken + block_size > self._most:
                    return None
                self._rest = torch.empty(block_size, dtype=torch.uint8, pin_memory=self._pinned)
                self._taken += block_size
            piece, self._rest = self._rest[:size], self._rest[-(-size // 512) * 512:]
            return piece

    def give(self, there: torch.Tensor) -> None:
        self._returned.append(there)


def full_storage(memory: Memory) -> torch.Tensor:
    """All bytes of memory as one tensor."""
    return torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory, 0, (memory.nbytes(),), (1,))
