"""Pools over (N, H, W, C) with windows of two lengths, so that a side may shrink by a fraction."""
from __future__ import annotations

import math
import random
from typing import Any

import torch

from torchspore.engine.random.generators import drawing
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index

T = torch.Tensor
_KINDS = (torch.float32, torch.float64, torch.int32, torch.int64)
_INIT = ("pooling_ratio", "pseudo_random", "overlapping", "deterministic", "seed", "seed2")


def _lengths(x: T, pooling_ratio: Any) -> list[int]:
    """Return the numbers of output rows and columns."""
    fits = len(pooling_ratio) == 4 and pooling_ratio[0] == pooling_ratio[3] == 1 and min(pooling_ratio) >= 1
    if not fits:
        raise ValueError(f"pooling_ratio={pooling_ratio}: expected [1.0, rows, columns, 1.0] with ratios from 1.0 on.")
    if x.ndim != 4:
        raise ValueError(f"expected x of shape (N, H, W, C), got {tuple(x.shape)}.")
    if x.dtype not in _KINDS:
        raise TypeError(f"expected x of float32, float64, int32 or int64, got {FROM_TORCH[x.dtype]}.")
    lengths = [math.floor(length / ratio) for length, ratio in zip(x.shape[1:3], pooling_ratio[1:3])]
    if 0 in lengths:
        raise ValueError(f"pooling_ratio={pooling_ratio}: expected no more than the rows and columns of x, {tuple(x.shape[1:3])}.")
    return lengths


@drawing
def _starts(length: int, count: int, pseudo_random: bool, fixed: random.Random | None, source: Stream, where: torch.device) -> T:
    """Return where `count` windows begin, and `length`, by Graham, 2014, section 2. Windows have length // count elements, or one more."""
    width, longer = divmod(length, count)
    if not longer:
        return torch.arange(count + 1, device=where) * width
    if pseudo_random:
        ratio = length / count
        most = min((width + 2) / ratio - 1, (length + 1 - width) / ratio - (count - 1))
        share = torch.rand((), generator=source.on(where), dtype=torch.float64, device=where) if fixed is None else fixed.random()
        inner = torch.ceil(ratio * (torch.arange(1, count, dtype=torch.float64, device=where) + share * most)).long() - 1
        return torch.nn.functional.pad(torch.nn.functional.pad(inner, (1, 0)), (0, 1), value=length)
    if fixed is None:
        order = torch.randperm(count, generator=source.on(where), device=where)
    else:
        order = torch.tensor(fixed.sample(range(count), count), device=where)
    return torch.nn.functional.pad((width + (order < longer)).cumsum(0), (1, 0))


def _drawn(
    x: T, pooling_ratio: Any, pseudo_random: bool, deterministic: bool, source: Stream,
) -> tuple[T, T, tuple[int, int]]:
    """Return the starts of rows and of columns, and the longest window of each."""
    if any(source.seeds) and not deterministic:
        raise ValueError(f"seed={source.seeds[0]}, seed2={source.seeds[1]}: expected 0 for both if deterministic=False.")
    fixed = random.Random(f"{source.seeds}") if deterministic else None
    counts = _lengths(x, pooling_ratio)
    rows, columns = (_starts(n, m, pseudo_random, fixed, source, x.device) for n, m in zip(x.shape[1:3], counts))
    width, height = (length // count + (2 if pseudo_random else 1) for length, count in zip(x.shape[1:3], counts))
    return rows, columns, (width, height)


def _window_positions(starts: T, longest: int, length: int, overlapping: bool) -> tuple[T, T]:
    """Return the positions in each window (count, longest), and whether they belong to it."""
    at = starts[:-1].unsqueeze(1) + torch.arange(longest + overlapping, device=starts.device)
    return at.clamp(0, length - 1), at < (starts[1:] + overlapping).clamp(max=length).unsqueeze(1)


def _windows(x: T, rows: T, columns: T, longest: tuple[int, int], overlapping: bool) -> tuple[T, T, T]:
    """Return the content of each window: values (N, rows, columns, C, positions), whether a position counts, its index in H * W."""
    down, is_down = _window_positions(rows, longest[0], x.shape[1], overlapping)
    along, is_along = _window_positions(columns, longest[1], x.shape[2], overlapping)
    shape = (down.shape[0], along.shape[0], -1)
    counts = (is_down[:, None, :, None] & is_along[None, :, None, :]).reshape(shape)
    number = (down[:, None, :, None] * x.shape[2] + along[None, :, None, :]).reshape(shape)
    values = x.flatten(1, 2)[:, number].movedim(-1, 3)
    return values, counts, number


def _largest(values: T, counts: T) -> tuple[T, T]:
    """Return the largest value of each window and its index: the first of equal ones."""
    least = torch.finfo(values.dtype).min if values.is_floating_point() else torch.iinfo(values.dtype).min
    maximum = torch.where(counts.unsqueeze(2), values, least).max(-1)
    return maximum.values, maximum.indices


def _shared(total: T, counts: T) -> T:
    """Divide `total` (N, rows, columns, C) by the number of elements of each window, with C++'s rounding."""
    number = counts.sum(-1).unsqueeze(-1).to(total.dtype)
    return total / number if total.is_floating_point() else torch.div(total, number, rounding_mode="trunc")


@op(primitive="FractionalMaxPool", init=_INIT)
def _fractional_max(
    x: T, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, deterministic: bool = False, seed: Any = 0,
    seed2: int = 0,
) -> tuple[T, T, T]:
    """The largest values of (N, H, W, C) in windows of two lengths, and the starts of window rows and columns (int64).

    `pooling_ratio` [1.0, rows, columns, 1.0] defines how far a side shrinks. The order of the lengths is random, or with `pseudo_random`
    follows from one draw; with `deterministic` each call draws alike. With `overlapping`, a window shares a row and column with the next.
    """
    rows, columns, longest = _drawn(x, pooling_ratio, pseudo_random, deterministic, stream(seed, seed2))
    values, counts, _ = _windows(x, rows, columns, longest, overlapping)
    return _largest(values, counts)[0], rows, columns


@op(primitive="FractionalAvgPool", init=_INIT)
def _fractional_average(
    x: T, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, deterministic: bool = False, seed: Any = 0,
    seed2: int = 0,
) -> tuple[T, T, T]:
    """The means of (N, H, W, C) in windows of two lengths, and the starts of rows and columns, as FractionalMaxPool. Ints are truncated."""
    rows, columns, longest = _drawn(x, pooling_ratio, pseudo_random, deterministic, stream(seed, seed2))
    values, counts, _ = _windows(x, rows, columns, longest, overlapping)
    return _shared(torch.where(counts.unsqueeze(2), values, 0).sum(-1, dtype=x.dtype), counts), rows, columns


def _window_starts(x: T, back: T, row_pooling_sequence: T, col_pooling_sequence: T) -> tuple[T, T, tuple[int, int]]:
    """Return the starts from a forward pass, and the longest window."""
    rows, columns = as_index(row_pooling_sequence), as_index(col_pooling_sequence)
    if back.shape != (x.shape[0], rows.shape[0] - 1, columns.shape[0] - 1, x.shape[-1]):
        expected_shape = (x.shape[0], rows.shape[0] - 1, columns.shape[0] - 1, x.shape[-1])
        raise ValueError(f"expected out_backprop of shape {expected_shape}, got {tuple(back.shape)}.")
    return rows, columns, (int(rows.diff().max()), int(columns.diff().max()))


def _gathered(like: T, back: T, number: T) -> T:
    """Add `back` (N, rows, columns, C, k) at the positions `number`, of equal shape or without N and C, into a Tensor like `like`."""
    count, channels = like.shape[0], like.shape[-1]
    flat = back.movedim(3, 1).reshape(count, channels, -1)
    at = number.movedim(3, 1).reshape(count, channels, -1)
    sums = torch.zeros((count, channels, like.shape[1] * like.shape[2]), dtype=back.dtype, device=back.device)
    return sums.scatter_add(-1, at, flat).movedim(1, -1).reshape(like.shape)


@op(primitive="FractionalMaxPoolGrad", init=("overlapping",))
def _fractional_max_grad(
    orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: T, col_pooling_sequence: T, overlapping: bool = False,
) -> T:
    """The gradient of FractionalMaxPool, whose results are `orig_output` and the two sequences."""
    if orig_output.shape != out_backprop.shape:
        raise ValueError(f"expected orig_output of shape {tuple(out_backprop.shape)}, got {tuple(orig_output.shape)}.")
    rows, columns, longest = _window_starts(orig_input, out_backprop, row_pooling_sequence, col_pooling_sequence)
    values, counts, number = _windows(orig_input, rows, columns, longest, overlapping)
    which = _largest(values, counts)[1].unsqueeze(-1)
    at = number.unsqueeze(2).expand(*values.shape).gather(-1, which)
    return _gathered(orig_input, out_backprop.unsqueeze(-1), at)


@op(primitive="FractionalAvgPoolGrad", init=("overlapping",))
def _fractional_average_grad(
    orig_input_tensor_shape: Any, out_backprop: T, row_pooling_sequence: T, col_pooling_sequence: T, overlapping: bool = False,
) -> T:
    """The gradient of FractionalAvgPool for its input of `orig_input_tensor_shape`, from the two sequences of the forward pass."""
    exact = out_backprop if out_backprop.is_floating_point() else out_backprop.double()
    like = torch.zeros(sizes(orig_input_tensor_shape), dtype=exact.dtype, device=exact.device)
    rows, columns, longest = _window_starts(like, out_backprop, row_pooling_sequence, col_pooling_sequence)
    values, counts, number = _windows(like, rows, columns, longest, overlapping)
    back = torch.where(counts.unsqueeze(2), _shared(exact, counts).unsqueeze(-1), 0)
    return _gathered(like, back, number.unsqueeze(2).expand(*values.shape)).to(out_backprop.dtype)
