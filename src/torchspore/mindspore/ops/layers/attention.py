"""Multi-head attention as one function, and its parts, which other packages combine in their own way."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.frames import line_prefix
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops


def linear(x: Any, w: Any, b: Any) -> Any:
    """x @ w^T + b for x (..., n), w (m, n) and b (m,) or None."""
    return ops.dense(x, w, b)


def _in_projection(
    q: Any, k: Any, v: Any, w_q: Any, w_k: Any, w_v: Any, b_q: Any = None, b_k: Any = None, b_v: Any = None,
) -> tuple[Any, Any, Any]:
    """Project queries, keys and values (..., E) by a matrix (E, length) each."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(q: Any, k: Any, v: Any, w: Any, b: Any, k_is_v: bool, q_is_k: bool) -> tuple[Any, Any, Any]:
    """Project queries, keys and values (..., E) by the thirds of one matrix (3E, E); identical Tensors share one product."""
    e = q.shape[-1]
    if k_is_v and q_is_k:
        projections = linear(q, w, b)
        return projections[..., :e], projections[..., e:2 * e], projections[..., 2 * e:]
    biases = (None, None, None) if b is None else (b[:e], b[e:2 * e], b[2 * e:])
    return _in_projection(q, k, v, w[:e], w[e:2 * e], w[2 * e:], *biases)


def _inner_dropout(x: Any, p: float, training: bool) -> Any:
    """Drop the fraction `p` of the elements of `x` while training."""
    return ops.dropout(x, p) if training and p > 0 else x


def _inner_pad(x: Any, padding: Any, value: Any = None) -> Any:
    """Pad `x` by (left, right) of its last axis, and so on, with `value`, or with zeros if that is False."""
    padded = x.astype(dtypes.int32) if x.dtype == dtypes.bool_ else x
    return ops.pad(padded, padding, value=0 if value is None else value).astype(x.dtype)


def _check_qkv_shape(query_ndim: int, key_ndim: int, value_ndim: int) -> bool:
    """Return whether queries, keys and values have a batch axis: True for 3 axes each, False for 2. Raises ValueError for others."""
    if query_ndim not in (2, 3) or (key_ndim, value_ndim) != (query_ndim, query_ndim):
        ranks = f"{query_ndim}, {key_ndim}, {value_ndim}"
        raise ValueError(f"{line_prefix()}attention: expected query, key and value of 2 or of 3 axes, got {ranks}.")
    return query_ndim == 3


def _check_kpm_shape(query_ndim: int, kmp_ndim: int) -> None:
    """Raises ValueError unless the padding mask of the keys has one axis fewer than the queries."""
    if kmp_ndim != query_ndim - 1:
        raise ValueError(f"{line_prefix()}attention: key_padding_mask: expected {query_ndim - 1} axes, got {kmp_ndim}.")


def _check_attn_mask_shape(
    query_ndim: int, query_shape: Any, key_shape: Any, attn_mask_ndim: int, attn_mask_shape: Any, num_heads: int,
) -> None:
    """Raises ValueError unless the mask is (L, S), or (N * heads, L, S)."""
    if attn_mask_ndim not in (2, 3):
        raise ValueError(f"{line_prefix()}attention: attn_mask: expected 2 or 3 axes, got {attn_mask_ndim}.")
    if query_ndim == 2 and attn_mask_ndim == 3:
        expected_shape = (num_heads, query_shape[0], key_shape[0])
        if tuple(attn_mask_shape) != expected_shape:
            raise ValueError(f"{line_prefix()}attention: attn_mask: expected shape {expected_shape}, got {tuple(attn_mask_shape)}.")


def _thirds(bias: Any) -> list[Any]:
    if bias is None:
        return [None, None, None]
    e = bias.shape[0] // 3
    return [bias[i * e:(i + 1) * e] for i in range(3)]


def _added(mask: Any, dtype: Any) -> Any:
    """Convert a mask to numbers that are added: minus infinity where it is True."""
    if mask.dtype not in (dtypes.bool_, dtypes.uint8):
        return mask.astype(dtype)
    return ops.masked_fill(ops.zeros(mask.shape, dtype), mask.astype(dtypes.bool_), float("-inf"))


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any, bias_k: Any,
    bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, attn_mask: Any = None, use_separate_proj_weight: bool = False, q_proj_weight: Any = None,
    k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False, k_is_v: bool = False, q_is_k: bool = False, dtype: Any = dtypes.float32,
) -> tuple[Any, Any]:
    """Return (result (L, N, E), weights) of attention over query (L, N, E), key and value (S, N, length). The axis N may be absent.

    The weights are (N, L, S), or (N, heads, L, S) if they are not averaged. A bool mask forbids where True, a number mask is added.
    `static_k` and `static_v` (N * heads, S, E / heads) replace the projected keys and values; `dtype` is that of added zeros. Raises
    ValueError if lengths do not fit, and for `is_causal` without a mask.
    """
    batched = _check_qkv_shape(query.ndim, key.ndim, value.ndim)
    if not batched:
        query, key, value = (ops.expand_dims(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else ops.expand_dims(key_padding_mask, 0)
    length, batch, e = query.shape
    if e != embed_dim_to_check or e % num_heads:
        expected_length = f"{embed_dim_to_check}, a multiple of {num_heads} heads"
        raise ValueError(f"{line_prefix()}attention: expected queries of length {expected_length}, got {e}.")
    if is_causal and attn_mask is None:
        raise ValueError(f"{line_prefix()}attention(is_causal=True): expected an attn_mask, because is_causal only describes it.")
    if use_separate_proj_weight:
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *_thirds(in_proj_bias))
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias, k_is_v, q_is_k)
    more = 0
    if bias_k is not None and bias_v is not None:
        k, v = (ops.concat((x, ops.tile(b, (1, batch, 1)))) for x, b in ((k, bias_k), (v, bias_v)))
        more += 1
    head = e // num_heads
    q, k, v = (ops.transpose(ops.reshape(x, (x.shape[0], batch, num_heads, head)), (1, 2, 0, 3)) for x in (q, k, v))
    k, v = (x if s is None else ops.reshape(s, (batch, num_heads, -1, head)) for x, s in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (ops.concat((x, ops.zeros((batch, num_heads, 1, head), dtype).astype(x.dtype)), 2) for x in (k, v))
        more += 1
    products = ops.matmul(q / math.sqrt(head), ops.swapaxes(k, 2, 3))
    products = _masked(products, attn_mask, key_padding_mask, more)
    weights = _inner_dropout(ops.softmax(products, -1), dropout_p, training)
    out = ops.reshape(ops.transpose(ops.matmul(weights, v), (2, 0, 1, 3)), (length, batch, e))
    out = linear(out, out_proj_weight, out_proj_bias)
    weights = ops.mean(weights, 1) if average_attn_weights else weights
    return (out, weights) if batched else (ops.squeeze(out, 1), ops.squeeze(weights, 0))


def _masked(products: Any, mask: Any, padding: Any, more: int) -> Any:
    """Add both masks of S keys to the products (N, heads, L, S + more)."""
    batch, heads, length, count = products.shape
    if mask is not None:
        additive_mask = _added(mask, products.dtype)
        additive_mask = additive_mask if additive_mask.ndim == 2 else ops.reshape(additive_mask, (batch, heads, length, count - more))
        products = products + (_inner_pad(additive_mask, (0, more)) if more else additive_mask)
    if padding is not None:
        additive_mask = ops.reshape(_added(padding, products.dtype), (batch, 1, 1, count - more))
        products = products + (_inner_pad(additive_mask, (0, more)) if more else additive_mask)
    return products


def _interploate_ext_make_tuple(input: Any, value: Any) -> Any:
    """Return `value` for each spatial axis of `input` (N, C, ...), repeating a single number."""
    return value if isinstance(value, (tuple, list)) else (value,) * (input.ndim - 2)


def _interpolate_ext_scale_factor_convert_size(input: Any, scale_factor: Any) -> list[int]:
    """Return the lengths of the spatial axes of `input` (N, C, ...) times their factors, rounded down."""
    return [math.floor(float(n) * float(factor)) for n, factor in zip(input.shape[2:], scale_factor)]
