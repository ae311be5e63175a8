"""Candidate sampling: draw some of many classes, and compute how often each is expected among them."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.kernel_numbers import by_stream, is_on_host
from torchspore.engine.random.operator_streams import OperatorStream, expected_counts
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@drawing
def _candidates(true_classes: T, sampled: int, unique: bool, kind: str, weights: T, source: Stream) -> Any:
    """Return classes drawn by `weights`, and the expected counts of the true and of the drawn classes (float32).

    Nothing waits for the device. `weights` (float64) are the shares of all classes; those that are left out have the share 0.
    """
    generator, limit = source.on(weights.device), len(weights)
    if unique:
        # Exponential numbers divided by the shares: the order of the smallest ones is that of draws without replacement.
        drawn = (torch.empty_like(weights).exponential_(generator=generator) / weights).topk(sampled, largest=False).indices
        tries = sampled + _repeated_tries(weights, drawn, generator)
    else:
        sums = weights.cumsum(0)
        fractions = torch.rand(sampled, dtype=weights.dtype, device=weights.device, generator=generator)
        drawn = torch.searchsorted(sums, fractions * sums[-1], right=True).clamp(max=limit - 1)
        tries = None
    expected = [_expected(_share(classes, limit, kind), sampled, tries) for classes in (true_classes, drawn)]
    return drawn.to(true_classes.dtype), *expected


def _repeated_tries(weights: T, drawn: T, generator: torch.Generator | None) -> T:
    """Return how many tries gave a class that was already drawn or that is left out, until all of `drawn` were drawn."""
    shares = weights[drawn]
    repeats = 1 - weights.sum() + shares.cumsum(0) - shares              # before each draw, the share of what is not drawn any more
    fractions = torch.rand(shares.shape, dtype=shares.dtype, device=shares.device, generator=generator)
    return (torch.log1p(-fractions) / repeats.clamp(min=0).log()).floor().nan_to_num(0.0).sum()


def _share(classes: T, limit: int, kind: str) -> T:
    """Return the shares of classes (float64) among `limit` classes."""
    numbers = classes.to(torch.float64)
    if kind == "log_candidates":
        return torch.log((numbers + 2) / (numbers + 1)) / math.log(limit + 1)
    return torch.full_like(numbers, 1 / limit)


def _expected(share: T, sampled: int, tries: T | None) -> T:
    """Return how often classes of these shares are expected (float32): among `sampled` draws, or among the different ones of `tries`.

    As in MindSpore's kernel, draws without a repeated try count as draws that may repeat.
    """
    among_draws = share * sampled
    if tries is None:
        return among_draws.to(torch.float32)
    return torch.where(tries == sampled, among_draws, -torch.expm1(tries * torch.log1p(-share))).to(torch.float32)


def _check(true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, dtypes: tuple[torch.dtype, ...]) -> None:
    for name, value in (("num_true", num_true), ("num_sampled", num_sampled), ("range_max", range_max)):
        if value < 1:
            raise ValueError(message(f"{name}={value}", "an int from 1 on"))
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
    weights = _share(torch.arange(range_max, device=true_classes.device), range_max, "log_candidates")
    return _candidates(true_classes, num_sampled, unique, "log_candidates", weights, stream(seed))


def _uniform(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any, avoids_true: bool,
    source: OperatorStream | None = None,
) -> Any:
    _check(true_classes, num_true, num_sampled, unique, range_max, (torch.int32, torch.int64))
    if is_on_host():
        return _by_kernel("candidates", true_classes, num_sampled, unique, range_max, avoids_true, seed, source)
    weights = torch.full((range_max,), 1 / range_max, dtype=torch.float64, device=true_classes.device)
    if avoids_true:
        weights = _without(weights, true_classes.reshape(-1).long(), num_sampled if unique else 1)
    return _candidates(true_classes, num_sampled, unique, "candidates", weights, stream(seed))


def _without(weights: T, classes: T, count: int) -> T:
    """Return the weights with 0 for these classes; the weights themselves unless `count` others remain."""
    limit = len(weights)
    is_class = (classes >= 0) & (classes < limit)
    rest = torch.cat([weights, weights.new_zeros(1)]).index_fill(0, classes.where(is_class, limit), 0.0)[:-1]
    return rest.where((rest > 0).sum() >= count, weights)


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
