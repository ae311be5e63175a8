"""Sequences of tokens: distances, repetitions, filters, and attention as single operators."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.mindspore.ops.declare import op

T = torch.Tensor


def _rows(indices: T, values: T) -> dict[tuple[int, ...], list[Any]]:
    """The sequences of a sparse Tensor by the indexes in front of the last."""
    found: dict[tuple[int, ...], list[Any]] = {}
    for at, value in zip(indices.tolist(), values.tolist()):
        found.setdefault(tuple(at[:-1]), []).append(value)
    return found


def _distance(a: list[Any], b: list[Any]) -> int:
    """How many insertions, deletions and replacements make `a` into `b` (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@op(primitive="EditDistance", init=("normalize",))
def _edit_distance(
    hypothesis_indices: T, hypothesis_values: T, hypothesis_shape: T, truth_indices: T, truth_values: T, truth_shape: T,
    normalize: bool = True,
) -> T:
    """The Levenshtein distances of sparse sequences, in lengths of the truth if `normalize`: float32, a shape without the last axis."""
    shape = [max(a, b) for a, b in zip(hypothesis_shape.tolist(), truth_shape.tolist())][:-1]
    out = torch.zeros(shape, device=truth_values.device)
    guesses, truths = _rows(hypothesis_indices, hypothesis_values), _rows(truth_indices, truth_values)
    for at in guesses.keys() | truths.keys():
        guess, truth = guesses.get(at, []), truths.get(at, [])
        steps: float = _distance(guess, truth)
        if normalize:
            steps = steps / len(truth) if truth else math.inf
        out[at] = steps
    return out


@op(primitive="NoRepeatNGram", init=("ngram_size",))
def _no_repeat_ngram(state_seq: T, log_probs: T, ngram_size: int = 1) -> T:
    """`log_probs` (B, beams, V) with the dtype's smallest number for each token that would repeat n tokens of `state_seq` (B, beams, S)."""
    length = state_seq.shape[-1]
    if not 1 <= ngram_size <= length:
        raise ValueError(f"ngram_size={ngram_size}: expected a number from 1 to {length}, the length of the sequences.")
    windows = state_seq.long().unfold(-1, ngram_size, 1)
    last = state_seq.long()[..., length - ngram_size + 1 :].unsqueeze(-2)
    again = (windows[..., : ngram_size - 1] == last).all(-1)
    places = torch.where(again, windows[..., -1], log_probs.shape[-1])
    wide = torch.cat([log_probs, log_probs[..., :1]], -1)
    low = torch.finfo(log_probs.dtype).min
    return wide.scatter(-1, places, low)[..., :-1].clone()


@op(primitive="SubAndFilter")
def _sub_and_filter(input_x: T, max_num: Any, offset: Any) -> Any:
    """x - offset of the elements for which that is from 0 up to, without, `max_num`, and where they are (in the dtype of x)."""
    moved = input_x - int(offset)
    places = torch.nonzero((moved >= 0) & (moved < int(max_num))).reshape(-1)
    return moved[places], places.to(input_x.dtype)


@op(primitive="MapUniform")
def _map_uniform(input: T, per_group_size: Any, group_num: Any) -> T:
    """x spread evenly over groups: x % group_num * per_group_size + x // group_num."""
    groups = int(group_num)
    return torch.remainder(input, groups) * int(per_group_size) + torch.div(input, groups, rounding_mode="floor")


def _turned(x: T, mode: int) -> T:
    if mode == 0:
        low, high = x.chunk(2, -1)
        return torch.cat([-high, low], -1)
    if mode == 1:
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    raise ValueError(f"mode={mode!r}: expected 0 (halves) or 1 (neighbours).")


@op()
def rotary_position_embedding(x: T, cos: T, sin: T, mode: int = 0) -> T:
    """x * cos + turned(x) * sin (Su and others): turned by halves of the last axis (mode 0) or by neighbours (mode 1)."""
    return x * cos + _turned(x, mode) * sin


_LAYOUTS = ("BSH", "BNSD", "SBH", "BSND")


def _heads(t: T, layout: str, heads: int) -> T:
    """A Tensor of one of the layouts as (B, N, S, D)."""
    if layout == "BNSD":
        return t
    if layout == "BSND":
        return t.transpose(1, 2)
    t = t.transpose(0, 1) if layout == "SBH" else t
    return t.reshape(*t.shape[:2], heads, -1).transpose(1, 2)


def _joined(t: T, layout: str) -> T:
    if layout == "BNSD":
        return t
    t = t.transpose(1, 2)
    if layout == "BSND":
        return t
    t = t.reshape(*t.shape[:2], -1)
    return t.transpose(0, 1) if layout == "SBH" else t


@op()
def flash_attention_score(
    query: T, key: T, value: T, head_num: int, real_shift: T | None = None, drop_mask: T | None = None, padding_mask: Any = None,
    attn_mask: T | None = None, prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, keep_prob: float = 1.0,
    scalar_value: float = 1.0, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0,
    input_layout: str = "BSH", sparse_mode: int = 0,
) -> T:
    """softmax(scalar_value * query @ key^T + real_shift) @ value, for each of `head_num` heads; what `attn_mask` marks is left out.

    Queries see from `pre_tokens` before to `next_tokens` behind themselves (sparse_mode 0), or none behind them (2 from the left upper
    corner, 3 from the right lower one). Raises ValueError for the other arguments, which are packings of Ascend's kernels.
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
    """The largest product and the sum of exponentials of each query (B, N, S, 8), nothing (0,), and what `flash_attention_score` gives."""
    return _flash(
        query, key, value, head_num, real_shift, drop_mask, padding_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen, keep_prob,
        scale_value, pre_tokens, next_tokens, inner_precise, input_layout, sparse_mode,
    )


def _flash(
    query: T, key: T, value: T, head_num: int, real_shift: T | None, drop_mask: T | None, padding_mask: Any, attn_mask: T | None,
    prefix: Any, actual_seq_qlen: Any, actual_seq_kvlen: Any, keep_prob: float, scalar_value: float, pre_tokens: int, next_tokens: int,
    inner_precise: int, input_layout: str, sparse_mode: int,
) -> tuple[T, T, T, T]:
    for name, given in (("padding_mask", padding_mask), ("prefix", prefix), ("actual_seq_qlen", actual_seq_qlen), (
        "actual_seq_kvlen", actual_seq_kvlen,
    )):
        if given is not None:
            raise ValueError(f"{name}=...: expected None.\n\nhint: write the lengths into attn_mask.")
    if input_layout not in _LAYOUTS:
        raise ValueError(f"input_layout={input_layout!r}: expected one of {', '.join(_LAYOUTS)}.")
    if sparse_mode not in (0, 2, 3):
        raise ValueError(f"sparse_mode={sparse_mode!r}: expected 0, 2 or 3.\n\nhint: write other patterns into attn_mask.")
    if inner_precise not in (0, 1):
        raise ValueError(f"inner_precise={inner_precise!r}: expected 0 or 1; both compute the sums in float32.")
    q = _heads(query, input_layout, head_num)
    heads = key.shape[-1] // q.shape[-1] if input_layout in ("BSH", "SBH") else head_num
    k, v = (_heads(t, input_layout, heads) for t in (key, value))
    if k.shape[1] != q.shape[1]:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = (q.float() @ k.float().mT) * scalar_value
    if real_shift is not None:
        scores = scores + real_shift
    hidden = _hidden(scores, pre_tokens, next_tokens, sparse_mode)
    if attn_mask is not None and sparse_mode == 0:
        hidden = hidden | attn_mask.to(torch.bool)
    scores = scores.masked_fill(hidden, -torch.inf)
    weights = torch.softmax(scores, -1)
    weights = torch.where(hidden.all(-1, keepdim=True), 0, weights)
    if keep_prob < 1.0:
        if drop_mask is None:
            raise ValueError(f"keep_prob={keep_prob}: expected a drop_mask, whose ones are kept.")
        weights = weights * drop_mask.reshape(weights.shape) / keep_prob
    out = _joined((weights @ v.float()).to(value.dtype), input_layout)
    largest = scores.detach().amax(-1, keepdim=True)
    total = torch.exp(scores.detach() - largest).sum(-1, keepdim=True)
    return largest.expand(*largest.shape[:-1], 8), total.expand(*total.shape[:-1], 8), query.new_empty(0), out


def _hidden(scores: T, before: int, behind: int, mode: int) -> T:
    rows, columns = scores.shape[-2:]
    place = torch.arange(columns, device=scores.device) - torch.arange(rows, device=scores.device).unsqueeze(-1)
    if mode == 3:
        place = place - (columns - rows)
    if mode in (2, 3):
        return place > 0
    return (place > behind) | (place < -before)
