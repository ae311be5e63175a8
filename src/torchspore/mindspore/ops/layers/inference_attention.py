"""Attention for inference: complete prompts, one token against a key-value cache, and caches in blocks.

Ascend's kernels compute in half precision; these compute in float32 and round once. Quantized forms are refused by name.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import grid_sample

from torchspore.base.text import message
from torchspore.engine.formulas.attention_blocks import finite
from torchspore.mindspore.ops.declaration.declare import OPERATORS, op
from torchspore.mindspore.ops.layers.flash_attention import for_each_query, heads_apart, heads_together, weighed

T = torch.Tensor
Lengths = Any
"""One length for each row of the batch, or one for all rows: a Tensor, a tuple or a list."""


@op(primitive="PromptFlashAttention", init=(
    "num_heads", "scale_value", "pre_tokens", "next_tokens", "input_layout", "num_key_value_heads", "sparse_mode", "inner_precise",
))
def prompt_flash_attention(
    query: T, key: T, value: T, attn_mask: T | None = None, actual_seq_lengths: Lengths = None, actual_seq_lengths_kv: Lengths = None,
    pse_shift: T | None = None, deq_scale1: T | None = None, quant_scale1: T | None = None, deq_scale2: T | None = None,
    quant_scale2: T | None = None, quant_offset2: T | None = None, num_heads: int = 1, scale_value: float = 1.0,
    pre_tokens: int = 2147483647, next_tokens: int = 0, input_layout: str = "BSH", num_key_value_heads: int = 0, sparse_mode: int = 0,
    inner_precise: int = 1,
) -> T:
    """softmax(scale_value * query @ key^T + pse_shift) @ value of (B, S, H) or (B, N, S, D); `attn_mask` marks excluded keys.

    Keys beyond the actual lengths are excluded, and queries beyond them give zeros. If there is a mask, `sparse_mode` 0 includes keys from
    `pre_tokens` before to `next_tokens` after a query; 1 follows the mask; 2 and 3 exclude keys after the query, aligned to the upper left
    or lower right corner; 4 is a band aligned to the lower right. Raises ValueError for quantized forms and arguments that do not fit.
    """
    call = "prompt_flash_attention"
    _no_quantized(
        call, query, deq_scale1=deq_scale1, quant_scale1=quant_scale1, deq_scale2=deq_scale2, quant_scale2=quant_scale2,
        quant_offset2=quant_offset2,
    )
    _check(call, inner_precise, (0, 1), "inner_precise")
    q, k, v = _apart(call, query, key, value, input_layout, num_heads, num_key_value_heads)
    lengths = _lengths(call, "actual_seq_lengths", actual_seq_lengths, q), _lengths(call, "actual_seq_lengths_kv", actual_seq_lengths_kv, k)
    hidden = _hidden(call, q, k, lengths, attn_mask, sparse_mode, pre_tokens, next_tokens)
    return heads_together(_attention(q, k, v, scale_value, pse_shift, hidden)[0], input_layout).to(query.dtype)


@op(primitive="IncreFlashAttention", init=(
    "num_heads", "input_layout", "scale_value", "num_key_value_heads", "block_size", "inner_precise",
))
def incre_flash_attention(
    query: T, key: Any, value: Any, attn_mask: T | None = None, actual_seq_lengths: Lengths = None, pse_shift: T | None = None,
    dequant_scale1: T | None = None, quant_scale1: T | None = None, dequant_scale2: T | None = None, quant_scale2: T | None = None,
    quant_offset2: T | None = None, antiquant_scale: T | None = None, antiquant_offset: T | None = None, block_table: T | None = None,
    num_heads: int = 1, input_layout: str = "BSH", scale_value: float = 1.0, num_key_value_heads: int = 0, block_size: int = 0,
    inner_precise: int = 1, kv_padding_size: T | None = None,
) -> T:
    """Attention of one new token, (B, 1, H) or (B, N, 1, D), over keys and values (B, S, kvH) or (B, kvN, S, D), or lists of one of these.

    The first `actual_seq_lengths` keys count, or with `kv_padding_size` the last ones before the padding. With a `block_table`
    (B, blocks), keys and values are blocks, (number, block_size, kvH) or (number, kvN, block_size, D). Keys and values are
    (stored + antiquant_offset) * antiquant_scale; these have a number, or a number for each feature, for keys first and values second.
    Raises ValueError for other quantized forms and a `block_size` that differs from theirs.
    """
    call = "incre_flash_attention"
    _no_quantized(
        call, query, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2, quant_scale2=quant_scale2,
        quant_offset2=quant_offset2,
    )
    _check(call, inner_precise, (0, 1), "inner_precise")
    key, value = (_only(call, name, tensor) for name, tensor in (("key", key), ("value", value)))
    if block_table is not None:
        key, value = (_from_blocks(call, t, block_table, input_layout, block_size) for t in (key, value))
    q, k, v = _apart(call, query, key, value, input_layout, num_heads, num_key_value_heads)
    if q.shape[2] != 1:
        hint = "use prompt_flash_attention or fused_infer_attention_score"
        raise ValueError(message(f"{call}(query: {list(query.shape)}) in {input_layout}", "one query of each sequence", hint=hint))
    k, v = (_dequantized(call, t, antiquant_scale, antiquant_offset, at, num_key_value_heads) for at, t in enumerate((k, v)))
    hidden = _beyond(k, _lengths(call, "actual_seq_lengths", actual_seq_lengths, k), kv_padding_size)
    if attn_mask is not None:
        hidden = hidden | attn_mask.to(torch.bool).reshape(attn_mask.shape[0], 1, 1, -1)
    return heads_together(_attention(q, k, v, scale_value, pse_shift, hidden)[0], input_layout).to(query.dtype)


@op()
def fused_infer_attention_score(
    query: T, key: Any, value: Any, *, pse_shift: T | None = None, atten_mask: T | None = None, actual_seq_lengths: Lengths = None,
    actual_seq_lengths_kv: Lengths = None, dequant_scale1: T | None = None, quant_scale1: T | None = None, dequant_scale2: T | None = None,
    quant_scale2: T | None = None, quant_offset2: T | None = None, antiquant_scale: T | None = None, antiquant_offset: T | None = None,
    key_antiquant_scale: T | None = None, key_antiquant_offset: T | None = None, value_antiquant_scale: T | None = None,
    value_antiquant_offset: T | None = None, block_table: T | None = None, query_padding_size: T | None = None,
    kv_padding_size: T | None = None, key_shared_prefix: T | None = None, value_shared_prefix: T | None = None,
    actual_shared_prefix_len: Lengths = None, num_heads: int = 1, scale: float = 1.0, pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647, input_layout: str = "BSH", num_key_value_heads: int = 0, sparse_mode: int = 0, inner_precise: int = 1,
    block_size: int = 0, antiquant_mode: int = 0, key_antiquant_mode: int = 0, value_antiquant_mode: int = 0,
    softmax_lse_flag: bool = False,
) -> tuple[T, T]:
    """`prompt_flash_attention` for several queries, `incre_flash_attention` for one; also the logarithm of the sum of exponentials.

    The logarithm is float32 (B, N, S, 1) with `softmax_lse_flag`, else a zero (1,). With layout 'BNSD_BSND' the result is (B, S, N, D).
    Raises ValueError for quantized forms, shared prefixes, and, with several queries, queries and keys with padding in front.
    """
    call = "fused_infer_attention_score"
    _no_quantized(
        call, query, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2, quant_scale2=quant_scale2,
        quant_offset2=quant_offset2, antiquant_scale=antiquant_scale, antiquant_offset=antiquant_offset,
        key_antiquant_scale=key_antiquant_scale, key_antiquant_offset=key_antiquant_offset, value_antiquant_scale=value_antiquant_scale,
        value_antiquant_offset=value_antiquant_offset, antiquant_mode=antiquant_mode or None, key_antiquant_mode=key_antiquant_mode or None,
        value_antiquant_mode=value_antiquant_mode or None,
    )
    for name, option in (("query_padding_size", query_padding_size), ("key_shared_prefix", key_shared_prefix), (
        "value_shared_prefix", value_shared_prefix
    ), ("actual_shared_prefix_len", actual_shared_prefix_len)):
        if option is not None:
            raise ValueError(message(f"{call}({name}=...)", "None", hint="write the visible keys into atten_mask"))
    _check(call, inner_precise, (0, 1, 2, 3), "inner_precise")
    inside, outside = ("BNSD", "BSND") if input_layout == "BNSD_BSND" else (input_layout, input_layout)
    key, value = (_only(call, name, tensor) for name, tensor in (("key", key), ("value", value)))
    if block_table is not None:
        key, value = (_from_blocks(call, t, block_table, inside, block_size) for t in (key, value))
    q, k, v = _apart(call, query, key, value, inside, num_heads, num_key_value_heads)
    of_keys = _lengths(call, "actual_seq_lengths_kv", actual_seq_lengths_kv, k)
    if q.shape[2] == 1:
        hidden = _beyond(k, of_keys, kv_padding_size)
        hidden = hidden if atten_mask is None else hidden | atten_mask.to(torch.bool).reshape(atten_mask.shape[0], 1, 1, -1)
    else:
        if kv_padding_size is not None:
            raise ValueError(message(f"{call}(kv_padding_size=...) of several queries", "None", hint="write it into atten_mask"))
        lengths = _lengths(call, "actual_seq_lengths", actual_seq_lengths, q), of_keys
        hidden = _hidden(call, q, k, lengths, atten_mask, sparse_mode, pre_tokens, next_tokens)
    out, sums = _attention(q, k, v, scale, pse_shift, hidden)
    return heads_together(out, outside).to(query.dtype), sums if softmax_lse_flag else sums.new_zeros(1)


@op(primitive="ReshapeAndCache", states=("key_cache", "value_cache"))
def reshape_and_cache(
    key: T, value: T | None = None, key_cache: T | None = None, value_cache: T | None = None, slot_mapping: T | None = None,
) -> T:
    """Write keys and values of new tokens (n, N, D) into blocks (blocks, block_size, N, D) at their slots (n,); return the keys.

    Slots are numbered through the blocks; tokens with negative slots are not written.
    """
    if key_cache is None or slot_mapping is None or (value is None) != (value_cache is None):
        raise ValueError(message("reshape_and_cache", "a key_cache and a slot_mapping, and a value_cache if there is a value"))
    requested_slots = slot_mapping.reshape(-1).long()
    is_stored = requested_slots >= 0
    for new, cache in ((key, key_cache), (value, value_cache)):
        if new is not None and cache is not None:
            slots = cache.view(cache.shape[0] * cache.shape[1], cache.flatten(2).shape[2])
            slots[requested_slots[is_stored]] = new.detach().reshape(len(requested_slots), slots.shape[1])[is_stored].to(cache.dtype)
    return key


@op(primitive="PagedAttention", init=("head_num", "scale_value", "kv_head_num", "kv_cache_quant_mode", "mask_mode", "mla_v_dim"))
def _paged_attention(
    query: T, key_cache: T, value_cache: T | None = None, block_tables: T | None = None, context_lens: T | None = None,
    antiquant_scale: T | None = None, antiquant_offset: T | None = None, attn_mask: T | None = None, q_seq_lens: T | None = None,
    alibi_mask: T | None = None, *, head_num: int, scale_value: float, kv_head_num: int, kv_cache_quant_mode: str = "DEFAULT",
    mask_mode: str = "MASK_DEFAULT", mla_v_dim: int = 0,
) -> T:
    """Attention of one token each, (n, N, D) or (n, N * D), over the first `context_lens` keys of its blocks (`block_tables`, (n, most)).

    Raises ValueError for quantized caches, several queries of one sequence, masks, and the compressed caches of `mla_v_dim`.
    """
    call = "PagedAttention"
    _no_quantized(call, query, antiquant_scale=antiquant_scale, antiquant_offset=antiquant_offset)
    for name, option in (("q_seq_lens", q_seq_lens), ("attn_mask", attn_mask), ("mla_v_dim", mla_v_dim or None)):
        if option is not None:
            raise ValueError(message(f"{call}({name}=...)", "None", hint="use fused_infer_attention_score with a block_table"))
    if value_cache is None or block_tables is None or context_lens is None:
        raise ValueError(message(call, "a value_cache, block_tables and context_lens"))
    _check(call, mask_mode, ("MASK_DEFAULT", "TRAPEZOIDAL"), "mask_mode")
    _check(call, kv_cache_quant_mode, ("DEFAULT",), "kv_cache_quant_mode")
    q = query.reshape(len(query), head_num, 1, query.flatten(1).shape[1] // max(head_num, 1))
    caches = [_from_blocks(call, t.flatten(2), block_tables, "BSH", 0) for t in (key_cache, value_cache)]
    k, v = (for_each_query(heads_apart(t, "BSH", kv_head_num), q) for t in caches)
    shift = None if alibi_mask is None else alibi_mask.reshape(len(query), -1, 1, alibi_mask.shape[-1])[..., : k.shape[2]]
    lengths = context_lens.reshape(-1).long()
    if len(lengths) < len(query):
        raise ValueError(message(f"{call}(context_lens of {len(lengths)} lengths)", f"{len(query)}, one for each token"))
    hidden = _beyond(k, lengths[: len(query)])
    return _attention(q, k, v, scale_value, shift, hidden)[0].reshape(query.shape).to(query.dtype)


@op(primitive="PagedAttentionMask", init=("head_num", "scale_value", "kv_head_num", "kv_cache_quant_mode"))
def _paged_attention_mask(
    query: T, key_cache: T, value_cache: T, block_tables: T, context_lens: T, antiquant_scale: T | None = None,
    antiquant_offset: T | None = None, alibi_mask: T | None = None, *, head_num: int, scale_value: float, kv_head_num: int,
    kv_cache_quant_mode: str = "DEFAULT",
) -> T:
    """PagedAttention with an `alibi_mask` (n, N, 1, keys), which is added to the scaled products.

    A sixth argument of four axes is the mask, as in releases before 2.4. Raises the errors of PagedAttention.
    """
    if antiquant_scale is not None and antiquant_scale.dim() == 4 and antiquant_offset is None and alibi_mask is None:
        antiquant_scale, alibi_mask = None, antiquant_scale
    result: T = OPERATORS["_paged_attention"].body(
        query, key_cache, value_cache, block_tables, context_lens, antiquant_scale, antiquant_offset, alibi_mask=alibi_mask,
        head_num=head_num, scale_value=scale_value, kv_head_num=kv_head_num, kv_cache_quant_mode=kv_cache_quant_mode,
    )
    return result


@op(primitive="FusedInferAttentionScore", init=(
    "num_heads", "scale_value", "pre_tokens", "next_tokens", "input_layout", "num_key_value_heads", "sparse_mode", "inner_precise",
    "block_size", "antiquant_mode", "softmax_lse_flag", "key_antiquant_mode", "value_antiquant_mode",
))
def _fused_infer_attention_score(
    query: T, key: Any, value: Any, pse_shift: T | None = None, attn_mask: T | None = None, actual_seq_lengths: Lengths = None,
    actual_seq_lengths_kv: Lengths = None, dequant_scale1: T | None = None, quant_scale1: T | None = None, dequant_scale2: T | None = None,
    quant_scale2: T | None = None, quant_offset2: T | None = None, antiquant_scale: T | None = None, antiquant_offset: T | None = None,
    block_table: T | None = None, query_padding_size: T | None = None, kv_padding_size: T | None = None,
    key_antiquant_scale: T | None = None, key_antiquant_offset: T | None = None, value_antiquant_scale: T | None = None,
    value_antiquant_offset: T | None = None, key_shared_prefix: T | None = None, value_shared_prefix: T | None = None,
    actual_shared_prefix_len: Lengths = None, num_heads: int = 1, scale_value: float = 1.0, pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647, input_layout: str = "BSH", num_key_value_heads: int = 0, sparse_mode: int = 0, inner_precise: int = 1,
    block_size: int = 0, antiquant_mode: int = 0, softmax_lse_flag: bool = False, key_antiquant_mode: int = 0,
    value_antiquant_mode: int = 0,
) -> tuple[T, T]:
    """Compute `fused_infer_attention_score`, with its arguments in another order; it raises the same errors."""
    result: tuple[T, T] = OPERATORS["fused_infer_attention_score"].body(
        query, key, value, pse_shift=pse_shift, atten_mask=attn_mask, actual_seq_lengths=actual_seq_lengths,
        actual_seq_lengths_kv=actual_seq_lengths_kv, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1,
        dequant_scale2=dequant_scale2, quant_scale2=quant_scale2, quant_offset2=quant_offset2, antiquant_scale=antiquant_scale,
        antiquant_offset=antiquant_offset, block_table=block_table, query_padding_size=query_padding_size,
        kv_padding_size=kv_padding_size, key_antiquant_scale=key_antiquant_scale, key_antiquant_offset=key_antiquant_offset,
        value_antiquant_scale=value_antiquant_scale, value_antiquant_offset=value_antiquant_offset, key_shared_prefix=key_shared_prefix,
        value_shared_prefix=value_shared_prefix, actual_shared_prefix_len=actual_shared_prefix_len, num_heads=num_heads,
        scale=scale_value, pre_tokens=pre_tokens, next_tokens=next_tokens, input_layout=input_layout,
        num_key_value_heads=num_key_value_heads, sparse_mode=sparse_mode, inner_precise=inner_precise, block_size=block_size,
        antiquant_mode=antiquant_mode, softmax_lse_flag=softmax_lse_flag, key_antiquant_mode=key_antiquant_mode,
        value_antiquant_mode=value_antiquant_mode,
    )
    return result


@op(primitive="KVCacheScatterUpdate", states=("var",))
def _kv_cache_scatter_update(var: T, indices: T, updates: T, axis: int, reduce: str = "none") -> T:
    """Write `updates` (B, N, s, D) into the cache `var` (B, N, S, D) from position `indices[row]` on along `axis` (-2, or -1 for S last).

    Returns `var`. Raises ValueError for another axis, another `reduce` and shapes that do not fit.
    """
    call = "KVCacheScatterUpdate"
    _check(call, reduce, ("none", "update"), "reduce")
    if var.dim() != 4 or axis not in (-1, -2, 2, 3):
        raise ValueError(message(f"{call}(axis={axis}) of {list(var.shape)}", "four axes, and axis -1 or -2"))
    at = axis % 4
    if updates.dim() != 4 or any(var.shape[i] != updates.shape[i] for i in range(4) if i != at) or len(indices) != len(var):
        wrote = f"{call} of {list(var.shape)} with indices {list(indices.shape)} and updates {list(updates.shape)}"
        raise ValueError(message(wrote, f"an index for each row, and updates of the cache's shape but for axis {axis}"))
    positions = indices.long().reshape(-1, 1) + torch.arange(updates.shape[at], device=var.device)
    shape = [len(var), 1, 1, 1]
    shape[at] = updates.shape[at]
    var.scatter_(at, positions.reshape(shape).expand(updates.shape), updates.detach().to(var.dtype))
    return var


@op(primitive="RingAttentionUpdate")
def ring_attention_update(
    prev_attn_out: T, prev_softmax_max: T, prev_softmax_sum: T, cur_attn_out: T, cur_softmax_max: T, cur_softmax_sum: T,
    actual_seq_qlen: T | None = None, layout: str = "SBH",
) -> tuple[T, T, T]:
    """Combine attention over two parts of the keys: the output, and its largest product and sum of exponentials.

    Outputs are (S, B, H) with sums (B, N, S, 8), or for layout 'TND' (T, N, D) with (T, N, 8), which requires `actual_seq_qlen`.
    """
    _check("ring_attention_update", layout, ("SBH", "TND"), "layout")
    if layout == "TND" and actual_seq_qlen is None:
        raise ValueError(message("ring_attention_update(layout='TND')", "an actual_seq_qlen"))
    largest = torch.maximum(prev_softmax_max, cur_softmax_max)
    most = finite(largest)
    before, now = prev_softmax_sum * torch.exp(prev_softmax_max - most), cur_softmax_sum * torch.exp(cur_softmax_max - most)
    total = before + now
    divisor = total.masked_fill(total == 0, 1)             # 0 for a query that sees nothing in either part
    out = prev_attn_out.float() * _per_feature(before / divisor, prev_attn_out, layout)
    out = out + cur_attn_out.float() * _per_feature(now / divisor, cur_attn_out, layout)
    return out.to(prev_attn_out.dtype), largest, total


def _per_feature(weights: T, like: T, layout: str) -> T:
    """Expand weights (B, N, S, 8) or (T, N, 8) to the shape of an output."""
    weight_per_row = weights[..., :1]
    if layout == "TND":
        return weight_per_row
    repeats = like.shape[-1] // weight_per_row.shape[1]
    return weight_per_row.expand(*weight_per_row.shape[:-1], repeats).permute(2, 0, 1, 3).reshape(like.shape)


@op(primitive="MultiScaleDeformableAttn")
def multi_scale_deformable_attn_function(value: T, shape: T, offset: T, locations: T, weight: T) -> T:
    """Sum weighted values at sampled positions of several feature maps (Zhu and others, Deformable DETR): (B, queries, heads * D).

    `value` (B, keys, heads, D) has the maps one after the other; map l is `shape[l]` (height, width) and begins at `offset[l]`.
    `locations` (B, queries, heads, levels, points, 2) are x and y from 0 to 1; `weight` has that shape without the last axis.
    """
    batch, _, heads, width = value.shape
    sampled = []
    for level, ((high, wide), start) in enumerate(zip(shape.tolist(), offset.tolist())):
        part = value[:, start : start + high * wide].permute(0, 2, 3, 1).reshape(batch * heads, width, high, wide)
        grid = (2 * locations[:, :, :, level] - 1).transpose(1, 2).flatten(0, 1)
        sampled.append(grid_sample(part.float(), grid.float(), align_corners=False))
    weights = weight.transpose(1, 2).flatten(3).flatten(0, 1).unsqueeze(1).float()
    out = (torch.cat(sampled, -1) * weights).sum(-1)
    return out.reshape(batch, heads * width, -1).transpose(1, 2).to(value.dtype)


def _attention(q: T, k: T, v: T, scale: float, shift: T | None, hidden: T) -> tuple[T, T]:
    """softmax(scale * q @ k^T + shift) @ v in float32, zeros for queries that see nothing; and the logarithm of its sum of exponentials."""
    scores = (q.float() @ k.float().mT) * scale
    if shift is not None:
        scores = scores + shift[..., : scores.shape[-2], : scores.shape[-1]]
    scores, weights = weighed(scores, hidden)
    return weights @ v.float(), torch.logsumexp(scores, -1, keepdim=True)


def _apart(call: str, query: T, key: T, value: T, layout: str, heads: int, kv_heads: int) -> tuple[T, T, T]:
    """Return queries, keys and values as (B, N, S, D) with equal numbers of heads."""
    _check(call, layout, ("BSH", "BNSD", "BSND"), "input_layout")
    groups = kv_heads or heads
    if heads < 1 or groups < 0 or heads % groups:
        call_text = f"{call}(num_heads={heads}, num_key_value_heads={kv_heads})"
        raise ValueError(message(call_text, "a number of heads, and 0 or one that divides it"))
    for name, t, count in (("query", query, heads), ("key", key, groups), ("value", value, groups)):
        num_heads = t.shape[1] if layout == "BNSD" else t.shape[2] if layout == "BSND" else None
        if t.dim() != len(layout) or (t.shape[-1] % count if num_heads is None else num_heads != count):
            raise ValueError(message(f"{call}({name}: {list(t.shape)})", f"{layout} with {count} heads"))
    q = heads_apart(query, layout, heads)
    k, v = (for_each_query(heads_apart(t, layout, groups), q) for t in (key, value))
    return q, k, v


def _hidden(call: str, q: T, k: T, lengths: tuple[T, T], mask: T | None, mode: int, before: int, behind: int) -> T:
    """Return which keys are hidden from each query, (B, 1 or N, S, keys): beyond the lengths, and by the mask's mode."""
    _check(call, mode, (0, 1, 2, 3, 4), "sparse_mode")
    rows = torch.arange(q.shape[2], device=q.device).unsqueeze(-1)
    columns = torch.arange(k.shape[2], device=q.device)
    of_queries, of_keys = (row_lengths.reshape(-1, 1, 1, 1) for row_lengths in lengths)
    hidden = (columns >= of_keys) | (rows >= of_queries)
    offset = columns - rows
    if mode in (3, 4):
        offset = offset - (of_keys - of_queries)
    if mode in (2, 3):
        return hidden | (offset > 0)
    if mode == 4 or (mode == 0 and mask is not None):
        hidden = hidden | (offset > behind) | (offset < -before)
    if mode in (0, 1) and mask is not None:
        mask = mask.to(torch.bool)
        hidden = hidden | (mask.unsqueeze(1) if mask.dim() == 3 else mask)[..., : q.shape[2], : k.shape[2]]
    elif mode == 1:
        raise ValueError(message(f"{call}(sparse_mode=1)", "a mask"))
    return hidden


def _beyond(k: T, lengths: T, padding: T | None = None) -> T:
    """Return which keys (B, 1, 1, S) are not among the first ones, or not among the last ones before a padding."""
    columns, lengths = torch.arange(k.shape[2], device=k.device), lengths.reshape(-1, 1, 1, 1)
    if padding is None:
        return columns >= lengths
    end = k.shape[2] - padding.reshape(-1)[0].clamp(min=0)
    return (columns >= end) | (columns < end - lengths) | (end - lengths < 0)


def _lengths(call: str, name: str, lengths_argument: Lengths, t: T) -> T:
    """Return one length for each row of the batch of t (B, N, S, D)."""
    if lengths_argument is None:
        return torch.full((t.shape[0],), t.shape[2], device=t.device)
    lengths = torch.as_tensor(lengths_argument, device=t.device).reshape(-1).long()
    if len(lengths) not in (1, t.shape[0]):
        raise ValueError(message(f"{call}({name} of {len(lengths)} lengths)", f"1 or {t.shape[0]}"))
    return lengths


def _from_blocks(call: str, blocks: T, table: T, layout: str, size: int) -> T:
    """Gather the keys or values of each sequence, (B, S, H) or (B, N, S, D), from blocks; table entries below 0 mean no block."""
    actual_size = blocks.shape[2] if layout == "BNSD" else blocks.shape[1]
    if size not in (0, actual_size):
        raise ValueError(message(f"{call}(block_size={size}) of blocks {list(blocks.shape)}", f"{actual_size}"))
    chosen = blocks[table.long().clamp(min=0)]
    return chosen.transpose(1, 2).flatten(2, 3) if layout == "BNSD" else chosen.flatten(1, 2)


def _only(call: str, name: str, tensor: Any) -> T:
    """Return the Tensor, or the only Tensor of a list."""
    if isinstance(tensor, (list, tuple)):
        if len(tensor) != 1:
            raise ValueError(message(f"{call}({name} of {len(tensor)} Tensors)", "one", hint="join them along the batch"))
        return tensor[0]  # type: ignore[no-any-return]
    return tensor  # type: ignore[no-any-return]


def _dequantized(call: str, stored: T, scale: T | None, offset: T | None, at: int, kv_heads: int) -> T:
    """Return (stored + offset[at]) * scale[at] of keys or values (B, N, S, D); `stored` itself without a scale.

    The parts have one number, or one for each feature: of `kv_heads` heads, or of the N heads of the queries. Raises ValueError for other
    shapes, and for an offset without a scale.
    """
    if scale is None and offset is None:
        return stored
    heads, width = stored.shape[1], stored.shape[-1]
    counts = {1: 1, heads * width: heads, (kv_heads or heads) * width: kv_heads or heads}
    if scale is None or len(scale) != 2 or scale[0].numel() not in counts or (offset is not None and offset.shape != scale.shape):
        shapes = [None if t is None else list(t.shape) for t in (scale, offset)]
        wrote = f"{call} with antiquant_scale {shapes[0]} and antiquant_offset {shapes[1]}"
        raise ValueError(message(wrote, f"equal shapes (2, features) with {' or '.join(map(str, sorted(counts)))} features"))

    def of_heads(numbers: T) -> T:
        count = counts[numbers.numel()]
        return numbers.float().reshape(count, 1, -1).repeat_interleave(heads // count if count > 1 else 1, 0)

    values = stored.float() if offset is None else stored.float() + of_heads(offset[at])
    return values * of_heads(scale[at])


def _no_quantized(call: str, query: T, **quantization: Any) -> None:
    """Raises ValueError for the arguments of quantized forms."""
    for name, value in quantization.items():
        if value is not None:
            raise ValueError(message(f"{call}({name}=...)", "None", hint="compute with float16, bfloat16 or float32 Tensors"))
    if not query.is_floating_point():
        raise ValueError(message(f"{call} of a quantized query", "float16, bfloat16 or float32"))


def _check(call: str, value: Any, choices: tuple[Any, ...], name: str) -> None:
    if value not in choices:
        raise ValueError(message(f"{call}({name}={value!r})", " or ".join(map(repr, choices))))
