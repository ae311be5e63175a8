"""Operators that 2.x keeps for old programs: embedding caches, and marks of lengths that are open."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declare import op, updating

T = torch.Tensor


@updating("input_x", primitive="UpdateCache", name="_update_cache", gives=-1)
def _update_cache(input_x: T, indices: T, update: T, max_num: int) -> tuple[T, T]:
    """Writes the rows of `update` into `input_x` at `indices`, leaving out those outside of [0, max_num); gives a 0 of shape (1,)."""
    places = indices.reshape(-1).long()
    is_inside = (places >= 0) & (places < min(int(max_num), input_x.shape[0]))
    rows = torch.where(is_inside, places, input_x.shape[0])                       # what is left out is written behind the end
    padded = torch.cat([input_x, torch.zeros_like(input_x[:1])])
    written = padded.index_copy(0, rows, update.reshape(-1, *input_x.shape[1:]).to(input_x.dtype))[:-1]
    return written, torch.zeros(1, dtype=indices.dtype, device=indices.device)


@updating("cache_table", primitive="CacheSwapTable", name="_cache_swap_table", gives=-1)
def _cache_swap_table(cache_table: T, swap_cache_idx: T, miss_value: T) -> tuple[T, T]:
    """Swaps the rows at `swap_cache_idx` (-1: none) for those of `miss_value`; gives the old rows, 0 where none was swapped."""
    places = swap_cache_idx.reshape(-1).long()
    is_swapped = places >= 0
    old = torch.where(is_swapped[:, None], cache_table[torch.clamp(places, min=0)], 0)
    padded = torch.cat([cache_table, torch.zeros_like(cache_table[:1])])
    rows = torch.where(is_swapped, places, cache_table.shape[0])
    return padded.index_copy(0, rows, miss_value.to(cache_table.dtype))[:-1], old


@op(primitive="ConvertToDynamic", init=("is_dynamic_rank",))
def _convert_to_dynamic(input: T, is_dynamic_rank: bool = False) -> T:
    """The same values. MindSpore forgets their shape (and with `is_dynamic_rank` the rank) while it compiles; graphs here learn it anew."""
    if not isinstance(is_dynamic_rank, bool):
        raise TypeError("expected a bool as is_dynamic_rank.")
    return input.view_as(input)


@op(primitive="GpuConvertToDynamicShape")
def _gpu_convert_to_dynamic_shape(input: T) -> T:
    """The same values, whose shape MindSpore forgets while it compiles."""
    return input.view_as(input)


@op(primitive="DynamicBroadcastTo")
def _dynamic_broadcast_to(input_x: T, shape: Any) -> T:
    """Stretched to `shape`, a tuple or a Tensor."""
    return input_x.expand(shape.tolist() if isinstance(shape, T) else shape).clone()


@op(raw_arguments=True)
def is_sequence_value_unknown(shape: Any) -> bool:
    """Whether a shape has values that are not known yet; here each is known whenever Python looks."""
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"is_sequence_value_unknown: expected a tuple or list, got {type(shape).__name__}.")
    return False
