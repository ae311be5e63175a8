"""Sequences of tokens: distances, repetitions, filters."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _rows(indices: T, values: T) -> dict[tuple[int, ...], list[Any]]:
    """Return the sequences of a sparse Tensor by all indexes except the last."""
    rows: dict[tuple[int, ...], list[Any]] = {}
    for at, value in zip(indices.tolist(), values.tolist()):
        rows.setdefault(tuple(at[:-1]), []).append(value)
    return rows


def _distance(a: list[Any], b: list[Any]) -> int:
    """Return the number of insertions, deletions and replacements that turn `a` into `b` (Levenshtein)."""
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
    """The Levenshtein distances of sparse sequences, relative to the truth's length if `normalize`: float32, without the last axis."""
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
    """`log_probs` (B, beams, V) with the dtype's minimum for each token that would repeat n tokens of `state_seq` (B, beams, S)."""
    length = state_seq.shape[-1]
    if not 1 <= ngram_size <= length:
        raise ValueError(f"ngram_size={ngram_size}: expected a number from 1 to {length}, the length of the sequences.")
    windows = state_seq.long().unfold(-1, ngram_size, 1)
    last = state_seq.long()[..., length - ngram_size + 1 :].unsqueeze(-2)
    is_repeated = (windows[..., : ngram_size - 1] == last).all(-1)
    next_tokens = torch.where(is_repeated, windows[..., -1], log_probs.shape[-1])
    wide = torch.cat([log_probs, log_probs[..., :1]], -1)
    low = torch.finfo(log_probs.dtype).min
    return wide.scatter(-1, next_tokens, low)[..., :-1].clone()


@op(primitive="SubAndFilter")
def _sub_and_filter(input_x: T, max_num: Any, offset: Any) -> Any:
    """x - offset for elements where that is in [0, max_num), and their indexes (in the dtype of x)."""
    moved = input_x - int(offset)
    positions = torch.nonzero((moved >= 0) & (moved < int(max_num))).reshape(-1)
    return moved[positions], positions.to(input_x.dtype)


@op(primitive="MapUniform")
def _map_uniform(input: T, per_group_size: Any, group_num: Any) -> T:
    """Distribute x evenly over groups: x % group_num * per_group_size + x // group_num."""
    groups = int(group_num)
    return torch.remainder(input, groups) * int(per_group_size) + torch.div(input, groups, rounding_mode="floor")
