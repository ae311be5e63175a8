"""Faults in the use of streams: values that are read or overwritten too early, and memory that is released too early.

Work on one stream runs in order. Work on two streams has an order where a stream waits for an event of the other, or where Python waits
in between. torch gives released memory to the next tensor of the stream on which it was allocated; another stream that still uses it
must be named by `record_stream`.
"""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from stand_in import streams
from stand_in.counting import describe_caller
from stand_in.streams import Line

faults: list[str] = []
"""What was detected, in order."""


@dataclass
class Access:
    """Which work used the memory of a storage."""

    allocated_on: Line
    host: torch.UntypedStorage | None = None
    """The memory itself; queued work holds it, and not the device's storage, which the program releases."""
    writer: tuple[Line, int, str] | None = None
    readers: dict[int, tuple[Line, int, str]] = field(default_factory=dict)
    recorded: set[int] = field(default_factory=set)
    """Streams that were named by `record_stream`."""
    is_of_host: bool = False
    """Whether it is pinned memory of the host, whose allocator notes the streams of copies by itself."""

    @property
    def is_being_written(self) -> bool:
        """Whether queued work has still to write it."""
        return self.writer is not None and self.writer[0].ran < self.writer[1]


_accesses: dict[int, Access] = {}


def access_of(storage: torch.UntypedStorage, line: Line | None = None, host: torch.UntypedStorage | None = None) -> Access:
    """Return the notes on a storage of the device; `line` is the stream on which a new one is allocated."""
    access = _accesses.get(storage._cdata)
    if access is None:
        access = _accesses[storage._cdata] = Access(line or streams.default_stream().line, host)
        access.is_of_host = storage.device.type == "cpu"
        weakref.finalize(storage, _release, storage._cdata, access).atexit = False
    return access


def use(name: str, line: Line, number: int, read: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    """Note what the work `number` of a stream reads and writes, and report what it does too early."""
    caller = describe_caller()
    label = f"{name} at {caller}"
    for tensor in (*read, *outputs):
        access = access_of(tensor.untyped_storage())
        if access.writer is not None and not _is_before(access.writer, line):
            faults.append(f"{label} on stream {line.number} uses what {access.writer[2]} writes on stream {access.writer[0].number}, "
                          "and does not wait for it")
    for tensor in outputs:
        access = access_of(tensor.untyped_storage())
        for reader in access.readers.values():
            if not _is_before(reader, line):
                faults.append(f"{label} on stream {line.number} overwrites what {reader[2]} reads on stream {reader[0].number}, "
                              "and does not wait for it")
        access.writer, access.readers = (line, number, label), {}
    for tensor in read:
        access_of(tensor.untyped_storage()).readers[line.number] = line, number, label


def record(tensor: torch.Tensor, number: int) -> None:
    """Note that a stream uses the memory of a tensor beyond its release, for `record_stream`."""
    access_of(tensor.untyped_storage()).recorded.add(number)


def _is_before(work: tuple[Line, int, str], line: Line) -> bool:
    """Return whether work is done before the next work of a stream."""
    other, number, _ = work
    return other is line or max(line.clock.get(other.number, 0), streams.host_clock.get(other.number, 0)) >= number


def _release(key: int, access: Access) -> None:
    _accesses.pop(key, None)
    if access.is_of_host:
        return
    for work in (*access.readers.values(), *([] if access.writer is None else [access.writer])):
        if work[0].number not in access.recorded and not _is_before(work, access.allocated_on):
            faults.append(f"memory of stream {access.allocated_on.number} is released while {work[2]} may still use it on stream "
                          f"{work[0].number}: record_stream was not called")
