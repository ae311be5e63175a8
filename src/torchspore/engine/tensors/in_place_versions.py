"""Writes in place while gradients are recorded: each write creates a new version of the memory, so earlier reads keep their gradient.

Tensors that share memory (a Tensor and its views) see each other's writes: a version belongs to the memory, and a view of it is created
again when a Tensor is read.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch


def base_of(t: torch.Tensor) -> torch.Tensor:
    """Return the tensor whose memory `t` shares: itself, or the base of the view."""
    base = t._base
    return t if base is None or base.dtype is not t.dtype else base


def renamed(t: torch.Tensor) -> torch.Tensor:
    """Return `t` as a tensor that counts as separate memory; its gradient flows to `t`. Nothing is copied."""
    return torch.ops.aten._unsafe_view.default(t, t.shape)


def assigned(before: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the new value of a Parameter: no gradient flows into the assigned value, and later reads have the Parameter's gradient.

    The difference is exactly 0, and has the Parameter's gradient. It is omitted if the old value is not finite, because it would be nan.
    """
    if not before.requires_grad:
        return value
    with torch.enable_grad():
        return value + torch.where(torch.isfinite(before.detach()), before - before.detach(), torch.zeros_like(value))


Extent = tuple[torch.Tensor, Any]
"""Memory, and the element of it with which a tensor begins: an int, or a symbol where a length is open."""


class _Memory:
    """One piece of memory: its newest version, or why that is not known."""

    __slots__ = ("first", "newest", "unknown")

    def __init__(self, first: torch.Tensor, newest: torch.Tensor) -> None:
        self.first, self.newest = first, newest
        self.unknown: BaseException | None = None


class Versions:
    """The newest versions of all memory that was written within one frame."""

    def __init__(self) -> None:
        self._memories: dict[int, tuple[Any, _Memory]] = {}
        self._all: list[_Memory] = []

    def has_any(self) -> bool:
        """Return whether any memory was written."""
        return bool(self._all)

    def has(self, base: torch.Tensor) -> bool:
        """Return whether the memory of `base`, which is not a view, was written."""
        return self._memory(base) is not None

    def origin(self, base: torch.Tensor) -> torch.Tensor:
        """The memory that `base`, which is not a view, is a version of."""
        memory = self._memory(base)
        return base if memory is None else memory.first

    def read(self, t: torch.Tensor, extent: Extent | None = None) -> torch.Tensor:
        """Return the present value of `t`; `extent` is the memory that it shows and where it begins there, if that is not its base here.

        Raises the reason given to `forget` where that is not known.
        """
        base, start = _extent(t) if extent is None else extent
        memory = self._memory(base)
        if memory is None:
            return t
        if memory.unknown is not None:
            raise memory.unknown
        return _shown(memory.newest, t, start)

    def begin(self, base: torch.Tensor, value: torch.Tensor) -> None:
        """Record that the memory of `base` has the values of `value` now."""
        self._register(base, value).newest = value
        self._memories[id(value)] = weakref.ref(value), self._memories[id(base)][1]

    def replace(self, t: torch.Tensor, value: torch.Tensor, extent: Extent | None = None) -> None:
        """Give all of `t` the values of `value`, which has its shape and dtype."""
        base, start = _extent(t) if extent is None else extent
        if _is_all(t, base, start) and (torch.is_grad_enabled() or not base.requires_grad):
            has_equal_layout = value.stride() == t.stride() and not _overlaps(value)
            self._enter(base, renamed(value) if has_equal_layout else _copied(value, t))
            return
        self.change(t, lambda part: part.copy_(value), extent)

    def change(self, t: torch.Tensor, write: Callable[[torch.Tensor], Any], extent: Extent | None = None) -> None:
        """Let `write` write in place into a new version of the memory of `t`."""
        base, start = _extent(t) if extent is None else extent
        memory = self._memory(base)
        if memory is not None and memory.unknown is not None:
            raise memory.unknown
        with torch.enable_grad():                           # a write under torch.no_grad leaves the gradient of the memory as it is
            new = _copied(base if memory is None else memory.newest, base)
        write(_shown(new, t, start))
        self._enter(base, new)

    def separate(self, base: torch.Tensor) -> None:
        """Copy the newest version of the memory of `base`, which may be in the memory of another tensor."""
        newest = self.newest(base)
        if newest is not None:
            with torch.enable_grad():
                self._enter(base, newest.clone())

    def forget(self, base: torch.Tensor, reason: BaseException) -> None:
        """Record that the values of the memory of `base` are unknown from now on: reading them raises `reason`."""
        self._register(base, base).unknown = reason

    def newest(self, base: torch.Tensor) -> torch.Tensor | None:
        """Return the newest version of the memory of `base`; None if it was not written, or is unknown."""
        memory = self._memory(base)
        return None if memory is None or memory.unknown is not None else memory.newest

    def unknown(self) -> list[tuple[torch.Tensor, BaseException]]:
        """The memory whose values are not known, and why."""
        return [(memory.first, memory.unknown) for memory in self._all if memory.unknown is not None]

    def written(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Each tensor whose own memory is out of date, and the newest version of that."""
        for memory in self._all:
            if memory.unknown is None and memory.newest is not memory.first:
                yield memory.first, memory.newest
        for reference, memory in list(self._memories.values()):
            old = reference()
            if old is not None and old is not memory.first and old is not memory.newest and memory.unknown is None:
                yield old, memory.newest

    # ---- entries

    def _memory(self, base: torch.Tensor) -> _Memory | None:
        entry = self._memories.get(id(base))
        return entry[1] if entry is not None and entry[0]() is base else None    # another tensor may have got the id of one that is gone

    def _register(self, base: torch.Tensor, newest: torch.Tensor) -> _Memory:
        memory = self._memory(base)
        if memory is None:
            memory = _Memory(base, newest)
            self._all.append(memory)
            self._memories[id(base)] = weakref.ref(base), memory
        return memory

    def _enter(self, base: torch.Tensor, new: torch.Tensor) -> None:
        memory = self._register(base, new)
        memory.newest, memory.unknown = new, None
        self._memories[id(new)] = weakref.ref(new), memory     # views that are taken from now on show this one


def _copied(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A copy of `value` with the strides of `like`."""
    version = value.clone()
    if version.stride() != like.stride() and not _overlaps(like):
        version = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device).copy_(value)
    return version


def _overlaps(t: torch.Tensor) -> bool:
    """Return whether several elements share memory, as those of an expanded tensor do."""
    return any(stride == 0 and length > 1 for stride, length in zip(t.stride(), t.shape))


def _shown(version: torch.Tensor, t: torch.Tensor, start: Any) -> torch.Tensor:
    """The part of `version` that `t` shows, which begins at element `start` of the memory."""
    if not t.requires_grad and version.requires_grad and base_of(t).requires_grad:
        version = version.detach()
    if _is_all(t, version, start):
        return version
    return torch.as_strided(version, t.shape, t.stride(), start)


def _is_all(t: torch.Tensor, memory: torch.Tensor, start: Any) -> bool:
    return start == 0 and t.shape == memory.shape and t.stride() == memory.stride()


def _extent(t: torch.Tensor) -> Extent:
    base = base_of(t)
    return base, t.storage_offset() - base.storage_offset()
