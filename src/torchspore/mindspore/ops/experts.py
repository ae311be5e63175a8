"""Mixtures of experts: tokens sorted by the expert that they go to, and put back."""
from __future__ import annotations

import torch

from torchspore.base.text import message
from torchspore.mindspore.ops.declare import op

T = torch.Tensor


def _order(experts: T) -> tuple[T, T]:
    """The places of the flat `experts` in the order of their numbers, equal ones as they stand; and where each place went."""
    order = torch.argsort(experts.reshape(-1), stable=True)
    return order, torch.argsort(order)


@op(primitive="MoeTokenPermute")
def moe_token_permute(tokens: T, indices: T, num_out_tokens: int | None = None, padded_mode: bool = False) -> tuple[T, T]:
    """The tokens (n, H), once for each of their `indices` (n,) or (n, k), sorted by these; and where each of the n * k went, int32.

    `num_out_tokens` rows are kept, all by default and for 0. Raises ValueError for other shapes and for `padded_mode`.
    """
    if padded_mode:
        raise ValueError(message("moe_token_permute(padded_mode=True)", "False"))
    if tokens.dim() != 2 or indices.dim() not in (1, 2) or len(indices) != len(tokens):
        given = f"moe_token_permute of tokens {list(tokens.shape)} and indices {list(indices.shape)}"
        raise ValueError(message(given, "tokens (n, H) and indices (n,) or (n, k)"))
    order, places = _order(indices)
    kept = order[: num_out_tokens or len(order)]
    each = indices.shape[1] if indices.dim() == 2 else 1
    return tokens[torch.div(kept, each, rounding_mode="floor")], places.int()


@op(primitive="MoeTokenUnpermute")
def moe_token_unpermute(
    permuted_tokens: T, sorted_indices: T, probs: T | None = None, padded_mode: bool = False, restore_shape: object = None,
) -> T:
    """The way back of `moe_token_permute`: the sum of each token's k rows, weighed by `probs` (n, k) where they are given; (n, H).

    Rows that `num_out_tokens` had left out, and those at -1, count as zeros. Raises ValueError for `padded_mode`.
    """
    if padded_mode or restore_shape is not None:
        name = "padded_mode=True" if padded_mode else "restore_shape=..."
        raise ValueError(message(f"moe_token_unpermute({name})", "padded_mode=False without a restore_shape"))
    places = sorted_indices.reshape(-1).long()
    is_there = (places >= 0) & (places < len(permuted_tokens))
    kept = permuted_tokens if len(permuted_tokens) else permuted_tokens.new_zeros(1, permuted_tokens.shape[1])
    rows = torch.where(is_there.unsqueeze(-1), kept[torch.where(is_there, places, 0)], 0)
    if probs is None:
        return rows
    return (rows.reshape(*probs.shape, permuted_tokens.shape[1]) * probs.unsqueeze(-1)).sum(1).to(permuted_tokens.dtype)


@op(primitive="MoeInitRoutingV2")
def moe_init_routing_v2(
    x: T, expert_idx: T, active_num: int, expert_capacity: int, expert_num: int, drop_pad_mode: int,
    expert_tokens_count_or_cumsum_flag: int, expert_tokens_before_capacity_flag: bool,
) -> tuple[T, T, T, T]:
    """The rows of x (n, H), once for each expert of `expert_idx` (n, k), sorted by experts; where each went, int32; and how many each has.

    Without `drop_pad_mode` the rows are (n * k, H), or the first `active_num` of them. With it each expert has `expert_capacity` rows,
    (experts, capacity, H): what is missing is zero, and what is too much is dropped, at -1. The third result has the experts' numbers of
    rows (flag 2) or their running sum (flag 1), the fourth those before dropping; what is not asked for is zeros. Raises ValueError.
    """
    for name, value, choices in (("drop_pad_mode", drop_pad_mode, (0, 1)), ("expert_tokens_count_or_cumsum_flag", (
        expert_tokens_count_or_cumsum_flag
    ), (0, 1, 2))):
        if value not in choices:
            raise ValueError(message(f"moe_init_routing_v2({name}={value!r})", " or ".join(map(str, choices))))
    if x.dim() != 2 or expert_idx.dim() != 2 or len(x) != len(expert_idx):
        given = f"moe_init_routing_v2 of x {list(x.shape)} and expert_idx {list(expert_idx.shape)}"
        raise ValueError(message(given, "x (n, H) and expert_idx (n, k)"))
    for name, value, lowest in (
        ("active_num", active_num, 0), ("expert_capacity", expert_capacity, 0), ("expert_num", expert_num, min(drop_pad_mode, 1)),
    ):
        if value < lowest:
            raise ValueError(message(f"moe_init_routing_v2({name}={value!r})", f"an int from {lowest}"))
    order, places = _order(expert_idx)
    counts = _counts(expert_idx, expert_num)
    nothing = torch.zeros_like(counts)
    rows = x[torch.div(order, expert_idx.shape[1], rounding_mode="floor")]
    if not drop_pad_mode:
        rows = rows[:active_num] if active_num else rows
        told = (nothing, counts.cumsum(0).int(), counts)[expert_tokens_count_or_cumsum_flag]
        return rows, places.int(), told, nothing
    experts = expert_idx.reshape(-1).long()
    within = places - (counts.cumsum(0) - counts)[experts]
    slots = torch.where(within < expert_capacity, experts * expert_capacity + within, -1)
    sorted_slots = slots[order]
    kept = sorted_slots >= 0
    full = x.new_zeros(expert_num * expert_capacity, x.shape[1]).index_put((sorted_slots[kept],), rows[kept])
    before = counts if expert_tokens_before_capacity_flag else nothing
    return full.reshape(expert_num, expert_capacity, x.shape[1]), slots.int(), nothing, before


def _counts(experts: T, number: int) -> T:
    """How often each expert is named, int32. Raises ValueError for numbers that are no expert's."""
    if not number:
        return experts.new_zeros(0, dtype=torch.int32)
    if experts.numel() and not bool(((experts >= 0) & (experts < number)).all()):
        raise ValueError(message("moe_init_routing_v2(expert_idx=...)", f"numbers from 0 to {number - 1}, as expert_num={number}"))
    return torch.bincount(experts.reshape(-1).long(), minlength=number).int()
