"""`offload_param`: moves the state of optimizers out of memory between two steps.

On the CPU state becomes the memory of an unlinked file: the program reads and writes it as before, and after each step its pages leave
the process, for the kernel to keep or to drop. The disk space is reserved beforehand, so that no later write can fail. On an accelerator
state is in the host's memory, and moves to the device during its part of the step.
"""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import mmap
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from torchspore.base.forks import at_fork
from torchspore.base.text import format_bytes
from torchspore.context import effects
from torchspore.engine import process
from torchspore.engine.devices import device as devices
from torchspore.engine.memory import offload, unlinked_file
from torchspore.engine.memory.backing_stores import full_storage
from torchspore.engine.memory.saved_tensors import SMALL, can_move
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import TensorBase, frame
from torchspore.engine.torch_internals import torch_private

_PART = 32 << 20
"""Bytes of state that are at hand at a time."""
_DONTNEED = 4
"""Linux's MADV_DONTNEED."""
_FIXED = 0x10
"""Linux's MAP_FIXED: new memory replaces the old mapping."""


class _Mapping:
    """The state that is in files."""

    def __init__(self) -> None:
        self.byte_count = 0
        """Bytes of state in files."""


_MAPPING = _Mapping()


@functools.cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    library.mmap.restype = ctypes.c_void_p
    return library


def parted(optimizer: Any, group: Any) -> Iterator[Any]:
    """Yield an optimizer's group in parts of little state if its state moves out; else the group itself."""
    if not _acts():
        yield group
        return
    indices, size = list[int](), 0
    for index in group.indexes:
        state_bytes = sum(p._t.nbytes for p in of(optimizer, [index]))
        if indices and size + state_bytes > _PART:
            yield dataclasses.replace(group, indexes=indices)
            indices, size = [], 0
        indices.append(index)
        size += state_bytes
    yield dataclasses.replace(group, indexes=indices)


@contextmanager
def at_hand(optimizer: Any, indices: Sequence[int]) -> Iterator[None]:
    """A block for the step of some Parameters, whose state is at hand in it and away after it."""
    if not _acts():
        yield
        return
    moved = [p for p in of(optimizer, indices) if p._t.nbytes >= SMALL]
    device = devices.current()
    if device.type == "cpu":
        try:
            yield
        finally:
            for p in moved:
                put_away(p._t)
        return
    to_disk = offload.offload_settings().parameters == "disk"
    with on_device(moved, device, offload.offload_settings().pinned and not to_disk):
        yield
    for p in moved if to_disk else []:
        put_away(p._t)


@contextmanager
def on_device(tensors: Sequence[TensorBase], device: torch.device, pinned: bool) -> Iterator[None]:
    """A block in which these are on the device; after it they are in the host's memory, at the same address each time."""
    away = []
    for p in tensors:
        there = p._t if p._t.device.type == "cpu" and device.type != "cpu" else torch.empty_like(p._t, device="cpu", pin_memory=pinned)
        p._t = p._t.to(device, non_blocking=pinned, copy=device.type == "cpu")
        away.append(there)
    change_counters.rebinds += 1
    try:
        yield
    finally:
        for p, there in zip(tensors, away):
            p._t = there.copy_(p._t)
        change_counters.rebinds += 1
        effects.note(offload.NOTES, "the state of optimizers is in the host's memory between steps")


def put_away(t: torch.Tensor) -> None:
    """Release the pages of a tensor in a file; put a tensor without a file into one. Raises OffloadFailed if that is full."""
    memory = t.untyped_storage()
    mark = _files.get(memory._cdata)
    if mark is None or mark() is None:
        if t.device.type != "cpu" or not can_move(t) or torch_private.storage_users(memory) > 1 or t.requires_grad:
            return
        if not _into_file(t):
            return
        memory = t.untyped_storage()
    _library().madvise(memory.data_ptr(), memory.nbytes(), _DONTNEED)


_files: dict[int, Any] = {}
"""By their addresses, the memories that are in files."""


class _Mapped:
    """Marks, as long as it lives, that a memory block is mapped from our file, and its position there."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size


def _into_file(t: torch.Tensor) -> bool:
    """Move the tensor's values to the memory of a new file; return whether the file has room for it."""
    options, size = offload.offload_settings(), t.untyped_storage().nbytes()
    if options.disk_size is not None and _MAPPING.byte_count + size > options.disk_size:
        effects.note(offload.NOTES, "some optimizer state stays in memory: offload_disk_size leaves no room for it")
        return False
    file = unlinked_file.NamelessFile(options.path)
    file.reserve(0, size)
    storage = torch.from_file(file.path, shared=True, size=size, dtype=torch.uint8)
    shape = (t.storage_offset(), t.shape, t.stride())
    with torch.no_grad():
        storage.copy_(full_storage(t.untyped_storage()))
        memory = storage.untyped_storage()
        t.set_(memory, *shape)
    mark = _Mapped(memory.data_ptr(), size)
    _files[memory._cdata] = weakref.ref(mark)
    weakref.finalize(t, _gone, memory._cdata, mark)
    _MAPPING.byte_count += size
    effects.note(offload.NOTES, _describe_moved)
    return True


def _gone(key: int, mark: _Mapped) -> None:
    if _files.pop(key, None) is not None:
        _MAPPING.byte_count -= mark.size


_forking = threading.local()
"""In the thread that forks: the pipe by which the child says that its state is its own."""


def _before_fork() -> None:
    _forking.pipe = os.pipe() if _files and not process.FORK.forks_worker else None


def _in_parent() -> None:
    """Wait for the child's copy, so that later writes of this process do not reach the child."""
    if _forking.pipe is not None:
        reading, writing = _forking.pipe
        os.close(writing)
        os.read(reading, 1)                                          # also ends without a child
        os.close(reading)


def _in_child() -> None:
    """Mapped files are shared with the parent, and a fork's memory is not to be: state becomes memory of the child's own."""
    if _forking.pipe is None:
        return
    for mark in [mark for mark in (reference() for reference in _files.values()) if mark is not None]:
        contents = ctypes.string_at(mark.address, mark.size)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED
        if _library().mmap(mark.address, mark.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != mark.address:
            os.abort()                                               # rather than two processes that write into one state
        ctypes.memmove(mark.address, contents, mark.size)
    _files.clear()
    _MAPPING.byte_count = 0
    for end in _forking.pipe:
        os.close(end)


at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


def _describe_moved() -> str:
    if not _MAPPING.byte_count:
        return ""
    return f"{format_bytes(_MAPPING.byte_count)} of optimizer state are in unlinked files, and leave memory between steps"


def _acts() -> bool:
    """Return whether state moves out, and is here to be moved."""
    return offload.moves_state() and frame() is None


def of(optimizer: Any, indices: Sequence[int]) -> list[Any]:
    """Return the Parameters of state that belong to the Parameters at these positions."""
    count = len(optimizer.parameters)
    tuples = [
        value for value in vars(optimizer).values()
        if isinstance(value, tuple) and len(value) == count and value and all(isinstance(p, TensorBase) for p in value)
    ]
    weights = {id(p) for p in optimizer.parameters}
    return list({id(p): p for states in tuples for p in (states[i] for i in indices) if id(p) not in weights}.values())
