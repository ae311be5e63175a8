"""Mixtures of experts in inference: choose the experts of each token, sort the tokens by expert, and add up the experts' results."""
from __future__ import annotations

import torch

from torchspore.base.text import message
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op(primitive="MoeGatingTopKSoftmax")
def _moe_gating_top_k_softmax(x: T, finished: T | None = None, k: int = 1) -> tuple[T, T, T]:
    """Return the `k` largest probabilities softmax(x) of x (..., E), their experts (int32), and numbers of the rows (int32).

    The number of a row is `place * rows + row`, the position that the token has when all first choices precede all second ones.
    Rows where `finished` (...) is True belong to no expert: their experts are E. Raises ValueError for other shapes and another k.
    """
    call = "MoeGatingTopKSoftmax"
    if x.dim() not in (2, 3) or (finished is not None and finished.shape != x.shape[:-1]):
        shapes = f"x {list(x.shape)}" + ("" if finished is None else f" and finished {list(finished.shape)}")
        raise ValueError(message(f"{call} of {shapes}", "x with 2 or 3 axes, and finished with the axes of x but the last"))
    if not 0 <= k <= x.shape[-1]:
        raise ValueError(message(f"{call}(k={k}) of {x.shape[-1]} experts", f"a number from 0 to {x.shape[-1]}"))
    probabilities, experts = (t[..., :k] for t in torch.sort(torch.softmax(x.float(), -1), dim=-1, descending=True, stable=True))
    if finished is not None:
        experts = experts.masked_fill(finished.to(torch.bool).unsqueeze(-1), x.shape[-1])
    rows = probabilities.numel() // max(k, 1)
    numbers = torch.arange(rows * k, device=x.device, dtype=torch.int32).reshape(k, rows).t().reshape(experts.shape)
    return probabilities.to(x.dtype), experts.int(), numbers


@op(primitive="MoeInitRouting")
def _moe_init_routing(x: T, row_idx: T, expert_idx: T, active_num: int) -> tuple[T, T, T]:
    """Repeat the rows of x (n, H) for each of their experts `expert_idx` (n, k), sorted by expert.

    `row_idx` (n, k) numbers the repeated rows, `place * n + row`. Returns the first min(n, active_num) * k sorted rows, the sorted
    position of each numbered row (n * k,) and the sorted experts (n * k,), both int32. Raises ValueError for other shapes.
    """
    if x.dim() != 2 or expert_idx.dim() != 2 or len(x) != len(expert_idx) or row_idx.shape != expert_idx.shape:
        shapes = f"x {list(x.shape)}, row_idx {list(row_idx.shape)} and expert_idx {list(expert_idx.shape)}"
        raise ValueError(message(f"MoeInitRouting of {shapes}", "x (n, H), row_idx and expert_idx (n, k)"))
    if active_num < 0:
        raise ValueError(message(f"MoeInitRouting(active_num={active_num})", "an int from 0"))
    order = torch.argsort(expert_idx.reshape(-1), stable=True)
    sorted_rows = row_idx.reshape(-1).long()[order]
    positions = torch.empty_like(sorted_rows).scatter(0, sorted_rows, torch.arange(len(order), device=x.device))
    count = min(len(x), active_num) * expert_idx.shape[1]
    return x[sorted_rows[:count] % max(len(x), 1)], positions.int(), expert_idx.reshape(-1)[order].int()


@op(primitive="MoeComputeExpertTokens")
def _moe_compute_expert_tokens(sorted_experts: T, num_expert: int) -> T:
    """Return for each of `num_expert` experts the number of elements of `sorted_experts` (n,), ascending, that are at most the expert's.

    Raises ValueError for another rank, and for less than one expert.
    """
    if sorted_experts.dim() != 1 or num_expert < 1:
        wrote = f"MoeComputeExpertTokens(num_expert={num_expert}) of shape {list(sorted_experts.shape)}"
        raise ValueError(message(wrote, "one axis, and a number of experts from 1"))
    experts = torch.arange(num_expert, device=sorted_experts.device, dtype=sorted_experts.dtype)
    return torch.searchsorted(sorted_experts.contiguous(), experts, right=True).to(sorted_experts.dtype)


@op(primitive="MoeFinalizeRouting")
def _moe_finalize_routing(
    expanded_x: T, x1: T, x2: T | None = None, bias: T | None = None, scales: T | None = None, expanded_row_idx: T | None = None,
    expanded_expert_idx: T | None = None,
) -> T:
    """Return x1 + x2 + the sum over a token's experts k of scales[:, k] * (its row of `expanded_x` + bias[expert]), shape (n, H).

    `expanded_x` (n * k, H) has the experts' results; token i's k-th row is number `expanded_row_idx[i + k * n]`. `bias` is (E, H), `scales`
    and `expanded_expert_idx` are (n, k). Raises ValueError for other shapes and missing Tensors.
    """
    call = "MoeFinalizeRouting"
    if expanded_row_idx is None or (bias is not None and expanded_expert_idx is None):
        raise ValueError(message(call, "expanded_row_idx, and expanded_expert_idx if there is a bias"))
    if x1.dim() != 2 or expanded_x.dim() != 2 or expanded_row_idx.dim() != 1 or len(expanded_row_idx) % max(len(x1), 1):
        shapes = f"expanded_x {list(expanded_x.shape)}, x1 {list(x1.shape)} and expanded_row_idx {list(expanded_row_idx.shape)}"
        raise ValueError(message(f"{call} of {shapes}", "(n * k, H), (n, H) and (n * k,)"))
    n = len(x1)
    terms = expanded_x.float()[expanded_row_idx.long()].reshape(-1, n, expanded_x.shape[1])
    if bias is not None and expanded_expert_idx is not None:
        terms = terms + bias.float()[expanded_expert_idx.long()].transpose(0, 1)
    if scales is not None:
        terms = terms * scales.float().t().unsqueeze(-1)
    total = x1.float() + terms.sum(0)
    return (total if x2 is None else total + x2.float()).to(expanded_x.dtype)
