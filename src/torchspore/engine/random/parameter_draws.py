"""The numbers that MindSpore's CPU kernels draw for parameters in Tensors: rates, weights, limits. Bit for bit.

Each kind of draw takes the state of a generator as one int and gives the values and the state afterwards, as `distributions` does. The
state of Philox is its two seeds (64 bits each) and how far it has drawn.
"""
from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.engine.random import c_math, philox
from torchspore.engine.random.candidate_draws import candidates, log_uniform_candidates
from torchspore.engine.random.distributions import MODULUS, MersenneNumbers, minstd_fractions64
from torchspore.engine.random.truncated_draws import truncated_normal_between

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]
Seeds = tuple[int, int]

_WORD = 1 << 32
_LONG = 1 << 64


@dataclass(frozen=True)
class ParameterDraw:
    """One kind of draw."""

    draw: Callable[[int, Arrays, tuple[int, ...], Sequence[float]], tuple[Array, int]]
    """Values of a shape that the state, the parameters, `shape` and the options decide, and the state afterwards."""

    start: Callable[[int, Seeds], int]
    """The state to draw from, out of the state after the last draw (0 for the first one) and the two seeds."""

    key: Callable[[Arrays], str]
    """What, apart from `shape`, selects the generator among those of a primitive."""

    form: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
    """The shape of the values, out of the first parameter's shape and `shape`."""

    dtype: Any = None
    """The dtype of the values; None for that of the first parameter."""

    seeds: Callable[[Arrays], Seeds] | None = None
    """The seeds that the parameters name, if not the primitive decides."""


# ---- the seeds


def _minstd_start(state: int, seeds: Seeds) -> int:
    words = philox.scramble(*seeds)
    return state or (words[0] | words[1] << 32) % MODULUS or 1


def _poisson_start(state: int, seeds: Seeds) -> int:
    """`mt19937` starts from the low half of the seeds' scramble after one step of PCG."""
    words = philox.scramble(*seeds)
    return state or ((words[0] | words[1] << 32) * 6364136223846793005 + 0xDA3E39CB94B95BDB) % _WORD


def _philox_start(state: int, seeds: Seeds) -> int:
    return state or philox.state_of(seeds, 0)


def _weighted_start(state: int, seeds: Seeds) -> int:
    """Restart the generator if the seeds differ from the last call's; the words that the last call left come first."""
    first = philox.state_of(seeds, 0)
    drawn = philox.parts_of(state)[2]
    return state if state % _LONG**2 == first else first + drawn // _LONG * _LONG**3


def _as_int32(value: int) -> int:
    return (value + 2**31) % _WORD - 2**31


# ---- Gamma


_STEP = 256
"""Counters of Philox for each value."""

_CHUNK = 1 << 14


class _PhiloxPairs:
    """For each of many values its own stretch of Philox: each counter gives two float64 numbers, of which the second is used first."""

    def __init__(self, key: int, stream: int, counters: Array) -> None:
        self._key, self._stream, self._counters = key, stream, counters
        self._spare_uniform, self._spare_normal = np.full((2, counters.size), np.nan)

    def uniform(self, rows: Array) -> Array:
        """The next number from 0 to 1 (excluded) of each row of `rows`."""
        return self._next(rows, self._spare_uniform, lambda first, second: (first, second))

    def normal(self, rows: Array) -> Array:
        """The next standard normal number of each row of `rows`, by Box and Muller."""
        return self._next(rows, self._spare_normal, _box_muller)

    def _next(self, rows: Array, spare: Array, convert: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
        values = spare[rows]
        lacking = np.isnan(values)
        fresh = rows[lacking]
        words = philox.words_at(self._key, self._stream, self._counters[fresh]).astype(np.uint64).reshape(-1, 4)
        self._counters[fresh] += np.uint64(1)
        pairs = ((words[:, 0::2] & np.uint64(0xFFFFF)) << np.uint64(32) | words[:, 1::2]) * 2.0**-52
        first, values[lacking] = convert(pairs[:, 0], pairs[:, 1])
        spare[rows] = np.nan
        spare[fresh] = first
        return values


def _box_muller(first: Array, second: Array) -> tuple[Array, Array]:
    radius = np.sqrt(-2.0 * c_math.log(np.maximum(first, 1e-7)))
    sine, cosine = c_math.sin_and_cos(2.0 * math.pi * second)
    return sine * radius, cosine * radius


def _gamma(state: int, parameters: Arrays, shape: tuple[int, ...], options: Sequence[float]) -> tuple[Array, int]:
    """Gamma with the shapes `alpha` and scale 1: of shape `shape` + alpha.shape."""
    (alpha,) = parameters
    if (alpha < 0).any():
        raise ValueError("alpha: expected numbers from 0 on.")
    key, stream, drawn = philox.parts_of(state)
    samples = math.prod(shape)
    each = np.repeat(alpha.ravel().astype(np.float64), samples)
    values = np.empty(each.size)
    for start in range(0, each.size, _CHUNK):
        part = each[start:start + _CHUNK]
        positions = np.arange(start, start + part.size, dtype=np.uint64)
        pairs = _PhiloxPairs(key, stream, np.uint64(drawn % _LONG) + np.uint64(_STEP) * positions)
        values[start:start + part.size] = _gamma_part(part, pairs)
    result = values.reshape(alpha.size, samples).T.reshape(*shape, *alpha.shape)
    return c_math.rounded(result, alpha.dtype), philox.state_of((key, stream), drawn + _STEP * each.size)


def _gamma_part(alpha: Array, pairs: _PhiloxPairs) -> Array:
    """One value for each `alpha`: by the logarithm for 1, else by Marsaglia's and Tsang's rejection (2000)."""
    values = np.where(np.isfinite(alpha), 0.0, alpha)
    exponential = np.flatnonzero(alpha == 1.0)
    values[exponential] = -c_math.log(1.0 - pairs.uniform(exponential))
    rows = np.flatnonzero((alpha > 0.0) & (alpha != 1.0) & np.isfinite(alpha))
    is_small = alpha < 1.0
    shifted = alpha + np.where(is_small, 2.0 / 3, -1.0 / 3)
    while rows.size:
        scale = shifted[rows]
        x = pairs.normal(rows)
        v = 1.0 + 1.0 / 3 / np.sqrt(scale) * x
        accepted = v > 0.0
        v = v * v * v
        u = np.ones_like(v)
        u[accepted] = pairs.uniform(rows[accepted])
        unclear = np.flatnonzero(accepted & (u >= 1.0 - 0.0331 * (x * x) * (x * x)))
        xs, vs = x[unclear], v[unclear]
        accepted[unclear] = c_math.log(u[unclear]) < 0.5 * xs * xs + scale[unclear] * (1.0 - vs + c_math.log(vs))
        done = rows[accepted]
        values[done] = scale[accepted] * v[accepted]
        small = done[is_small[done]]
        values[small] *= c_math.power(pairs.uniform(small), 1.0 / alpha[small])
        rows = rows[~accepted]
    return values


# ---- Poisson


def _poisson(state: int, parameters: Arrays, shape: tuple[int, ...], options: Sequence[float]) -> tuple[Array, int]:
    """Return Poisson counts (float64) with the means `rate`, all counts of one mean before those of the next: of shape `shape` +
    rate.shape."""
    rates = parameters[0].ravel().astype(np.float64)
    if not (np.isfinite(rates) & (rates >= 0)).all():
        raise ValueError("rate: expected finite numbers from 0 on.")
    samples = math.prod(shape)
    counts = np.empty((samples, rates.size))
    numbers = MersenneNumbers(state)
    if samples:
        for column, rate in enumerate(rates.tolist()):
            if samples < _MANY:
                draw_count = _small_count if rate < 10 else _large_count
                counts[:, column] = [draw_count(numbers, rate) for _ in range(samples)]
            else:
                counts[:, column] = (_small_counts if rate < 10 else _large_counts)(numbers, rate, samples)
    return counts.reshape(*shape, *parameters[0].shape), numbers.end()


_MANY = 32
"""From so many counts of one rate on, arrays are faster than single numbers."""


def _small_count(numbers: MersenneNumbers, rate: float) -> int:
    """Return how many numbers can be multiplied until the product is at most e to the power of -rate, less 1 (Knuth)."""
    limit = math.exp(-rate)
    count, product = 0, numbers.next()
    while product > limit:
        count += 1
        product *= numbers.next()
    return count


def _small_counts(numbers: MersenneNumbers, rate: float, samples: int) -> list[int]:
    """`samples` such counts."""
    limit = math.exp(-rate)
    counts: list[int] = []
    count, product = 0, 1.0
    while True:
        block = numbers.ahead(int((samples - len(counts)) * (rate + 1.0) * 1.1) + 16).tolist()
        for block_index, number in enumerate(block, 1):
            product *= number
            if product > limit:
                count += 1
                continue
            counts.append(count)
            if len(counts) == samples:
                numbers.advance(block_index)
                return counts
            count, product = 0, 1.0
        numbers.advance(len(block))


def _rejection_constants(rate: float) -> tuple[float, float, float, float]:
    """Hörmann's transformed rejection (1993): a, b, 1 / alpha and v_r."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    return a, b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)


def _large_counts(numbers: MersenneNumbers, rate: float, samples: int) -> Array:
    a, b, inverse_alpha, v_limit = _rejection_constants(rate)
    log_rate = math.log(rate)
    counts, filled = np.empty(samples), 0
    while filled < samples:
        pairs = numbers.ahead(2 * (int((samples - filled) * 1.2) + 16)).reshape(-1, 2)
        u, v = pairs[:, 0] - 0.5, pairs[:, 1]
        room = 0.5 - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((2.0 * a / room + b) * u + rate + 0.43)
        accepted = (room >= 0.07) & (v <= v_limit)
        unclear = np.flatnonzero(~accepted & (k >= 0) & ((room >= 0.013) | (v <= room)))
        part = room[unclear]
        squeeze_side = c_math.log(v[unclear] * inverse_alpha / (a / (part * part) + b))
        right_side = -rate + k[unclear] * log_rate - np.array([c_math.lgamma(count + 1.0) for count in k[unclear].tolist()])
        accepted[unclear] = squeeze_side <= right_side
        accepted_indices = np.flatnonzero(accepted)[:samples - filled]
        counts[filled:filled + accepted_indices.size] = k[accepted_indices]
        filled += accepted_indices.size
        numbers.advance(2 * (int(accepted_indices[-1]) + 1) if filled == samples else pairs.size)
    return counts


def _large_count(numbers: MersenneNumbers, rate: float) -> int:
    """One such count."""
    a, b, inverse_alpha, v_limit = _rejection_constants(rate)
    while True:
        u, v = numbers.next() - 0.5, numbers.next()
        room = 0.5 - abs(u)
        if room == 0.0:
            continue
        k = math.floor((2.0 * a / room + b) * u + rate + 0.43)
        if room >= 0.07 and v <= v_limit:
            return k
        if k < 0 or (room < 0.013 and v > room):
            continue
        value = v * inverse_alpha / (a / (room * room) + b)
        if value == 0.0 or math.log(value) <= -rate + k * math.log(rate) - c_math.lgamma(k + 1.0):
            return k


# ---- classes by weights


def _classes(state: int, parameters: Arrays, shape: tuple[int, ...], options: Sequence[float]) -> tuple[Array, int]:
    """Classes (int64) drawn by the rows of `logits` (N, C), shape (N, *shape). All rows use the same random numbers."""
    logits = parameters[0]
    if not np.isfinite(logits.max(-1)).all():
        raise ValueError("logits: expected numbers below infinity, and a finite one in each row.")
    numbers, state = minstd_fractions64(state, math.prod(shape))
    numbers = numbers.astype(np.float32).astype(logits.dtype)
    powers = c_math.exp((logits - logits.max(-1, keepdims=True)).astype(np.float32)).astype(logits.dtype)
    sums = np.add.accumulate(powers, -1, dtype=logits.dtype)
    rows = [np.searchsorted(row, row[-1] * numbers, "left") for row in sums]
    return np.array(rows, np.int64).reshape(len(logits), *shape), state


def _weighted(state: int, parameters: Arrays, shape: tuple[int, ...], options: Sequence[float]) -> tuple[Array, int]:
    """Indexes (int64) of `weights` (C,) or (N, C), with replacement if options[0]: of shape `shape` or (N, *shape)."""
    weights = parameters[0].astype(np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(-1) > 0).all()):
        raise ValueError("x: expected finite numbers from 0 on, and one above 0 in each row.")
    rows = weights.reshape(-1, weights.shape[-1])
    words, state = _next_words(state, len(rows) * math.prod(shape))
    numbers = ((words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
    numbers = numbers.astype(parameters[0].dtype).astype(np.float64).reshape(len(rows), -1)
    draw = _with_replacement if options[0] else _without_replacement
    indexes = [draw(row, row_numbers) for row, row_numbers in zip(rows, numbers)]
    result = np.array(indexes, np.int64).reshape(*weights.shape[:-1], *shape)
    return result, state


def _weighted_seeds(parameters: Arrays) -> Seeds:
    """Return the seeds that the parameters name. -1 and 0 mean no seeds, as documented."""
    seeds = int(parameters[1]), int(parameters[2])
    return (0, 0) if seeds == (-1, 0) else seeds


def _next_words(state: int, count: int) -> tuple[Array, int]:
    """The next `count` words of Philox, uint32.

    The state holds the seeds, the counter, and up to three words of the last counter that are not used yet: how many, then the words.
    """
    key, stream, rest = philox.parts_of(state)
    counter, rest = rest % _LONG, rest // _LONG
    waiting = [rest // 4 // _WORD**index % _WORD for index in range(rest % 4)]
    blocks = -(-max(count - len(waiting), 0) // 4)
    words = np.concatenate([np.array(waiting, np.uint32), philox.words(key, stream, counter, blocks)])
    waiting = words[count:].tolist()
    rest = len(waiting) + 4 * sum(word * _WORD**index for index, word in enumerate(waiting))
    return words[:count], philox.state_of((key, stream), counter + blocks + rest * _LONG)


def _with_replacement(weights: Array, numbers: Array) -> Array:
    """The last positive weight, among equal sums, up to which the sum of weights reaches the number's share of all."""
    positive = np.flatnonzero(weights)
    sums = np.cumsum(weights[positive])
    reached = sums[np.searchsorted(sums, numbers * sums[-1], "left")]
    return positive[np.searchsorted(sums, reached, "right") - 1]


def _without_replacement(weights: Array, numbers: Array) -> list[int]:
    """Draw positive weights as long as any remain, then the zero weights in their order."""
    weights, zeros = weights.copy(), np.flatnonzero(weights == 0).tolist()
    indexes: list[int] = []
    for number in numbers[:weights.size - len(zeros)]:
        indexes.append(int(_with_replacement(weights, number[None])[0]))
        weights[indexes[-1]] = 0.0
    return indexes + zeros[:numbers.size - len(indexes)]


# ---- the kinds


def _form_of_samples(parameter: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
    return [*shape, *parameter]


def _form_of_rows(parameter: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
    return [*parameter[:-1], *shape]


def _ranks(parameters: Arrays) -> str:
    return f"{parameters[0].dtype} {[parameter.ndim for parameter in parameters]}"


def _values(parameters: Arrays) -> str:
    (parameter,) = parameters
    digest = hashlib.blake2b(np.ascontiguousarray(parameter).tobytes(), digest_size=8).hexdigest()
    return f"{parameter.dtype} {parameter.shape} {digest}"


def _shape(parameters: Arrays) -> str:
    return f"{parameters[0].dtype} {parameters[0].shape}"


def _shape_and_seed(parameters: Arrays) -> str:
    return f"{_shape(parameters)} {int(parameters[1])}"


PARAMETER_DRAWS = {
    "gamma": ParameterDraw(_gamma, _philox_start, _values, _form_of_samples),
    "poisson": ParameterDraw(_poisson, _poisson_start, _ranks, _form_of_samples, np.float64),
    "truncated": ParameterDraw(truncated_normal_between, _minstd_start, _ranks, lambda parameter, shape: list(shape)),
    "classes": ParameterDraw(
        _classes, _minstd_start, _shape_and_seed, _form_of_rows, np.int64, lambda parameters: (0, _as_int32(int(parameters[1]))),
    ),
    "weighted": ParameterDraw(
        _weighted, _weighted_start, _shape, _form_of_rows, np.int64, _weighted_seeds,
    ),
    "candidates": ParameterDraw(
        candidates, _minstd_start, _shape_and_seed, lambda parameter, shape: [shape[0] + 1], np.int64,
        lambda parameters: (int(parameters[1]), 0),
    ),
    "log_candidates": ParameterDraw(
        log_uniform_candidates, _philox_start, _shape_and_seed, lambda parameter, shape: [shape[0] + 1], np.int64,
        lambda parameters: (87654321, _as_int32(int(parameters[1]))),
    ),
}
"""The kinds of draws by their names.

MindSpore makes a generator for each shape and dtype of the inputs. Where the shape of the result is an input, that shape counts by its
value and other inputs by their number of dimensions; the `alpha` of Gamma counts by its values.
"""
