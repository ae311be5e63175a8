"""Normal numbers between two limits, as MindSpore's CPU kernel draws them with `minstd_rand0`."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchspore.engine.random import c_math
from torchspore.engine.random.distributions import minstd_after, minstd_fractions64

Array = np.ndarray[Any, Any]
Trial = Callable[[Array], tuple[Array, Array]]
"""Takes rows of two numbers from 0 to 1, a row for each try; gives the accepted values and the rows that they came from."""

_MOST_TRIES = 1000
_BLOCK = 1 << 13


def truncated_normal_between(
    state: int, parameters: Sequence[Array], shape: tuple[int, ...], options: Sequence[float],
) -> tuple[Array, int]:
    """Normal numbers of `shape` with the mean, standard deviation, minimum and maximum `parameters`, each of one value or one for each row.

    They have the parameters' dtype, in which they are computed.

    Raises:
        ValueError: a standard deviation is not positive, or a minimum exceeds its maximum.
        RuntimeError: so many numbers were refused in a row that the limits are out of reach.
    """
    dtype, size = parameters[0].dtype, math.prod(shape[1:])
    values = np.empty((shape[0], size), dtype)
    rows = [np.broadcast_to(parameter.ravel(), shape[:1]) for parameter in parameters]
    with np.errstate(all="ignore"):
        for numbers, run in itertools.groupby(range(shape[0]), lambda row: tuple(parameter[row] for parameter in rows)):
            mean, deviation, low, high = numbers
            if not deviation > 0:
                raise ValueError("stdevs: expected numbers above 0.")
            if not low <= high or np.isnan(mean):
                raise ValueError("expected numbers as mean, and min up to max.")
            remaining = list(run)
            values[remaining[0]:remaining[-1] + 1], state = _rows(state, (len(remaining), size), mean, deviation, low, high)
    return values.reshape(shape), state


def _rows(state: int, shape: tuple[int, int], mean: Any, deviation: Any, low: Any, high: Any) -> tuple[Array, int]:
    """Several rows with the same parameters."""
    dtype = type(mean)
    if low == -math.inf or high < mean:
        low, high, deviation = high, low, -deviation
    start, end = (low - mean) / deviation, (high - mean) / deviation
    root = np.sqrt(start * start + dtype(4))
    exponent = dtype(0.5) + start * (start - root) / dtype(4)
    cutoff = dtype(2) * c_math.exp(np.array([exponent]))[0] / (start + root)
    edge = dtype(1.3)
    if (start < -edge and end >= 0) or (end > edge and start <= 0):
        trial = _by_polar_method(start, end)
    elif end - start < cutoff:
        trial = _by_uniform(start, end)
    else:
        trial = _by_exponential(start, end)
    normal, state = _accepted(state, shape, dtype, trial)
    return normal * deviation + mean, state


def _accepted(state: int, shape: tuple[int, int], dtype: Any, trial: Trial) -> tuple[Array, int]:
    """Rows of accepted values, and the state of the generator after the last try that was needed.

    Where a try gives two values and the first of them ends a row, the second is not used.
    """
    count, size = shape
    values = np.empty(shape, dtype)
    accepted, tries = [np.empty(0, dtype)], [np.empty(0, np.int64)]
    row, waiting, last, done, start = 0, 0, -1, 0, state
    while row < count:
        block = min(max(int((count - row) * size * 1.3), 16), _BLOCK)
        numbers, state = minstd_fractions64(state, 2 * block)
        new, rows = trial(numbers.reshape(-1, 2))
        accepted.append(new)
        tries.append(rows + done)
        waiting += new.size
        done += block
        if waiting >= size:
            row, last, accepted[:], tries[:] = _fill(values, row, np.concatenate(accepted), np.concatenate(tries))
            waiting = accepted[0].size
        elif not new.size and done - last > _MOST_TRIES:
            raise RuntimeError(f"min and max: not one of {_MOST_TRIES} numbers in a row was between them.")
    return values, minstd_after(start, 4 * (last + 1))


def _fill(values: Array, row: int, accepted: Array, tries: Array) -> tuple[int, int, list[Array], list[Array]]:
    """Fill `values` from `row` on; return the next row to fill, the last try that was used, and the unused numbers of `accepted` and
    `tries`."""
    offset, size = 0, values.shape[1]
    while row < len(values) and offset + size <= accepted.size:
        values[row] = accepted[offset:offset + size]
        offset += size
        row += 1
        last = int(tries[offset - 1])
        if offset < accepted.size and tries[offset] == last:
            offset += 1
    return row, last, [accepted[offset:]], [tries[offset:]]


def _by_polar_method(start: Any, end: Any) -> Trial:
    """Marsaglia's polar method: two values of each pair in the unit circle, the second coordinate first."""

    def trial(numbers: Array) -> tuple[Array, Array]:
        x, y = (2.0 * numbers - 1.0).T
        squares = x * x + y * y
        inside = np.flatnonzero((squares <= 1.0) & (squares != 0.0))
        squares = squares[inside]
        scale = np.sqrt(-2.0 * c_math.log(squares) / squares)
        pairs = np.stack([y[inside] * scale, x[inside] * scale], 1).reshape(-1)
        values = c_math.rounded(pairs, start.dtype)
        accepted = (values >= start) & (values <= end)
        return values[accepted], np.repeat(inside, 2)[accepted]

    return trial


def _by_uniform(start: Any, end: Any) -> Trial:
    dtype = type(start)
    peak = dtype(0) if start < 0 else start * start

    def trial(numbers: Array) -> tuple[Array, Array]:
        uniform = c_math.rounded(numbers, start.dtype)
        values = uniform[:, 0] * (end - start) + start
        accepted = np.flatnonzero(uniform[:, 1] <= c_math.exp((peak - values * values) / dtype(2)))
        return values[accepted], accepted

    return trial


def _by_exponential(start: Any, end: Any) -> Trial:
    dtype = type(start)
    rate = (start + np.sqrt(start * start + dtype(4))) / dtype(2)

    def trial(numbers: Array) -> tuple[Array, Array]:
        uniform = c_math.rounded(numbers, start.dtype)
        values = -c_math.log(uniform[:, 0]) / rate + start
        distance = rate - values if start < rate else np.full_like(values, start - rate)
        accepted = np.flatnonzero((uniform[:, 1] <= c_math.exp(-distance * distance / dtype(2))) & (values < end))
        return values[accepted], accepted

    return trial
