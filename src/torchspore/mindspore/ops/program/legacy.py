"""Operators that 2.x keeps for old programs: embedding caches, and markers of unknown lengths."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import op, updating

T = torch.Tensor


@updating("input_x", primitive="UpdateCache", name="_update_cache", gives=-1)
def _update_cache(input_x: T, indices: T, update: T, max_num: int) -> tuple[T, T]:
    """Write the rows of `update` into `input_x` at `indices` inside [0, max_num); return a 0 of shape (1,)."""
    positions = indices.reshape(-1).long()
    is_inside = (positions >= 0) & (positions < min(int(max_num), input_x.shape[0]))
    rows = torch.where(is_inside, positions, input_x.shape[0])                       # other rows are written behind the end
    padded = torch.cat([input_x, torch.zeros_like(input_x[:1])])
    updated = padded.index_copy(0, rows, update.reshape(-1, *input_x.shape[1:]).to(input_x.dtype))[:-1]
    return updated, torch.zeros(1, dtype=indices.dtype, device=indices.device)


@updating("cache_table", primitive="CacheSwapTable", name="_cache_swap_table", gives=-1)
def _cache_swap_table(cache_table: T, swap_cache_idx: T, miss_value: T) -> tuple[T, T]:
    """Swap the rows at `swap_cache_idx` (-1: none) with those of `miss_value`; return the old rows, 0 where no row is swapped."""
    positions = swap_cache_idx.reshape(-1).long()
    is_swapped = positions >= 0
    old = torch.where(is_swapped[:, None], cache_table[torch.clamp(positions, min=0)], 0)
    padded = torch.cat([cache_table, torch.zeros_like(cache_table[:1])])
    rows = torch.where(is_swapped, positions, cache_table.shape[0])
    return padded.index_copy(0, rows, miss_value.to(cache_table.dtype))[:-1], old


@op(primitive="ConvertToDynamic", init=("is_dynamic_rank",))
def _convert_to_dynamic(input: T, is_dynamic_rank: bool = False) -> T:
    """Return the values unchanged. MindSpore's compiler then treats their shape (`is_dynamic_rank`: rank) as unknown."""
    if not isinstance(is_dynamic_rank, bool):
        raise TypeError("expected a bool as is_dynamic_rank.")
    return input.view_as(input)


@op(primitive="GpuConvertToDynamicShape")
def _gpu_convert_to_dynamic_shape(input: T) -> T:
    """Return the values unchanged. MindSpore's compiler then treats their shape as unknown."""
    return input.view_as(input)


@op(primitive="DynamicBroadcastTo")
def _dynamic_broadcast_to(input_x: T, shape: Any) -> T:
    """Broadcast to `shape`, a tuple or a Tensor."""
    return input_x.expand(shape.tolist() if isinstance(shape, T) else shape).clone()


@op(raw_arguments=True)
def is_sequence_value_unknown(shape: Any) -> bool:
    """Return whether a shape has values that are not known yet: False here, because Python knows each value."""
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"is_sequence_value_unknown: expected a tuple or list, got {type(shape).__name__}.")
    return False
