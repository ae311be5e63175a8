"""Attention as single operators, as in training, and rotary position embeddings."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declare import op

T = torch.Tensor


def _turned(x: T, mode: int) -> T:
    if mode == 0:
        low, high = x.chunk(2, -1)
        return torch.cat([-high, low], -1)
    if mode == 1:
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    raise ValueError(f"mode={mode!r}: expected 0 (halves) or 1 (neighbours).")


@op()
def rotary_position_embedding(x: T, cos: T, sin: T, mode: int = 0) -> T:
    """x * cos + rotated(x) * sin (Su and others): rotates halves of the last axis (mode 0) or neighbours (mode 1)."""
    return x * cos + _turned(x, mode) * sin


LAYOUTS = ("BSH", "BNSD", "SBH", "BSND")


def heads_apart(t: T, layout: str, heads: int) -> T:
    """Convert a Tensor in one of the layouts to (B, N, S, D)."""
    if layout == "BNSD":
        return t
    if layout == "BSND":
        return t.transpose(1, 2)
    t = t.transpose(0, 1) if layout == "SBH" else t
    width = -1 if t.dim() != 3 or heads < 1 or t.shape[2] % heads else t.shape[2] // heads      # -1 fails without elements
    return t.reshape(*t.shape[:2], heads, width).transpose(1, 2)


def heads_together(t: T, layout: str) -> T:
    """Convert a Tensor (B, N, S, D) to one of the layouts."""
    if layout == "BNSD":
        return t
    t = t.transpose(1, 2)
    if layout == "BSND":
        return t
    t = t.flatten(2)
    return t.transpose(0, 1) if layout == "SBH" else t


def for_each_query(t: T, query: T) -> T:
    """Repeat keys or values (B, kvN, S, D) to the number of the queries' heads; each serves a group of them."""
    return t if t.shape[1] == query.shape[1] else t.repeat_interleave(query.shape[1] // t.shape[1], 1)


def finite(largest: T) -> T:
    """Return the largest product of each query, which is subtracted before exponentials; 0 for a query that sees nothing."""
    return largest.masked_fill(largest == -torch.inf, 0)


@op()
def flash_attention_score(
    query: T, key: T, value: T, head_num: int, real_shift: T | None = None, drop_mask: T | None = None, padding_mask: Any = None,
    attn_mask: T | None = None, prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, keep_prob: float = 1.0,
    scalar_value: float = 1.0, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0,
    input_layout: str = "BSH", sparse_mode: int = 0,
) -> T:
    """softmax(scalar_value * query @ key^T + real_shift) @ value for each of `head_num` heads; `attn_mask` marks excluded keys.

    Queries see keys from `pre_tokens` before to `next_tokens` after them (sparse_mode 0), or none after them (2: aligned to the upper left
    corner, 3: to the lower right one). Raises ValueError for the other arguments, which are packings of Ascend's kernels.
    """
    return _flash(
        query, key, value, head_num, real_shift, drop_mask, padding_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen, keep_prob,
        scalar_value, pre_tokens, next_tokens, inner_precise, input_layout, sparse_mode,
    )[3]


@op(
    primitive="FlashAttentionScore",
    init=("head_num", "keep_prob", "scale_value", "pre_tokens", "next_tokens", "inner_precise", "input_layout", "sparse_mode"),
)
def _flash_attention_score(
    query: T, key: T, value: T, real_shift: T | None = None, drop_mask: T | None = None, padding_mask: Any = None,
    attn_mask: T | None = None, prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, head_num: int = 1,
    keep_prob: float = 1.0, scale_value: float = 1.0, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0,
    input_layout: str = "BSH", sparse_mode: int = 0,
) -> Any:
    """Return the largest product and the sum of exponentials of each query (B, N, S, 8), an empty Tensor, and `flash_attention_score`."""
    return _flash(
        query, key, value, head_num, real_shift, drop_mask, padding_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen, keep_prob,
        scale_value, pre_tokens, next_tokens, inner_precise, input_layout, sparse_mode,
    )


def _flash(
    query: T, key: T, value: T, head_num: int, real_shift: T | None, drop_mask: T | None, padding_mask: Any, attn_mask: T | None,
    prefix: Any, actual_seq_qlen: Any, actual_seq_kvlen: Any, keep_prob: float, scalar_value: float, pre_tokens: int, next_tokens: int,
    inner_precise: int, input_layout: str, sparse_mode: int,
) -> tuple[T, T, T, T]:
    for name, option in (("padding_mask", padding_mask), ("prefix", prefix), ("actual_seq_qlen", actual_seq_qlen), (
        "actual_seq_kvlen", actual_seq_kvlen,
    )):
        if option is not None:
            raise ValueError(f"{name}=...: expected None.\n\nhint: write the lengths into attn_mask.")
    if input_layout not in LAYOUTS:
        raise ValueError(f"input_layout={input_layout!r}: expected one of {', '.join(LAYOUTS)}.")
    if sparse_mode not in (0, 2, 3):
        raise ValueError(f"sparse_mode={sparse_mode!r}: expected 0, 2 or 3.\n\nhint: write other patterns into attn_mask.")
    if inner_precise not in (0, 1):
        raise ValueError(f"inner_precise={inner_precise!r}: expected 0 or 1; both compute the sums in float32.")
    q = heads_apart(query, input_layout, head_num)
    heads = key.shape[-1] // q.shape[-1] if input_layout in ("BSH", "SBH") else head_num
    k, v = (for_each_query(heads_apart(t, input_layout, heads), q) for t in (key, value))
    scores = (q.float() @ k.float().mT) * scalar_value
    if real_shift is not None:
        scores = scores + real_shift
    hidden = _hidden(scores, pre_tokens, next_tokens, sparse_mode)
    if attn_mask is not None and sparse_mode == 0:
        hidden = hidden | attn_mask.to(torch.bool)
    scores, weights = weighed(scores, hidden)
    if keep_prob < 1.0:
        if drop_mask is None:
            raise ValueError(f"keep_prob={keep_prob}: expected a drop_mask, in which 1 means keep.")
        weights = weights * drop_mask.reshape(weights.shape) / keep_prob
    out = heads_together((weights @ v.float()).to(value.dtype), input_layout)
    scores = scores.detach()
    largest = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    total = torch.exp(scores - finite(largest)).sum(-1, keepdim=True)
    return largest.expand(*largest.shape[:-1], 8), total.expand(*total.shape[:-1], 8), query.new_empty(0), out


def weighed(scores: T, hidden: T) -> tuple[T, T]:
    """Exclude hidden products and return them with their softmax; rows that see nothing are zeros."""
    scores = scores.masked_fill(hidden, -torch.inf)
    return scores, torch.where(hidden.all(-1, keepdim=True), 0, torch.softmax(scores, -1))


def _hidden(scores: T, before: int, behind: int, mode: int) -> T:
    rows, columns = scores.shape[-2:]
    offset = torch.arange(columns, device=scores.device) - torch.arange(rows, device=scores.device).unsqueeze(-1)
    if mode == 3:
        offset = offset - (columns - rows)
    if mode in (2, 3):
        return offset > 0
    return (offset > behind) | (offset < -before)
