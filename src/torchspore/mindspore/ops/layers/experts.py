"""Mixtures of experts: sort tokens by their experts, and restore the order."""
from __future__ import annotations

import torch

from torchspore.base.text import message
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _order(experts: T) -> tuple[T, T]:
    """Return the order that sorts the flat `experts` (stable), and the sorted position of each element."""
    order = torch.argsort(experts.reshape(-1), stable=True)
    return order, torch.argsort(order)


@op(primitive="MoeTokenPermute")
def moe_token_permute(tokens: T, indices: T, num_out_tokens: int | None = None, padded_mode: bool = False) -> tuple[T, T]:
    """Repeat the tokens (n, H) for each of their `indices` (n,) or (n, k), sorted by these; also return their n * k positions, int32.

    The result has `num_out_tokens` rows; None and 0 mean all. Raises ValueError for other shapes and for `padded_mode`.
    """
    if padded_mode:
        raise ValueError(message("moe_token_permute(padded_mode=True)", "False"))
    if tokens.dim() != 2 or indices.dim() not in (1, 2) or len(indices) != len(tokens):
        description = f"moe_token_permute of tokens {list(tokens.shape)} and indices {list(indices.shape)}"
        raise ValueError(message(description, "tokens (n, H) and indices (n,) or (n, k)"))
    order, positions = _order(indices)
    selected = order[: num_out_tokens or len(order)]
    experts_per_token = indices.shape[1] if indices.dim() == 2 else 1
    return tokens[torch.div(selected, experts_per_token, rounding_mode="floor")], positions.int()


@op(primitive="MoeTokenUnpermute")
def moe_token_unpermute(
    permuted_tokens: T, sorted_indices: T, probs: T | None = None, padded_mode: bool = False, restore_shape: object = None,
) -> T:
    """Reverse `moe_token_permute`: sum the k rows of each token, weighed by `probs` (n, k) if present. Shape (n, H).

    Rows that `num_out_tokens` dropped, and rows at -1, count as zeros. Raises ValueError for `padded_mode`.
    """
    if padded_mode or restore_shape is not None:
        name = "padded_mode=True" if padded_mode else "restore_shape=..."
        raise ValueError(message(f"moe_token_unpermute({name})", "padded_mode=False without a restore_shape"))
    positions = sorted_indices.reshape(-1).long()
    is_there = (positions >= 0) & (positions < len(permuted_tokens))
    source_rows = permuted_tokens if len(permuted_tokens) else permuted_tokens.new_zeros(1, permuted_tokens.shape[1])
    rows = torch.where(is_there.unsqueeze(-1), source_rows[torch.where(is_there, positions, 0)], 0)
    if probs is None:
        return rows
    return (rows.reshape(*probs.shape, permuted_tokens.shape[1]) * probs.unsqueeze(-1)).sum(1).to(permuted_tokens.dtype)


@op(primitive="MoeInitRoutingV2")
def moe_init_routing_v2(
    x: T, expert_idx: T, active_num: int, expert_capacity: int, expert_num: int, drop_pad_mode: int,
    expert_tokens_count_or_cumsum_flag: int, expert_tokens_before_capacity_flag: bool,
) -> tuple[T, T, T, T]:
    """Repeat the rows of x (n, H) for each expert in `expert_idx` (n, k), sorted by expert.

    Return the rows, their positions (int32) and the counts below.
    Without `drop_pad_mode` the rows are (n * k, H), or the first `active_num` of them. With it, each expert has `expert_capacity` rows,
    (experts, capacity, H): missing rows are zero, surplus rows are dropped and get position -1. The third result has the experts' row
    counts (flag 2) or their running sum (flag 1), the fourth the counts before dropping; others are zeros. Raises ValueError.
    """
    for name, value, choices in (("drop_pad_mode", drop_pad_mode, (0, 1)), ("expert_tokens_count_or_cumsum_flag", (
        expert_tokens_count_or_cumsum_flag
    ), (0, 1, 2))):
        if value not in choices:
            raise ValueError(message(f"moe_init_routing_v2({name}={value!r})", " or ".join(map(str, choices))))
    if x.dim() != 2 or expert_idx.dim() != 2 or len(x) != len(expert_idx):
        description = f"moe_init_routing_v2 of x {list(x.shape)} and expert_idx {list(expert_idx.shape)}"
        raise ValueError(message(description, "x (n, H) and expert_idx (n, k)"))
    for name, value, lowest in (
        ("active_num", active_num, 0), ("expert_capacity", expert_capacity, 0), ("expert_num", expert_num, min(drop_pad_mode, 1)),
    ):
        if value < lowest:
            raise ValueError(message(f"moe_init_routing_v2({name}={value!r})", f"an int from {lowest}"))
    order, positions = _order(expert_idx)
    counts = _counts(expert_idx, expert_num)
    nothing = torch.zeros_like(counts)
    rows = x[torch.div(order, expert_idx.shape[1], rounding_mode="floor")]
    if not drop_pad_mode:
        rows = rows[:active_num] if active_num else rows
        token_counts = (nothing, counts.cumsum(0).int(), counts)[expert_tokens_count_or_cumsum_flag]
        return rows, positions.int(), token_counts, nothing
    experts = expert_idx.reshape(-1).long()
    position_in_expert = positions - (counts.cumsum(0) - counts)[experts]
    slots = torch.where(position_in_expert < expert_capacity, experts * expert_capacity + position_in_expert, -1)
    sorted_slots = slots[order]
    has_slot = sorted_slots >= 0
    full = x.new_zeros(expert_num * expert_capacity, x.shape[1]).index_put((sorted_slots[has_slot],), rows[has_slot])
    before = counts if expert_tokens_before_capacity_flag else nothing
    return full.reshape(expert_num, expert_capacity, x.shape[1]), slots.int(), nothing, before


def _counts(experts: T, number: int) -> T:
    """Count how often each expert occurs, int32. Raises ValueError for numbers that are not an expert's."""
    if not number:
        return experts.new_zeros(0, dtype=torch.int32)
    if experts.numel() and not bool(((experts >= 0) & (experts < number)).all()):
        raise ValueError(message("moe_init_routing_v2(expert_idx=...)", f"numbers from 0 to {number - 1}, as expert_num={number}"))
    return torch.bincount(experts.reshape(-1).long(), minlength=number).int()
