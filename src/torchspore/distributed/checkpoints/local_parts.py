"""The parts of values that this process stores, and the process that saves a part stored by several processes."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.distributed import device_count
from torchspore.distributed.comm import groups
from torchspore.distributed.data_parallel import optimizer_shards, settings
from torchspore.distributed.data_parallel.sharded_weights import RowShardedWeight
from torchspore.distributed.shard import redundancy
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.split_layouts.sharded_layout import sharded_layout_of
from torchspore.engine.split_layouts.sharded_value import local_part
from torchspore.graph.splitter import SPLIT_MODES

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LocalPart:
    """A part of a value: its elements, the index of the first one, the shape of the value, the ranks that store the same part."""

    elements: torch.Tensor
    offsets: Shape
    shape: Shape
    holders: tuple[int, ...]
    is_sharded: bool

    def __post_init__(self) -> None:
        if any(start + size > full for start, size, full in zip(self.offsets, self.elements.shape, self.shape)):
            raise AssertionError(f"a part of shape {tuple(self.elements.shape)} at {self.offsets} of {self.shape}")


def part_of(value: Any) -> LocalPart | None:
    """Return the part of a Tensor that this process stores; None if it stores no part."""
    t: Any = value._t
    share, layout = value.__dict__.get(optimizer_shards.MARK), sharded_layout_of(value)
    if isinstance(t, RowShardedWeight):
        t, share = t.rows._t, t.share
    t = local_part(t)
    if share is not None:
        return LocalPart(t, (share.start, *(0,) * (t.ndim - 1)), share.full_shape, tuple(share.others.ranks), True)
    if layout is not None:
        mesh, position = Mesh(layout.matrix), layout.position(device_count.rank())
        if position is None:
            return None
        if tuple(t.shape) != layout.shape or layout.layout(mesh).is_unsplit:        # a process that simulates several ranks has full values
            slices = layout.layout(mesh).part(mesh, layout.shape, position)
            return LocalPart(t, tuple(part.start for part in slices), layout.shape, redundancy.holders(value), True)
    holders = groups.world().ranks if layout is None or layout.stage is None else redundancy.holders(value)
    return LocalPart(t, (0,) * t.ndim, tuple(t.shape), holders, layout is not None)


def savers(parts: Mapping[str, LocalPart]) -> dict[str, int]:
    """Return the rank that saves each part that this process stores, by the name of the value.

    The processes that store a part alike take turns, in the order of the names. Where each process trains with full values of its own
    (`data_parallel`), values such as the statistics of batch norm may differ, so that the first process saves all of them.
    """
    turns: dict[tuple[int, ...], int] = {}
    ranks: dict[str, int] = {}
    takes_turns = settings.mode() in SPLIT_MODES
    for name in sorted(parts):
        holders, turn = parts[name].holders, 0
        if takes_turns or parts[name].is_sharded:
            turn = turns.get(holders, 0)
            turns[holders] = turn + 1
        ranks[name] = holders[turn % len(holders)]
    return ranks
