"""Attention of queries over one block of keys and values, and the combination of several blocks: the operators of ring attention.

Tensors are (B, N, S, D). In a graph of one device the block contains all keys. `distributed.shard.lowerings.attention` replaces that call
by one for each block of keys that a device receives. The positions of a query and of a key in the full sequence decide whether the query
sees the key: not if the key is more than `before` positions before it or more than `behind` after it, or if `mask` is True.

Formulas: FlashAttention-2 (Dao, arXiv 2307.08691) for the combination and the gradient, Ring Attention (Liu and others, arXiv 2310.01889).
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from torchspore.engine.torch_internals.custom_operators import define

T = torch.Tensor
_is_in_blocks: ContextVar[bool] = ContextVar("attention in blocks", default=False)


@contextmanager
def in_blocks() -> Iterator[None]:
    """A block in which attention is captured as `attention_block`, so that keys and values may be split along the sequence."""
    token = _is_in_blocks.set(True)
    try:
        yield
    finally:
        _is_in_blocks.reset(token)


def is_in_blocks() -> bool:
    """Return whether attention is captured as `attention_block`."""
    return _is_in_blocks.get()


def attention(query: T, key: T, value: T, mask: T | None, scale: float, before: int, behind: int) -> tuple[T, T, T]:
    """Return the attention in float32 (B, N, S, D), and of each query the largest product and the sum of exponentials (B, N, S, 1)."""
    results: tuple[T, T, T] = _Attention.apply(query, key, value, mask, scale, before, behind)
    return results


def hidden(rows: int, columns: int, before: int, behind: int, device: Any, shift: int = 0) -> T:
    """Return which keys (columns) a query (row) does not see: those over `before` positions before it, or over `behind` after it.

    `shift` is the position of the first key, counted from the first query.
    """
    offset = torch.arange(columns, device=device) + shift - torch.arange(rows, device=device).unsqueeze(-1)
    return (offset > behind) | (offset < -before)


def finite(largest: T) -> T:
    """Return the largest product of each query, which is subtracted before exponentials; 0 for a query that sees nothing."""
    return largest.masked_fill(largest == -torch.inf, 0)


def _scores(
    query: T, key: T, mask: T | None, scale: float, before: int, behind: int, first_row: int, position: int, step: int, count: int,
) -> T:
    """Return the products (B, N, rows, columns), -inf where the query does not see the key.

    The queries begin at position `first_row`. The keys are block `position - step` of `count` blocks; `mask` has columns for all of them.
    """
    scores = (query.float() @ key.float().mT) * scale
    rows, columns = scores.shape[-2:]
    first_column = (position - step) % count * columns
    is_hidden = hidden(rows, columns, before, behind, scores.device, first_column - first_row)
    if mask is not None:
        is_hidden = is_hidden | mask.narrow(-1, first_column, columns).to(torch.bool)
    return scores.masked_fill(is_hidden, -torch.inf)


def _block(
    query: T, key: T, value: T, mask: T | None, scale: float, before: int, behind: int, first_row: int, position: int, step: int,
    count: int,
) -> tuple[T, T, T]:
    scores = _scores(query, key, mask, scale, before, behind, first_row, position, step, count)
    largest = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - finite(largest))
    total = weights.sum(-1, keepdim=True)
    return (weights @ value.float()) / total.masked_fill(total == 0, 1), largest, total


def block_form(query: T, key: T, value: T, *settings: Any) -> tuple[T, T, T]:
    """Return Tensors of the shapes and dtypes of the results of `attention_block`."""
    del key, settings
    statistics = query.new_empty((*query.shape[:-1], 1), dtype=torch.float32)
    out = query.new_empty((*query.shape[:-1], value.shape[-1]), dtype=torch.float32)
    return out, statistics, torch.empty_like(statistics)


BLOCK = define(
    "attention_block(Tensor query, Tensor key, Tensor value, Tensor? mask, float scale, int before, int behind, int first_row, "
    "int position, int step, int count) -> (Tensor, Tensor, Tensor)", _block, block_form,
)
"""The attention over one block: the result, the largest product and the sum of exponentials of each query."""


def _merge(out: T, largest: T, total: T, other_out: T, other_largest: T, other_total: T) -> tuple[T, T, T]:
    highest = torch.maximum(largest, other_largest)
    base = finite(highest)
    first, second = total * torch.exp(largest - base), other_total * torch.exp(other_largest - base)
    both = first + second
    return (out * first + other_out * second) / both.masked_fill(both == 0, 1), highest, both


MERGE = define(
    "attention_merge(Tensor out, Tensor largest, Tensor total, Tensor other_out, Tensor other_largest, Tensor other_total) "
    "-> (Tensor, Tensor, Tensor)", _merge,
    lambda out, largest, total, *others: (torch.empty_like(out), torch.empty_like(largest), torch.empty_like(total)),
)
"""The attention over the keys of two blocks."""


def _gradient(
    grad: T, query: T, key: T, value: T, mask: T | None, out: T, largest: T, total: T, scale: float, before: int, behind: int,
    first_row: int, position: int, step: int, count: int,
) -> tuple[T, T, T]:
    scores = _scores(query, key, mask, scale, before, behind, first_row, position, step, count)
    weights = torch.exp(scores - finite(largest)) / total.masked_fill(total == 0, 1)
    grad = grad.float()
    of_scores = weights * (grad @ value.float().mT - (grad * out).sum(-1, keepdim=True)) * scale
    return of_scores @ key.float(), of_scores.mT @ query.float(), weights.mT @ grad


def gradient_form(grad: T, query: T, key: T, value: T, *settings: Any) -> tuple[T, T, T]:
    """Return Tensors of the shapes and dtypes of the results of `attention_block_gradient`."""
    del grad, settings
    of_query, of_key, of_value = (t.new_empty(t.shape, dtype=torch.float32) for t in (query, key, value))
    return of_query, of_key, of_value


GRADIENT = define(
    "attention_block_gradient(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor out, Tensor largest, Tensor total, "
    "float scale, int before, int behind, int first_row, int position, int step, int count) -> (Tensor, Tensor, Tensor)",
    _gradient, gradient_form,
)
"""The contribution of one block to the gradient of the queries, and the gradients of its keys and values, in float32.

`out`, `largest` and `total` are those of the attention over all blocks.
"""


def _differentiable_gradient(
    grad: T, query: T, key: T, value: T, mask: T | None, scale: float, before: int, behind: int,
) -> tuple[T, T, T]:
    """Return what GRADIENT returns for all keys, by operators that have gradients; each device computes with all keys.

    GRADIENT has no gradient of its own: torch would take its results for constants.
    """
    scores = _scores(query, key, mask, scale, before, behind, 0, 0, 0, 1)
    weights = torch.softmax(scores, -1)
    weights = weights.masked_fill((scores == -torch.inf).all(-1, keepdim=True), 0)
    grad = grad.float()
    out = weights @ value.float()
    of_scores = weights * (grad @ value.float().mT - (grad * out).sum(-1, keepdim=True)) * scale
    return of_scores @ key.float(), of_scores.mT @ query.float(), weights.mT @ grad


class _Attention(torch.autograd.Function):
    """`attention_block` over all keys, with its gradient."""

    @staticmethod
    def forward(ctx: Any, query: T, key: T, value: T, mask: T | None, scale: float, before: int, behind: int) -> tuple[T, T, T]:
        out, largest, total = BLOCK(query, key, value, mask, scale, before, behind, 0, 0, 0, 1)
        ctx.settings = scale, before, behind
        ctx.save_for_backward(query, key, value, mask, out, largest, total)
        ctx.mark_non_differentiable(largest, total)
        return out, largest, total

    @staticmethod
    def backward(ctx: Any, grad: T, *of_statistics: T) -> Any:
        query, key, value, mask, out, largest, total = ctx.saved_tensors
        if torch.is_grad_enabled():                # this gradient has a gradient
            gradients = _differentiable_gradient(grad, query, key, value, mask, *ctx.settings)
        else:
            gradients = GRADIENT(grad, query, key, value, mask, out, largest, total, *ctx.settings, 0, 0, 0, 1)
        of_inputs = (gradient.to(t.dtype) for gradient, t in zip(gradients, (query, key, value)))
        return *of_inputs, None, None, None, None
