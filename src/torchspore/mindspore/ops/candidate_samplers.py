"""Candidate sampling: draw some of many classes, and compute how often each is expected among them."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.engine.core.creation import constant
from torchspore.engine.core.dtypes import FROM_TORCH
from torchspore.engine.core.generators import drawing
from torchspore.engine.random.operator_streams import OperatorStream, expected_counts
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.mindspore.ops.declare import op
from torchspore.mindspore.ops.kernel_numbers import by_stream, is_on_host

T = torch.Tensor


@drawing
def _candidates(true_classes: T, sampled: int, unique: bool, weights: T, source: Stream) -> Any:
    """Return classes drawn by `weights`, and the expected counts of the true and of the drawn classes (float32)."""
    drawn = torch.multinomial(weights, sampled, not unique, generator=source.on(weights.device))
    share = weights / weights.sum()
    expected = -torch.expm1(sampled * torch.log1p(-share)) if unique else sampled * share
    return drawn.to(true_classes.dtype), expected[true_classes.long()].to(torch.float32), expected[drawn].to(torch.float32)


def _check(true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, dtypes: tuple[torch.dtype, ...]) -> None:
    for name, value in (("num_true", num_true), ("num_sampled", num_sampled), ("range_max", range_max)):
        if value < 1:
            raise ValueError(f"{name}={value}: expected an int from 1 on.")
    if unique and num_sampled > range_max:
        raise ValueError(f"num_sampled={num_sampled}: expected at most range_max, {range_max}, because classes are unique.")
    if true_classes.dtype not in dtypes:
        names = " or ".join(str(FROM_TORCH[dtype]) for dtype in dtypes)
        raise TypeError(f"true_classes of {FROM_TORCH[true_classes.dtype]}: expected {names}.")
    if true_classes.ndim != 2:
        raise ValueError(f"true_classes of shape {tuple(true_classes.shape)}: expected two dimensions.")
    if true_classes.shape[-1] != num_true:
        raise ValueError(f"expected {num_true} true classes in a row, got {true_classes.shape[-1]}.")


def _by_kernel(
    kind: str, true_classes: T, num_sampled: int, unique: bool, range_max: int, avoids_true: bool, seed: Any, source: OperatorStream | None,
) -> Any:
    """Return the result of MindSpore's CPU kernel: drawn classes, and the expected counts of the true and of the drawn ones."""
    first = constant(stream(seed).seeds[0], torch.device("cpu"), torch.int64)
    options = float(unique), float(range_max), float(avoids_true)
    drawn = by_stream(source, kind, [true_classes, first], [num_sampled], *options)
    tries, candidates = drawn[-1], drawn[:-1]
    true_counts, counts = (
        expected_counts(classes, tries, num_sampled, range_max, kind == "log_candidates") for classes in (true_classes, candidates)
    )
    return candidates.to(true_classes.dtype), true_counts, counts


def _log_uniform(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any, source: OperatorStream | None = None,
) -> Any:
    _check(true_classes, num_true, num_sampled, unique, range_max, (torch.int64,))
    if is_on_host():
        return _by_kernel("log_candidates", true_classes, num_sampled, unique, range_max, False, seed, source)
    classes = torch.arange(range_max, dtype=torch.float64, device=true_classes.device)
    weights = torch.log((classes + 2) / (classes + 1)) / math.log(range_max + 1)
    return _candidates(true_classes, num_sampled, unique, weights, stream(seed))


def _uniform(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any, avoids_true: bool,
    source: OperatorStream | None = None,
) -> Any:
    _check(true_classes, num_true, num_sampled, unique, range_max, (torch.int32, torch.int64))
    if is_on_host():
        return _by_kernel("candidates", true_classes, num_sampled, unique, range_max, avoids_true, seed, source)
    weights = torch.ones(range_max, dtype=torch.float64, device=true_classes.device)
    if avoids_true and num_sampled + true_classes.unique().numel() <= range_max:
        weights = weights.index_fill(0, true_classes.reshape(-1).long(), 0.0)
    return _candidates(true_classes, num_sampled, unique, weights, stream(seed))


@op()
def log_uniform_candidate_sampler(
    true_classes: T, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: int = 0,
) -> Any:
    """Draw classes below `range_max`, small ones more often. Also return the expected counts of the true and of the drawn ones.

    Raises:
        TypeError: `true_classes`, of shape (N, num_true), are not int64.
        ValueError: a number is below 1, `true_classes` have another shape, or the number of unique classes exceeds `range_max`.
    """
    return _log_uniform(true_classes, num_true, num_sampled, unique, range_max, seed)


@op(primitive="LogUniformCandidateSampler", init=("num_true", "num_sampled", "unique", "range_max", "seed"))
def _log_uniform_candidate_sampler(
    true_classes: T, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: Any = 0,
    operator_stream: Any = None,
) -> Any:
    """Draw classes below `range_max`, small ones more often. Also return the expected counts of the true and of the drawn ones.

    Raises:
        TypeError: `true_classes`, of shape (N, num_true), are not int64.
        ValueError: a number is below 1, `true_classes` have another shape, or the number of unique classes exceeds `range_max`.
    """
    return _log_uniform(true_classes, num_true, num_sampled, unique, range_max, seed, operator_stream)


@op()
def uniform_candidate_sampler(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int = 0, remove_accidental_hits: bool = False,
) -> Any:
    """Draw classes below `range_max`. Also return the expected counts of the true and of the drawn ones.

    `remove_accidental_hits` excludes true classes, if there are enough others.

    Raises:
        TypeError: `true_classes`, of shape (N, num_true), are not int32 or int64.
        ValueError: a number is below 1, `true_classes` have another shape, or the number of unique classes exceeds `range_max`.
    """
    return _uniform(true_classes, num_true, num_sampled, unique, range_max, seed, remove_accidental_hits)


@op(primitive="UniformCandidateSampler", init=("num_true", "num_sampled", "unique", "range_max", "seed", "remove_accidental_hits"))
def _uniform_candidate_sampler(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any = 0, remove_accidental_hits: bool = False,
    operator_stream: Any = None,
) -> Any:
    """Draw classes below `range_max`. Also return the expected counts of the true and of the drawn ones.

    `remove_accidental_hits` excludes true classes, if there are enough others.

    Raises:
        TypeError: `true_classes`, of shape (N, num_true), are not int32 or int64.
        ValueError: a number is below 1, `true_classes` have another shape, or the number of unique classes exceeds `range_max`.
    """
    return _uniform(true_classes, num_true, num_sampled, unique, range_max, seed, remove_accidental_hits, operator_stream)
