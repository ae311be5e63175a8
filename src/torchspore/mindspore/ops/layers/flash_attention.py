"""Attention as single operators, as in training, and rotary position embeddings."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.formulas import attention_blocks
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.declare import op

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


@op(primitive="RotaryPositionEmbedding")
def _rotary_position_embedding(x: T, cos: T, sin: T, mode: int = 0) -> T:
    """Compute `rotary_position_embedding`; it raises the same errors."""
    return x * cos + _turned(x, mode) * sin


@op(primitive="ApplyRotaryPosEmb", init=("cos_format",))
def _apply_rotary_pos_emb(query: T, key: T, cos: T, sin: T, position_ids: T, cos_format: int = 0) -> tuple[T, T]:
    """Rotate the halves of the last axis of queries and keys: x * cos + rotated(x) * sin.

    They are (B, S, N, D) with `cos` and `sin` (B, S, 1, D), or (n, N * D) and (B, S, N * D) with tables (rows, D). A table has a row for
    each token. Else it has a row for each position of a sequence, and `position_ids` has the lengths of sequences, one after the other.
    Raises ValueError for other shapes, and for another `cos_format` than 0, 1 and 2, which compute the same.
    """
    if cos_format not in (0, 1, 2):
        hint = "use rotary_position_embedding"
        raise ValueError(message(f"ApplyRotaryPosEmb(cos_format={cos_format!r})", "0, 1 or 2", hint=hint))
    width = cos.shape[-1]
    if cos.dim() == 2 and cos.shape == sin.shape and query.dim() in (2, 3):
        cos, sin = _rows_of_tokens(cos, sin, query, position_ids)

    def rotated(x: T) -> T:
        by_heads = x.reshape(*x.shape[:-1], x.shape[-1] // width, width) if x.dim() == cos.dim() and x.shape[-1] != width else x
        factors = [t.unsqueeze(-2) if by_heads.dim() == t.dim() + 1 else t for t in (cos, sin)]
        try:
            is_fitting = torch.broadcast_shapes(by_heads.shape, factors[0].shape) == by_heads.shape
        except RuntimeError:
            is_fitting = False
        if not is_fitting or cos.shape != sin.shape:
            wrote = f"ApplyRotaryPosEmb of {list(x.shape)} with cos {list(cos.shape)} and sin {list(sin.shape)}"
            raise ValueError(message(wrote, "cos and sin of each position", hint="look them up first: ops.gather(cos, position_ids, 0)"))
        return (by_heads * factors[0] + _turned(by_heads, 0) * factors[1]).reshape(x.shape)

    return rotated(query), rotated(key)


def _rows_of_tokens(cos: T, sin: T, query: T, lengths: T) -> tuple[T, T]:
    """Return the row of each token of the queries (n, N * D) or (B, S, N * D), in the shape of their tokens.

    A table with as many rows as tokens has them in the order of the tokens, except if the tokens are those of several sequences, one after
    the other, that each begin with row 0. Raises ValueError if a longer table is not of sequences whose lengths add up to the tokens.
    """
    tokens, rows, sequences = math.prod(query.shape[:-1]), cos.shape[0], lengths.numel()
    has_sequences = 1 < sequences < tokens and (query.dim() == 2 or query.shape[0] == 1) and lengths.dim() == 1
    if rows < tokens or (rows == tokens and not has_sequences):
        return (cos, sin) if rows != tokens else (cos.reshape(*query.shape[:-1], -1), sin.reshape(*query.shape[:-1], -1))
    total = int(lengths.sum())
    if rows > tokens and total != tokens:
        wrote = f"ApplyRotaryPosEmb of {tokens} tokens with {rows} rows and position_ids of the sum {total}"
        raise ValueError(message(wrote, "a row for each token, or the lengths of the sequences", hint="ops.gather(cos, position_ids, 0)"))
    if total == tokens:
        numbers, ends = torch.arange(tokens, device=cos.device), lengths.to(cos.device, torch.int64).cumsum(0)
        of_token = torch.searchsorted(ends, numbers, right=True)
        positions = numbers - torch.nn.functional.pad(ends, (1, -1))[of_token]
        cos, sin = cos[positions], sin[positions]
    return cos.reshape(*query.shape[:-1], -1), sin.reshape(*query.shape[:-1], -1)


_ALL = 2147483647
"""A number of positions that no sequence has."""
LAYOUTS = ("BSH", "BNSD", "SBH", "BSND")
_PACKED = "TND"
"""The layout of sequences of several lengths, one after the other: (all tokens, N, D)."""


def heads_apart(t: T, layout: str, heads: int) -> T:
    """Convert a Tensor in one of the layouts to (B, N, S, D)."""
    if layout == "BNSD":
        return t
    if layout == _PACKED:
        return t.transpose(0, 1).unsqueeze(0)
    if layout == "BSND":
        return t.transpose(1, 2)
    t = t.transpose(0, 1) if layout == "SBH" else t
    width = -1 if t.dim() != 3 or heads < 1 or t.shape[2] % heads else t.shape[2] // heads      # -1 fails without elements
    return t.reshape(*t.shape[:2], heads, width).transpose(1, 2)


def heads_together(t: T, layout: str) -> T:
    """Convert a Tensor (B, N, S, D) to one of the layouts."""
    if layout == "BNSD":
        return t
    if layout == _PACKED:
        return t.squeeze(0).transpose(0, 1)
    t = t.transpose(1, 2)
    if layout == "BSND":
        return t
    t = t.flatten(2)
    return t.transpose(0, 1) if layout == "SBH" else t


def for_each_query(t: T, query: T) -> T:
    """Repeat keys or values (B, kvN, S, D) to the number of the queries' heads; each serves a group of them."""
    return t if t.shape[1] == query.shape[1] else t.repeat_interleave(query.shape[1] // t.shape[1], 1)


@op()
def flash_attention_score(
    query: T, key: T, value: T, head_num: int, real_shift: T | None = None, drop_mask: T | None = None, padding_mask: Any = None,
    attn_mask: T | None = None, prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, keep_prob: float = 1.0,
    scalar_value: float = 1.0, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0,
    input_layout: str = "BSH", sparse_mode: int = 0,
) -> T:
    """softmax(scalar_value * query @ key^T + real_shift) @ value for each of `head_num` heads; `attn_mask` marks excluded keys.

    Queries see keys from `pre_tokens` before to `next_tokens` after them (sparse_mode 0; 4: aligned to the lower right corner), or none
    after them (2: aligned to the upper left corner, 3: to the lower right one), or those that `attn_mask` shows (1). With `keep_prob` below
    1, `drop_mask` has a bit for each weight, in bytes along the keys as DropoutGenMask writes them, or a number. In the layout TND,
    `actual_seq_qlen` and `actual_seq_kvlen` have the sums of the lengths of sequences that lie one after the other; each query sees keys of
    its sequence alone. Raises ValueError for the other arguments, which are packings of Ascend's kernels.
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
    is_packed = input_layout == _PACKED
    lengths = (("actual_seq_qlen", actual_seq_qlen), ("actual_seq_kvlen", actual_seq_kvlen))
    for name, option in (("padding_mask", padding_mask), ("prefix", prefix), *(() if is_packed else lengths)):
        if option is not None:
            raise ValueError(f"{name}=...: expected None.\n\nhint: write the lengths into attn_mask.")
    if input_layout not in (*LAYOUTS, _PACKED):
        raise ValueError(f"input_layout={input_layout!r}: expected one of {', '.join((*LAYOUTS, _PACKED))}.")
    if sparse_mode not in (0, 1, 2, 3, 4):
        raise ValueError(f"sparse_mode={sparse_mode!r}: expected 0, 1, 2, 3 or 4.\n\nhint: write other patterns into attn_mask.")
    if sparse_mode == 1 and attn_mask is None:
        raise ValueError("sparse_mode=1: expected an attn_mask.")
    if inner_precise not in (0, 1):
        raise ValueError(f"inner_precise={inner_precise!r}: expected 0 or 1; both compute the sums in float32.")
    q = heads_apart(query, input_layout, head_num)
    heads = key.shape[-1] // q.shape[-1] if input_layout in ("BSH", "SBH") else head_num
    k, v = (for_each_query(heads_apart(t, input_layout, heads), q) for t in (key, value))
    more_keys = k.shape[2] - q.shape[2]
    before, behind = {
        0: (pre_tokens, next_tokens), 1: (_ALL, _ALL), 2: (_ALL, 0), 3: (_ALL, more_keys),
        4: (pre_tokens - more_keys, next_tokens + more_keys),
    }[sparse_mode]
    has_full_mask = attn_mask is not None and sparse_mode < 2
    if is_packed and sparse_mode == 4:
        raise ValueError(message("input_layout='TND' with sparse_mode=4", "2 or 3, which MindSpore's documentation names for this layout"))
    if is_packed and (real_shift is not None or keep_prob < 1.0 or has_full_mask or attention_blocks.is_in_blocks()):
        hint = "sparse_mode 2 or 3, without enable_ring_attention"
        raise ValueError(message("input_layout='TND' with a real_shift, a drop_mask or a mask of all keys", "neither of them", hint=hint))
    if attention_blocks.is_in_blocks():
        if real_shift is not None or keep_prob < 1.0:
            raise ValueError("enable_ring_attention: expected neither real_shift nor keep_prob below 1.")
        mask = _mask_of_all_keys(attn_mask, q, k) if attn_mask is not None and has_full_mask else None
        out, largest, total = attention_blocks.attention(q, k, v, mask, scalar_value, before, behind)
        out = heads_together(out.to(value.dtype), input_layout)
        return largest.expand(*largest.shape[:-1], 8), total.expand(*total.shape[:-1], 8), query.new_empty(0), out
    scores = (q.float() @ k.float().mT) * scalar_value
    if real_shift is not None:
        scores = scores + real_shift
    if is_packed:
        hidden = _hidden_from_sequences(query, key, actual_seq_qlen, actual_seq_kvlen, before, None if sparse_mode == 3 else behind)
    else:
        hidden = attention_blocks.hidden(*scores.shape[-2:], before, behind, scores.device)
    if attn_mask is not None and has_full_mask:
        hidden = hidden | attn_mask.to(torch.bool)
    scores, weights = weighed(scores, hidden)
    if keep_prob < 1.0:
        if drop_mask is None:
            raise ValueError(f"keep_prob={keep_prob}: expected a drop_mask, in which 1 means keep.")
        weights = weights * _mask_of_weights(drop_mask, weights) / keep_prob
    out = heads_together((weights @ v.float()).to(value.dtype), input_layout)
    scores = scores.detach()
    largest = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    total = torch.exp(scores - attention_blocks.finite(largest)).sum(-1, keepdim=True)
    if is_packed:
        largest, total = heads_together(largest, _PACKED), heads_together(total, _PACKED)
    return largest.expand(*largest.shape[:-1], 8), total.expand(*total.shape[:-1], 8), query.new_empty(0), out


def _mask_of_weights(drop_mask: T, weights: T) -> T:
    """Return the mask with an element for each weight; one of bytes has eight in each byte, the lowest bit first."""
    if drop_mask.dtype != torch.uint8 or drop_mask.numel() * 8 != weights.numel():
        return drop_mask.reshape(weights.shape)
    powers = constant([1, 2, 4, 8, 16, 32, 64, 128], drop_mask.device, torch.int32)
    return ((drop_mask.int().unsqueeze(-1) & powers) != 0).reshape(weights.shape)


def _hidden_from_sequences(query: T, key: T, query_ends: Any, key_ends: Any, before: int, behind: int | None) -> T:
    """Return which keys (columns) a query (row) of packed sequences does not see.

    It sees keys of its own sequence, from `before` positions before it to `behind` after it; None aligns the last query with the last key.
    Tokens behind the last end belong to no sequence.
    """
    ends = [_ends(name, value, t) for name, value, t in (
        ("actual_seq_qlen", query_ends, query), ("actual_seq_kvlen", key_ends, key),
    )]
    if ends[0].shape != ends[1].shape:
        raise ValueError(message(f"actual_seq_qlen of {ends[0].shape[0]} and actual_seq_kvlen of {ends[1].shape[0]}", "as many sequences"))
    positions = [torch.arange(t.shape[0], device=t.device) for t in (query, key)]
    numbers = [torch.searchsorted(end, position, right=True) for end, position in zip(ends, positions)]
    starts = [torch.cat([end.new_zeros(1), end]) for end in ends]
    rows, columns = (position - start[number] for position, start, number in zip(positions, starts, numbers))
    offset = columns - rows.unsqueeze(-1)
    if behind is None:
        lengths = [torch.cat([end.diff(prepend=end.new_zeros(1)), end.new_zeros(1)]) for end in ends]
        limit: Any = (lengths[1] - lengths[0])[numbers[0]].unsqueeze(-1)
    else:
        limit = behind
    is_other = (numbers[0].unsqueeze(-1) != numbers[1]) | (numbers[0] == ends[0].shape[0]).unsqueeze(-1)
    return is_other | (offset > limit) | (offset < -before)


def _ends(name: str, value: Any, t: T) -> T:
    """Return the ends of packed sequences as an int64 tensor. Raises ValueError if they are absent, or decrease, or exceed the tokens."""
    if isinstance(value, T) and value.ndim == 1 and not value.is_floating_point():
        return value.to(t.device, torch.int64).contiguous()
    is_list = isinstance(value, (list, tuple)) and all(type(end) is int for end in value) and len(value) > 0
    if not is_list or list(value) != sorted(value) or value[0] < 0 or value[-1] != t.shape[0]:
        expected = f"the ends of the sequences, which do not decrease, the last one {t.shape[0]}"
        raise ValueError(message(f"input_layout='TND' with {name}={short(value)}", expected))
    return torch.tensor(value, device=t.device)


def _mask_of_all_keys(mask: T, query: T, key: T) -> T:
    """Return the mask with a column for each key: devices read the columns of their keys. Raises RuntimeError for shapes that don't fit."""
    mask.expand(*query.shape[:3], key.shape[2])                  # torch compares all axes
    return mask.expand(*mask.shape[:-1], key.shape[2])


def weighed(scores: T, hidden: T) -> tuple[T, T]:
    """Exclude hidden products and return them with their softmax; rows that see nothing are zeros."""
    scores = scores.masked_fill(hidden, -torch.inf)
    return scores, torch.where(hidden.all(-1, keepdim=True), 0, torch.softmax(scores, -1))
