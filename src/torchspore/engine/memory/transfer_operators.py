"""The operators with which a captured graph moves values out and back (`graph.passes.memory.offload` inserts them)."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.memory import offload
from torchspore.engine.memory.backing_stores import Memory, Piece
from torchspore.engine.memory.saved_tensors import can_move
from torchspore.engine.torch_internals import torch_private

Shape = tuple[torch.dtype, Any, torch.Size, tuple[int, ...]]


class Moved:
    """Values that share one memory, which has moved out; or, if it could not move, is stored here."""

    def __init__(self, values: tuple[torch.Tensor, ...], memory: Memory, piece: Piece | None) -> None:
        self._shapes: list[Shape] = [(t.dtype, t.storage_offset(), t.shape, t.stride()) for t in values]
        self._device, self._piece, self._memory = values[0].device, piece, memory if piece is None else None

    def fetch(self) -> None:
        if self._piece is not None:
            self._piece.fetch()

    def values(self) -> list[torch.Tensor]:
        memory = self._piece.get() if self._piece is not None else self._memory
        assert memory is not None
        return [
            torch.empty(0, dtype=dtype, device=self._device).set_(memory, *shape)
            for dtype, *shape in self._shapes
        ]


def moved_out(*values: torch.Tensor) -> Moved | tuple[torch.Tensor, ...]:
    """Move the memory of the values out, if nothing else uses it; values that cannot move are returned unchanged."""
    first = values[0]
    if not can_move(first):
        return values
    memory = first.untyped_storage()
    shares_memory = all(t.untyped_storage()._cdata == memory._cdata for t in values)
    # A view keeps its base.
    shown = {id(t) for t in (*values, *(t._base for t in values)) if t is not None}
    alone = shares_memory and torch_private.storage_users(memory) <= len(shown)
    store = offload.planned_store(first.device) if alone else None
    return Moved(values, memory, store.move(memory)) if store is not None else values


def fetched(moved: Any) -> None:
    """Begins to bring them back."""
    if isinstance(moved, Moved):
        moved.fetch()


def brought_back(moved: Any) -> Any:
    """The values."""
    return moved.values() if isinstance(moved, Moved) else moved
