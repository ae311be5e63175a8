"""Moves values that the backward pass needs out of memory until then: hooks on the values that torch.autograd saves.

Each saved memory has one *holding*, even if several values share it. It moves out as soon as nothing else uses it: Parameters, and values
that the program still uses, stay. The backward pass reads values in about the reverse order, so that earlier ones are prefetched while it
computes. A value that was written to since it was saved is refused in torch's words, as without hooks.
"""
from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from torchspore.engine.memory.backing_stores import Memory, Piece, Store
from torchspore.engine.torch_internals import torch_private

SMALL = 1 << 16
"""Bytes from which on it pays to move memory."""
_LOOKS = 8
"""How many holdings are looked at when a value is saved, whether they are idle now."""
_NEAR = 12
"""A holding that is asked for again among so many values stays when it has come back."""
_AHEAD = 24
"""Among so many values before the one that is asked for, the next ones to fetch are looked for."""


class Holding:
    """Memory that values were saved of."""

    def __init__(self, memory: Memory) -> None:
        self.memory: Memory | None = memory
        self.piece: Piece | None = None
        self.waiting: set[int] = set()
        """The numbers of the values that the backward pass has not asked for yet."""
        self._weak: int | None = None
        self._lock = threading.Lock()

    @property
    def is_idle(self) -> bool:
        """Return whether the memory has no other user."""
        return self.memory is not None and torch_private.storage_users(self.memory) == 0

    def move(self, store: Store) -> bool:
        """Moves the memory out, if there is room."""
        with self._lock:
            if self.memory is None:
                return True
            if self.piece is None:
                self.piece = store.move(self.memory)
            if self.piece is not None:
                self.memory = None
            return self.piece is not None

    def fetch(self) -> bool:
        """Begins to bring it back; whether there was something to fetch."""
        if self.memory is not None or self.piece is None or self._read_back() is not None:
            return False
        self.piece.fetch()
        return True

    def now(self, number: int) -> Memory:
        """The memory, for the value with this number."""
        with self._lock:
            self.waiting.discard(number)
            memory = self.memory if self.memory is not None else self._read_back()
            if memory is None:
                assert self.piece is not None
                memory = self.piece.get()
                self._forget()
                self._weak = torch_private.weak_storage(memory)
            # Another reader needs it soon: a second copy, or a second transfer to the disk, would be waste.
            if self.piece is not None:
                self.memory = memory if any(number - other < _NEAR for other in self.waiting) else None
            return memory

    def _read_back(self) -> Memory | None:
        return None if self._weak is None else torch_private.storage_of(self._weak)

    def _forget(self) -> None:
        if self._weak is not None:
            torch_private.forget_storage(self._weak)
            self._weak = None

    def __del__(self) -> None:
        self._forget()


class Value:
    """One saved value: how it shows its holding's memory, and the count of writes into it."""

    __slots__ = ("__weakref__", "_alias", "_shape", "_version", "holding", "number")

    def __init__(self, t: torch.Tensor, alias: torch.Tensor, holding: Holding, number: int) -> None:
        self._shape = (t.storage_offset(), t.shape, t.stride())
        self._alias, self._version, self.holding, self.number = alias, t._version, holding, number

    def now(self) -> torch.Tensor:
        """Return the value. Raises RuntimeError if it was written to."""
        _check(self._alias, self._version, self._shape[1])
        memory = self.holding.now(self.number)
        empty = torch.empty(0, dtype=self._alias.dtype, device=self._alias.device)
        return empty.set_(memory, *self._shape)


class SavedTensor:
    """One saved value that stays."""

    __slots__ = ("_t", "_version", "number")

    def __init__(self, t: torch.Tensor) -> None:
        self._t, self._version = t.detach(), t._version

    def now(self) -> torch.Tensor:
        _check(self._t, self._version, self._t.shape)
        return self._t


def _check(t: torch.Tensor, version: int, shape: Any) -> None:
    if t._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{t.type()} {list(shape)}] is at version {t._version}; expected version {version} instead."
        )


class _Local(threading.local):
    tape: Tape | None = None


_local = _Local()


def current() -> Tape | None:
    """The tape that records in this thread."""
    return _local.tape


class Tape:
    """The values that one gradient transform saves.

    `store_for` returns the store for values of a device, None if they stay. `ahead_of` returns the store from which values are fetched
    before they are needed, None while memory is short; `ahead` is the number of such values. With `waits`, values that stay now move
    later, when `store_for` returns a store.
    """

    def __init__(
        self, store_for: Callable[[torch.device], Store | None], ahead_of: Callable[[torch.device], Store | None] | None = None,
        waits: bool = False, ahead: int | None = None,
    ) -> None:
        self._store_for, self._ahead_of, self._waits = store_for, ahead_of or store_for, waits
        self._ahead = _AHEAD if ahead is None else ahead + 1
        self._holdings: weakref.WeakValueDictionary[int, Holding] = weakref.WeakValueDictionary()
        self._values: list[weakref.ref[Value]] = []
        self._looked_at: deque[weakref.ref[Holding]] = deque()
        self._lock = threading.RLock()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """A block whose saved values are this tape's."""
        around, _local.tape = _local.tape, self
        try:
            with saved_tensors_hooks(self.keep, self.give):
                yield
        finally:
            _local.tape = around

    def keep(self, t: torch.Tensor) -> Any:
        """Return the placeholder of a value until `give` is asked for it."""
        if not can_move(t):
            return SavedTensor(t) if type(t) is torch.Tensor and not torch_private.is_wrapped(t) else t.detach()
        store = self._store_for(t.device)
        if (store is None and not self._waits) or (t.requires_grad and (t if t._base is None else t._base).is_leaf):
            return SavedTensor(t)                                          # a weight, or an input: the program has it
        memory = t.untyped_storage()
        with self._lock:
            holding = self._holding_of(memory)
            alias = t.detach()
            alias.data = t.new_empty(0)
            value = Value(t, alias, holding, len(self._values))
            holding.waiting.add(value.number)
            self._values.append(weakref.ref(value))
            if store is not None:
                self._move_idle(store)
        return value

    def _holding_of(self, memory: Memory) -> Holding:
        holding = self._holdings.get(memory._cdata)
        if holding is None or holding.memory is None:
            holding = self._holdings[memory._cdata] = Holding(memory)
            self._looked_at.append(weakref.ref(holding))
        return holding

    def _move_idle(self, store: Store) -> None:
        for _ in range(min(_LOOKS, len(self._looked_at))):
            reference = self._looked_at.popleft()
            holding = reference()
            if holding is None or holding.memory is None:
                continue
            if not holding.is_idle:
                self._looked_at.append(reference)
                continue
            key = holding.memory._cdata
            if holding.move(store):
                self._holdings.pop(key, None)                     # its address may be another one's memory soon

    def give(self, value: Any) -> torch.Tensor:
        """The value again."""
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, SavedTensor):
            return value.now()
        memory = value.now()
        self._fetch_before(value.number, memory.device)
        return memory

    def _fetch_before(self, number: int, device: torch.device) -> None:
        store = self._ahead_of(device)
        for at in range(number - 1, max(-1, number - self._ahead), -1):
            if store is None or not store.can_fetch():
                return
            value = self._values[at]()
            if value is not None and value.number in value.holding.waiting:
                value.holding.fetch()


def can_move(t: torch.Tensor) -> bool:
    """Return whether it is an ordinary tensor with memory of its own that is worth it."""
    is_plain = type(t) is torch.Tensor and t.layout is torch.strided and not t.is_quantized
    if not is_plain or t.is_conj() or t.is_neg() or torch_private.is_wrapped(t):
        return False
    if t.device.type == "meta":
        return False
    memory = t.untyped_storage()
    # Memory that NumPy made, or that processes share, is not torch's to free.
    return memory.nbytes() >= SMALL and memory.resizable() and not (t.device.type == "cpu" and memory.is_shared())
