"""Philox4x32-10 and the distributions that MindSpore draws initial values from on the host, bit for bit (Salmon et al., 2011).

Torch's vectorised logarithm, cosine and sine may differ from the C library's by a few units in the last place of float64. This changes a
float32 result only where the float64 value is next to the middle of two float32 values; those few values are computed again by the C
library (`math`).
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchspore.engine.torch_internals.torch_private import without_modes

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 13
"""Counters per piece of work: their 64-bit arrays stay in the second-level cache, and torch starts no threads for them."""

_PARALLEL_FROM = 1 << 17
"""Counters from which threads pay."""

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_PI = float(np.float32(3.1415926))
_ROOT_TWO = float(np.float32(1.4142135))
_SMALLEST_UNIFORM = float(np.float32(1.0e-7))

_TIE_WIDTH = 1 << 11
"""How close, in units of the last place of float64, a value must be to a float32 rounding boundary to be computed again."""


def words(key: int, stream: int, first: int, count: int) -> Array:
    """The four words of each of `count` counters from `first` on: uint32 of shape (4 * count,).

    `key` and `stream` are 64-bit numbers: the key of the cipher and the high half of the counter.
    """
    return words_at(key, stream, np.arange(first, first + count, dtype=np.uint64))


def words_at(key: int, stream: int, counter: Array) -> Array:
    """The four words of each counter of an array (uint64, shape (count,)): uint32 of shape (4 * count,)."""
    count = counter.size
    out = np.empty((count, 4), np.uint32)
    c0, c1 = counter & _LOW, counter >> _SHIFT
    c2, c3 = np.full(count, stream & 0xFFFFFFFF, np.uint64), np.full(count, stream >> 32 & 0xFFFFFFFF, np.uint64)
    k0, k1 = key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF
    product0, product1 = np.empty(count, np.uint64), np.empty(count, np.uint64)
    for _ in range(10):
        np.multiply(c0, _MULTIPLIERS[0], out=product0)
        np.multiply(c2, _MULTIPLIERS[1], out=product1)
        np.right_shift(product1, _SHIFT, out=c0)
        np.bitwise_xor(c1, np.uint64(k0), out=c1)
        np.bitwise_xor(c0, c1, out=c0)
        np.bitwise_and(product1, _LOW, out=c1)
        np.right_shift(product0, _SHIFT, out=c2)
        np.bitwise_xor(c3, np.uint64(k1), out=c3)
        np.bitwise_xor(c2, c3, out=c2)
        np.bitwise_and(product0, _LOW, out=c3)
        k0, k1 = (k0 + _KEY_STEPS[0]) & 0xFFFFFFFF, (k1 + _KEY_STEPS[1]) & 0xFFFFFFFF
    out[:, 0], out[:, 1], out[:, 2], out[:, 3] = c0, c1, c2, c3
    return out.reshape(-1)


def fill(array: Array, seed: int, distribution: Callable[[Array], Array], offset: int = 0) -> None:
    """Fill `array`, float32 and contiguous, with `distribution(words)` of the stream of `seed`, in several threads if it is large.

    `distribution` returns one float32 value for each word, and values of four words depend on those words alone. `offset` is the number of
    values of the stream before the first value of `array`.
    """
    flat = array.reshape(-1)
    first_counter, skipped = divmod(offset, 4)
    counters = -(-(skipped + flat.size) // 4)

    def fill_piece(first: int) -> None:
        count = min(_CHUNK, counters - first)
        start = 4 * first - skipped
        begin, end = max(start, 0), min(start + 4 * count, flat.size)
        flat[begin:end] = distribution(words(seed, seed, first_counter + first, count))[begin - start:end - start]

    pieces = range(0, counters, _CHUNK)
    threads = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 16)
    if counters < _PARALLEL_FROM or threads < 2:
        with without_modes():
            for first in pieces:
                fill_piece(first)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(fill_piece, pieces):
            pass


def fill_uniform(array: Array, seed: int, low: float, high: float, offset: int = 0) -> None:
    """Fill `array` (float32, contiguous) with numbers from `low` to `high`, which are rounded to float32 first."""
    low, high = float(np.float32(low)), float(np.float32(high))

    def uniform(drawn: Array) -> Array:
        values = drawn * 2.0**-32
        values *= high - low
        values += low
        return values.astype(np.float32)

    fill(array, seed, uniform, offset)


def fill_normal(array: Array, seed: int, mean: float, sigma: float, offset: int = 0) -> None:
    """Fill `array` (float32, contiguous) with normal numbers by Box and Muller; `mean` and `sigma` are rounded to float32 first."""
    mean, sigma = float(np.float32(mean)), float(np.float32(sigma))

    def normal(drawn: Array) -> Array:
        uniform = ((drawn & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
        pairs = np.maximum(uniform.astype(np.float64), _SMALLEST_UNIFORM).reshape(-1, 2)
        radius = _fast(torch.log, pairs[:, 0].copy())
        radius *= -2.0
        np.sqrt(radius, out=radius)
        radius *= sigma
        angle = pairs[:, 1] * (2.0 * _PI)
        values = np.empty_like(pairs)
        np.multiply(radius, _fast(torch.cos, angle), out=values[:, 0])
        np.multiply(radius, _fast(torch.sin, angle), out=values[:, 1])
        values += mean
        result = values.astype(np.float32)
        for row, column in np.argwhere(_near_ties(values)):
            first, second = pairs[row].tolist()
            scale = math.sqrt(-2.0 * math.log(first)) * sigma
            turn = 2.0 * _PI * second
            result[row, column] = mean + scale * (math.sin(turn) if column else math.cos(turn))
        return result.reshape(-1)

    fill(array, seed, normal, offset)


def _fast(function: Callable[[torch.Tensor], torch.Tensor], values: Array) -> Array:
    """`function` of float64 values by torch, whose vectorised functions take less than half of NumPy's time."""
    return function(torch.from_numpy(values)).numpy()


def _near_ties(values: Array) -> Array:
    """Return where float64 values are so close to the middle of two float32 values that their last bits decide the rounding."""
    dropped = values.view(np.uint64) & np.uint64((1 << 29) - 1)
    dropped -= np.uint64((1 << 28) - _TIE_WIDTH)              # wraps around below
    return dropped < np.uint64(2 * _TIE_WIDTH)


def fill_truncated_normal(
    array: Array, seed: int, low: float, high: float, mean: float, sigma: float, offset: int = 0,
) -> None:
    """Fill `array` (float32, contiguous) with normal numbers between `low` and `high`, by the inverse of the distribution function.

    All four numbers are rounded to float32 first.
    """
    low, high, mean, sigma = (float(np.float32(number)) for number in (low, high, mean, sigma))
    lower, upper = ((math.erfc(-((edge - mean) / sigma / _ROOT_TWO)) / 2.0) for edge in (low, high))

    def truncated(drawn: Array) -> Array:
        doubled = drawn * 2.0**-32
        doubled *= upper - lower
        doubled += lower
        doubled *= 2.0
        quantiles = -inverse_erfc(doubled) * _ROOT_TWO
        values = mean + quantiles * sigma
        result = values.astype(np.float32)
        ties = np.flatnonzero(_near_ties(values))
        for position in ties:
            quantile = -inverse_erfc(doubled[position:position + 1], exact=True)[0] * _ROOT_TWO
            result[position] = mean + quantile * sigma
        return result

    fill(array, seed, truncated, offset)


def inverse_erfc(values: Array, exact: bool = False) -> Array:
    """The inverse of the complementary error function of float64 values by Boost's rational approximations.

    With `exact`, logarithms are the C library's.
    """
    inside = np.clip(values, float(np.nextafter(np.float32(0), np.float32(2))), None)
    inside[inside >= 2.0] = float(np.nextafter(np.float32(2), np.float32(0)))
    is_upper = inside > 1.0
    rest = np.where(is_upper, 2.0 - inside, inside)
    share = 1.0 - rest
    result = np.empty_like(rest)
    central = share <= 0.5
    part = share[central]
    scale = part * (part + 10.0)
    result[central] = scale * _CENTRAL[0] + scale * _rational(_CENTRAL, part)
    middle = ~central & (rest >= 0.25)
    part = rest[middle]
    result[middle] = np.sqrt(-2.0 * _log(part, exact)) / (_MIDDLE[0] + _rational(_MIDDLE, part - 0.25))
    tail = np.flatnonzero(rest < 0.25)
    if tail.size:
        roots = np.sqrt(-_log(rest[tail], exact))
        ends = [3.0, 6.0, 18.0, 44.0, math.inf]
        for start, end, approximation in zip([0.0, *ends], ends, _TAILS):
            chosen = (roots >= start) & (roots < end)
            part = roots[chosen]
            if part.size:
                result[tail[chosen]] = approximation[0] * part + _rational(approximation, part - approximation[1]) * part
    return np.where(is_upper, -result, result)


def _log(values: Array, exact: bool) -> Array:
    return np.array([math.log(value) for value in values.tolist()]) if exact else _fast(torch.log, values)


def _rational(approximation: Any, values: Array) -> Array:
    """The quotient of the two polynomials of an approximation."""
    quotient = _polynomial(approximation[2], values)
    quotient /= _polynomial(approximation[3], values)
    return quotient


def _polynomial(coefficients: tuple[float, ...], values: Array) -> Array:
    """The polynomial with these coefficients, lowest power first, by Horner's rule."""
    result = np.full_like(values, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= values
        result += coefficient
    return result


def _approximation(constant: float, shift: float, upper: str, lower: str) -> tuple[float, float, tuple[float, ...], tuple[float, ...]]:
    return float(np.float32(constant)), shift, tuple(map(float, upper.split())), tuple(map(float, lower.split()))


# (constant, shift of the argument, coefficients of the numerator, of the denominator): John Maddock's approximations in Boost.Math.
_CENTRAL = _approximation(
    0.0891314744949340820313, 0.0,
    "-0.000508781949658280665617 -0.00836874819741736770379 0.0334806625409744615033 -0.0126926147662974029034 "
    "-0.0365637971411762664006 0.0219878681111168899165 0.00822687874676915743155 -0.00538772965071242932965",
    "1 -0.970005043303290640362 -1.56574558234175846809 1.56221558398423026363 0.662328840472002992063 -0.71228902341542847553 "
    "-0.0527396382340099713954 0.0795283687341571680018 -0.00233393759374190016776 0.000886216390456424707504",
)
_MIDDLE = _approximation(
    2.249481201171875, 0.25,
    "-0.202433508355938759655 0.105264680699391713268 8.37050328343119927838 17.6447298408374015486 -18.8510648058714251895 "
    "-44.6382324441786960818 17.445385985570866523 21.1294655448340526258 -3.67192254707729348546",
    "1 6.24264124854247537712 3.9713437953343869095 -28.6608180499800029974 -20.1432634680485188801 48.5609213108739935468 "
    "10.8268667355460159008 -22.6436933413139721736 1.72114765761200282724",
)
_TAILS = (
    _approximation(
        0.807220458984375, 1.125,
        "-0.131102781679951906451 -0.163794047193317060787 0.117030156341995252019 0.387079738972604337464 0.337785538912035898924 "
        "0.142869534408157156766 0.0290157910005329060432 0.00214558995388805277169 -0.679465575181126350155e-6 "
        "0.285225331782217055858e-7 -0.681149956853776992068e-9",
        "1 3.46625407242567245975 5.38168345707006855425 4.77846592945843778382 2.59301921623620271374 0.848854343457902036425 "
        "0.152264338295331783612 0.01105924229346489121",
    ),
    _approximation(
        0.93995571136474609375, 3.0,
        "-0.0350353787183177984712 -0.00222426529213447927281 0.0185573306514231072324 0.00950804701325919603619 "
        "0.00187123492819559223345 0.000157544617424960554631 0.460469890584317994083e-5 -0.230404776911882601748e-9 "
        "0.266339227425782031962e-11",
        "1 1.3653349817554063097 0.762059164553623404043 0.220091105764131249824 0.0341589143670947727934 0.00263861676657015992959 "
        "0.764675292302794483503e-4",
    ),
    _approximation(
        0.98362827301025390625, 6.0,
        "-0.0167431005076633737133 -0.00112951438745580278863 0.00105628862152492910091 0.000209386317487588078668 "
        "0.149624783758342370182e-4 0.449696789927706453732e-6 0.462596163522878599135e-8 -0.281128735628831791805e-13 "
        "0.99055709973310326855e-16",
        "1 0.591429344886417493481 0.138151865749083321638 0.0160746087093676504695 0.000964011807005165528527 "
        "0.275335474764726041141e-4 0.282243172016108031869e-6",
    ),
    _approximation(
        0.99714565277099609375, 18.0,
        "-0.0024978212791898131227 -0.779190719229053954292e-5 0.254723037413027451751e-4 0.162397777342510920873e-5 "
        "0.396341011304801168516e-7 0.411632831190944208473e-9 0.145596286718675035587e-11 -0.116765012397184275695e-17",
        "1 0.207123112214422517181 0.0169410838120975906478 0.000690538265622684595676 0.145007359818232637924e-4 "
        "0.144437756628144157666e-6 0.509761276599778486139e-9",
    ),
    _approximation(
        0.99941349029541015625, 44.0,
        "-0.000539042911019078575891 -0.28398759004727721098e-6 0.899465114892291446442e-6 0.229345859265920864296e-7 "
        "0.225561444863500149219e-9 0.947846627503022684216e-12 0.135880130108924861008e-14 -0.348890393399948882918e-21",
        "1 0.0845746234001899436914 0.00282092984726264681981 0.468292921940894236786e-4 0.399968812193862100054e-6 "
        "0.161809290887904476097e-8 0.231558608310259605225e-11",
    ),
)


def scramble(global_seed: int, operator_seed: int) -> list[int]:
    """The four words in which MindSpore's kernels mix the two seeds of an operator."""
    counter = [global_seed & 0xFFFFFFFF, global_seed >> 32 & 0xFFFFFFFF, operator_seed & 0xFFFFFFFF, operator_seed >> 32 & 0xFFFFFFFF]
    key = [0x3EC8F720, 0x02461E29]
    for _ in range(10):
        product0, product1 = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            product1 >> 32 ^ counter[1] ^ key[0], product1 & 0xFFFFFFFF, product0 >> 32 ^ counter[3] ^ key[1], product0 & 0xFFFFFFFF,
        ]
        key = [(part + step) & 0xFFFFFFFF for part, step in zip(key, _KEY_STEPS)]
    return counter


# ---- how far a generator with two seeds has drawn


_LONG = 1 << 64


def state_of(seeds: tuple[int, int], drawn: int) -> int:
    """One int for the two seeds of a generator (64 bits each) and how far it has drawn."""
    return seeds[0] % _LONG + seeds[1] % _LONG * _LONG + drawn * _LONG**2


def parts_of(state: int) -> tuple[int, int, int]:
    """The two seeds, and how far the generator has drawn."""
    drawn, seeds = divmod(state, _LONG**2)
    return seeds % _LONG, seeds // _LONG, drawn
