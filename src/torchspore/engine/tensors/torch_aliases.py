"""Torch tensors that share memory with Tensors, while a gradient is recorded.

There a write into a Tensor creates a new version in other memory, because earlier reads need the old values for their gradients. A torch
tensor that the program got before (`to_torch`, a view of it) still shows the old memory. From the first write into memory that torch
tensors share, a mode of torch replaces them: a call of a torch function gets the newest version. A write of torch goes into it too.
"""
from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchspore.base.frames import is_torchspore_file, line_prefix
from torchspore.base.text import message
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.delayed_values import is_delayed
from torchspore.engine.tensors.in_place_versions import Versions, base_of
from torchspore.engine.tensors.tensor import Frame, TensorBase, raw
from torchspore.engine.torch_internals import torch_private

_SHARED, _LIFTED = "_torchspore_shared_", "_torchspore_lifted_"
"""Attributes of a storage: True if torch tensors of the program may show it; True for an input of a graph that stands for such memory."""
_OUTDATED, _LENT = "_torchspore_outdated_", "_torchspore_lent_"
"""Attributes of a storage: its record in the innermost frame that wrote into it; the versions of other memory that are in it."""
WRITES_SHARED = "writes into a Tensor whose memory a torch tensor shows, inside a gradient"

open_watches = 0
"""The number of watches in all threads: operators read one integer before they look for outdated arguments."""

_lock = threading.Lock()


class _Local(threading.local):
    watches = 0
    is_in_backward = False


_local = _Local()


class _Outdated:
    """The record of memory that a frame wrote into: the tensor whose memory it is, and the versions that replaced it."""

    __slots__ = ("around", "base", "line", "versions")

    def __init__(self, base: torch.Tensor, versions: Versions, around: Any) -> None:
        self.base, self.versions, self.around, self.line = base, versions, around, line_prefix()

    def error(self) -> OutdatedView:
        """Return the error for a tensor of this memory that can't show the write."""
        return OutdatedView(message(
            f"{self.line}a write into a Tensor inside a gradient, while a detached tensor or a view of another dtype shows the same memory",
            "a write into separate memory", hint="write into a copy, or call torchspore.to_torch or from_torch again after the write",
        ))


def _notes(t: torch.Tensor) -> dict[str, Any] | None:
    """Return the attributes of the storage of `t`, which exist as long as its memory; None for a tensor without one.

    A delayed value has none yet: asking for it would compute the value.
    """
    if is_delayed(t):
        return None
    try:
        return t.untyped_storage().__dict__
    except (NotImplementedError, RuntimeError):
        return None


def share(t: torch.Tensor) -> torch.Tensor:
    """Return `t`, which the program gets from torch or hands to torch."""
    notes = _notes(t)
    if notes is not None:
        notes[_SHARED] = True
    return t


def is_shared(t: torch.Tensor) -> bool:
    """Return whether torch tensors of the program may show the memory of `t`."""
    notes = _notes(t)
    return notes is not None and _SHARED in notes


def follow(t: torch.Tensor, fake: torch.Tensor) -> None:
    """Record that `fake`, an input of a graph, stands for `t`: other tensors of its memory are other inputs, or constants."""
    if is_shared(t) and (notes := _notes(fake)) is not None:
        notes[_SHARED] = notes[_LIFTED] = True


def torch_tensor(tensor: TensorBase) -> torch.Tensor:
    """Return the torch tensor of a Tensor for a torch function of the program, which may write into it."""
    t = share(raw(tensor))
    notes = _notes(t)
    if notes is None or _LENT not in notes:
        return t
    for reference, base in notes.pop(_LENT):
        versions = reference()
        if versions is not None:
            versions.separate(base)
    return share(raw(tensor))


def lend(value: torch.Tensor, versions: Versions, base: torch.Tensor) -> torch.Tensor:
    """Return the tensor that becomes the version of `base` with the values of `value`: in the same memory, until a torch function gets it.

    It is a copy if torch functions have the memory of `value` already.
    """
    notes = _notes(value)
    if notes is None:
        return value
    if _SHARED in notes:
        return value.clone()
    notes.setdefault(_LENT, []).append((weakref.ref(versions), base))
    return value


class Watch:
    """The memory that one frame wrote into and torch tensors show; a mode of torch replaces them until `close`."""

    def __init__(self) -> None:
        self._written: list[tuple[Any, _Outdated]] = []

    def begin_write(self, frame: Frame, base: torch.Tensor, versions: Versions) -> None:
        """Called in a frame before a write into the memory of `base`, which is not a view."""
        newest = versions.newest(base)
        current = base if newest is None else newest
        notes = _notes(current)
        if notes is None or _SHARED not in notes or torch_private.is_transforming():
            return
        if _LIFTED in notes:
            frame.acts_beside(WRITES_SHARED)
        around = notes.get(_OUTDATED)
        if around is not None and around.versions is versions:
            if versions.origin(base) is not versions.origin(around.base):
                raise around.error()
            return
        if not self._written:
            _open_watch()
        record = notes[_OUTDATED] = _Outdated(current, versions, around)
        self._written.append((current.untyped_storage(), record))

    def read(self, value: torch.Tensor, versions: Versions) -> torch.Tensor:
        """Return the present value of a Tensor, also of one that shows memory of another."""
        return _newest(value) if self._written else versions.read(value)

    def close(self) -> None:
        """Forget the writes: the memory gets the last values."""
        if not self._written:
            return
        for storage, record in self._written:
            storage.__dict__.pop(_OUTDATED, None)
            if record.around is not None:
                storage.__dict__[_OUTDATED] = record.around
        self._written.clear()
        _close_watch()


def _open_watch() -> None:
    global open_watches
    with _lock:
        open_watches += 1
    _local.watches += 1
    if _local.watches == 1:
        torch_private.change_function_modes(lambda modes: [_NewestVersions(), *modes])       # below the program's, which end in order


def _close_watch() -> None:
    global open_watches
    with _lock:
        open_watches -= 1
    _local.watches -= 1
    if _local.watches == 0:
        torch_private.change_function_modes(lambda modes: [mode for mode in modes if not isinstance(mode, _NewestVersions)])


@contextmanager
def in_backward() -> Iterator[None]:
    """Run a backward pass, whose functions get the tensors that they have saved."""
    before, _local.is_in_backward = _local.is_in_backward, True
    try:
        yield
    finally:
        _local.is_in_backward = before


class _NewestVersions(TorchFunctionMode):
    """Lets the program's calls of torch functions compute with the newest versions."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        caller = sys._getframe(1)
        while caller.f_code.co_name == "__torch_function__" and caller.f_back is not None:     # a mode of the program is in between
            caller = caller.f_back
        if _local.is_in_backward or is_torchspore_file(caller.f_code.co_filename):
            return func(*args, **kwargs)
        return func(*current(args), **current(kwargs))


def current(value: Any) -> Any:
    """Return `value` with the newest version for each torch tensor in it whose memory a gradient has written into."""
    if not _local.watches or not any(isinstance(leaf, torch.Tensor) and _record(leaf) is not None for leaf in tree.leaves(value)):
        return value
    return tree.mapped(value, lambda leaf: _newest(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def _record(t: torch.Tensor) -> _Outdated | None:
    notes = _notes(t)
    return None if notes is None else notes.get(_OUTDATED)


def _newest(t: torch.Tensor) -> torch.Tensor:
    record = _record(t)
    if record is None:
        return t
    base = base_of(t)
    if record.versions.has(base):
        return record.versions.read(t)
    # Another view of the same memory, such as a detached one.
    memory = record.base
    start = int(t.storage_offset() - memory.storage_offset())
    if t.requires_grad or t.dtype is not memory.dtype or t.is_conj() or t.is_neg() or not _contains(memory, t, start):
        raise record.error()
    version = record.versions.read(memory).detach()
    return version if _is_same(t, memory) else torch.as_strided(version, t.shape, t.stride(), version.storage_offset() + start)


class OutdatedView(RuntimeError):
    """A torch tensor shows memory that a gradient has written into, in a form that the new version does not have."""


def _is_same(t: torch.Tensor, memory: torch.Tensor) -> bool:
    return t.shape == memory.shape and t.stride() == memory.stride() and t.storage_offset() == memory.storage_offset()


def _contains(memory: torch.Tensor, t: torch.Tensor, start: int) -> bool:
    """Return whether `memory` has each element that `t` shows, which begins at its element `start`."""
    if _is_same(t, memory):
        return True
    last = [sum((length - 1) * stride for length, stride in zip(each.shape, each.stride())) for each in (memory, t)]
    return memory.numel() == last[0] + 1 and start >= 0 and start + last[1] <= last[0]
