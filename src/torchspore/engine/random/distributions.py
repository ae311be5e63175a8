"""The numbers that MindSpore's CPU kernels draw with the generators and distributions of the C++ standard library, bit for bit.

The kernels use the GNU library's `minstd_rand0` and `mt19937`. The state of a generator is one int here. For `minstd_rand0` it is the state
itself. For `mt19937` it is the seed plus 2**32 times the number of words drawn so far. Each function takes a state and gives the values and
the state afterwards.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.engine.random.c_math import log_float32

Array = np.ndarray[Any, Any]
Draw = Callable[..., tuple[Array, int]]

MODULUS = 2**31 - 1
_MULTIPLIER = 16807
_BLOCK = 1 << 14
"""Numbers per piece of work, so that the arrays stay in the second-level cache."""

_LARGEST_FLOAT_UNDER_1 = np.nextafter(np.float32(1), np.float32(0))
_LARGEST_DOUBLE_UNDER_1 = np.nextafter(1.0, 0.0)


# ---- minstd_rand0: x * 16807 modulo 2**31 - 1


@functools.cache
def _powers() -> Array:
    values, power = [], 1
    for _ in range(_BLOCK):
        power = power * _MULTIPLIER % MODULUS
        values.append(power)
    return np.array(values, np.uint64)


def minstd_block(state: int, size: int) -> Array:
    """The next `size` states (at most `_BLOCK`) of `minstd_rand0`, uint64. The last is the state afterwards."""
    modulus, shift = np.uint64(MODULUS), np.uint64(31)
    values: Array = _powers()[:size] * np.uint64(state)
    high = values >> shift
    values &= modulus
    values += high
    np.right_shift(values, shift, out=high)
    values &= modulus
    values += high
    return values


def minstd_after(state: int, count: int) -> int:
    """The state of `minstd_rand0` after `count` more states."""
    return state * pow(_MULTIPLIER, count, MODULUS) % MODULUS


def keep_mask(state: int, count: int, keep_probability: float) -> tuple[Array, int]:
    """Return which of `count` elements are kept: each has a number, below the probability or not."""
    limit = np.uint64(_last_accepted(keep_probability))
    mask = np.empty(count, np.bool_)
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        values = minstd_block(state, size)
        np.less_equal(values, limit, out=mask[start:start + size])
        state = int(values[-1])
    return mask, state


@functools.lru_cache(maxsize=256)
def _last_accepted(keep_probability: float) -> int:
    """The largest state whose number is below the probability."""
    probability = np.float32(keep_probability)
    low, high = 0, MODULUS
    while low < high:
        middle = (low + high + 1) // 2
        number = min(np.float32(middle - 1) / np.float32(2.0**31), _LARGEST_FLOAT_UNDER_1)
        low, high = (middle, high) if number < probability else (low, middle - 1)
    return low


def _minstd_fractions(states: Array) -> Array:
    """The float32 numbers from 0 to 1 (excluded) of states."""
    numbers = (states - np.uint64(1)).astype(np.int32).astype(np.float32)
    numbers *= np.float32(2.0**-31)
    return np.minimum(numbers, _LARGEST_FLOAT_UNDER_1, out=numbers)


def minstd_uniform(state: int, count: int) -> tuple[Array, int]:
    """`count` float32 numbers from 0 to 1 (excluded)."""
    values = np.empty(count, np.float32)
    for start in range(0, count, _BLOCK):
        states = minstd_block(state, min(_BLOCK, count - start))
        values[start:start + _BLOCK] = _minstd_fractions(states)
        state = int(states[-1])
    return values, state


def standard_normal(state: int, count: int) -> tuple[Array, int]:
    """`count` standard normal float32 numbers by Marsaglia's polar method: two of each accepted pair, the second coordinate first."""
    values = np.empty(-(-count // 2) * 2, np.float32)
    filled = 0
    while filled < count:
        pairs_missing = (values.size - filled) // 2
        size = min(_BLOCK, 2 * int(pairs_missing * 1.3 + 16))
        states = minstd_block(state, size)
        points = _minstd_fractions(states)
        points *= np.float32(2)
        points -= np.float32(1)
        x, y = points[0::2], points[1::2]
        squares = x * x
        squares += y * y
        accepted = np.flatnonzero((squares <= np.float32(1)) & (squares != np.float32(0)))[:pairs_missing]
        if accepted.size:
            squares = squares[accepted]
            scale = log_float32(squares)
            scale *= np.float32(-2)
            scale /= squares
            np.sqrt(scale, out=scale)
            part = values[filled:filled + 2 * accepted.size].reshape(-1, 2)
            np.multiply(y[accepted], scale, out=part[:, 0])
            np.multiply(x[accepted], scale, out=part[:, 1])
            filled += 2 * accepted.size
        used = 2 * int(accepted[-1]) + 2 if accepted.size == pairs_missing else size
        state = int(states[used - 1])
    return values[:count], state


def truncated_normal(state: int, count: int) -> tuple[Array, int]:
    """Return `count` standard normal float64 numbers from -2 to 2: those numbers of the polar method in that range."""
    values, filled = np.empty(count, np.float64), 0
    while filled < count:
        states = minstd_block(state, min(_BLOCK, 4 * int((count - filled) * 0.75 + 16)))
        numbers = (states - np.uint64(1)).astype(np.float64).reshape(-1, 2)
        range_ = float(MODULUS - 1)
        points = 2.0 * ((numbers[:, 0] + numbers[:, 1] * range_) / (range_ * range_)) - 1.0
        x, y = points[0::2], points[1::2]
        squares = x * x + y * y
        accepted = np.flatnonzero((squares <= 1.0) & (squares != 0.0))
        scale = np.sqrt(-2.0 * np.log(squares[accepted]) / squares[accepted])
        pairs = np.stack([y[accepted] * scale, x[accepted] * scale], 1).reshape(-1)
        inside = np.flatnonzero(np.abs(pairs) <= 2.0)[:count - filled]
        values[filled:filled + inside.size] = pairs[inside]
        filled += inside.size
        used = 4 * int(accepted[inside[-1] // 2]) + 4 if filled == count else states.size
        state = int(states[used - 1])
    return values, state


def standard_laplace(state: int, count: int) -> tuple[Array, int]:
    """`count` float32 numbers of Laplace's distribution by its inverse."""
    low = np.nextafter(np.float32(-1), np.float32(0))
    numbers, state = minstd_uniform(state, count)
    numbers = numbers * (np.float32(1) - low) + low
    magnitudes = np.log(1.0 - np.abs(numbers).astype(np.float64))
    return (-np.copysign(1.0, numbers) * magnitudes).astype(np.float32), state


def minstd_fractions64(state: int, count: int) -> tuple[Array, int]:
    """`count` float64 numbers from 0 to 1 (excluded), each of two states."""
    values = np.empty(count)
    for start in range(0, count, _BLOCK // 2):
        states = minstd_block(state, 2 * min(_BLOCK // 2, count - start))
        numbers = (states - np.uint64(1)).astype(np.float64).reshape(-1, 2)
        values[start:start + len(numbers)] = (numbers[:, 0] + numbers[:, 1] * float(MODULUS - 1)) / float(MODULUS - 1)**2
        state = int(states[-1])
    return np.minimum(values, _LARGEST_DOUBLE_UNDER_1, out=values), state


# ---- mt19937


_WORD = 1 << 32
_generators: dict[int, np.random.MT19937] = {}
"""Generators by their state, so that a stream that continues is not drawn again from its seed."""

_MOST_GENERATORS = 64


def _generator_at(state: int) -> np.random.MT19937:
    generator = _generators.pop(state, None)
    if generator is None:
        drawn, seed = divmod(state, _WORD)
        generator = np.random.MT19937()
        generator._legacy_seeding(seed)
        while drawn:
            size = min(drawn, 1 << 20)
            generator.random_raw(size, False)
            drawn -= size
    return generator


def _words(generator: np.random.MT19937, count: int) -> Array:
    """The next `count` words, uint32."""
    words: Array = np.random.Generator(generator).integers(0, _WORD, count, np.uint32)
    return words


def _keep(generator: np.random.MT19937, state: int) -> None:
    if len(_generators) >= _MOST_GENERATORS:
        _generators.pop(next(iter(_generators)), None)
    _generators[state] = generator


class MersenneNumbers:
    """float64 numbers from 0 to 1 (excluded), each of two words, for draws that see only afterwards how many numbers they used."""

    def __init__(self, state: int) -> None:
        self._state, self._used = state, 0
        self._generator = _generator_at(state)
        self._block_start: Any = self._generator.state
        self._numbers, self._position = np.empty(0), 0

    def ahead(self, count: int) -> Array:
        """The next `count` numbers, which `advance` passes."""
        if self._position + count > self._numbers.size:
            self._rewind()
            words = _words(self._generator, 2 * max(count, 1024))
            self._numbers = np.minimum(words.view("<u8").astype(np.float64) * 2.0**-64, _LARGEST_DOUBLE_UNDER_1)
        return self._numbers[self._position:self._position + count]

    def next(self) -> float:
        """The next number, which is passed."""
        if self._position == self._numbers.size:
            self.ahead(1)
        number: float = self._numbers.item(self._position)
        self._position += 1
        self._used += 1
        return number

    def advance(self, count: int) -> None:
        """Go on by `count` numbers, at most as many as `ahead` gave."""
        self._position += count
        self._used += count

    def end(self) -> int:
        """The state after the numbers that were passed. Nothing can be drawn afterwards."""
        self._rewind()
        state = self._state + 2 * self._used * _WORD
        _keep(self._generator, state)
        return state

    def _rewind(self) -> None:
        """Set the generator to the word after the last number that was passed."""
        self._generator.state = self._block_start
        self._generator.random_raw(2 * self._position, False)
        self._block_start, self._numbers, self._position = self._generator.state, np.empty(0), 0


def uniform_real(state: int, count: int) -> tuple[Array, int]:
    """`count` float32 numbers from 0 to 1, each of two words."""
    values = np.empty(count, np.float32)
    generator = _generator_at(state)
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        words = _words(generator, 2 * size)
        numbers = words.view("<u8").astype(np.float64)
        numbers *= 2.0**-64
        values[start:start + size] = numbers
    state += 2 * count * _WORD
    _keep(generator, state)
    return values, state


def uniform_int(state: int, count: int, low: float, high: float) -> tuple[Array, int]:
    """Return `count` int32 numbers from `low` to `high` (excluded): a word divided by a scale, if that does not exceed the range."""
    low, width = int(low), int(high) - int(low)
    scale = np.uint32((_WORD - 1) // width)
    values = np.empty(count, np.int32)
    generator, filled = _generator_at(state), 0
    while filled < count:
        words = _words(generator, min(_BLOCK, count - filled))
        state += words.size * _WORD
        accepted = words[words < np.uint32(width * int(scale))]
        accepted //= scale
        values[filled:filled + accepted.size] = accepted.astype(np.int64) + low
        filled += accepted.size
    _keep(generator, state)
    return values, state


# ---- the order of std::shuffle


def limited(word: Callable[[], int], span: int) -> Callable[[int], int]:
    """A function that draws an int below its argument from words below `span`, as `std::uniform_int_distribution` does."""

    def below(width: int) -> int:
        if width == span:
            return word()
        if width > span:
            while True:
                drawn = below((width - 1) // span + 1) * span + word()
                if drawn < width:
                    return drawn
        scale = (span - 1) // width
        limit = width * scale
        drawn = word()
        while drawn >= limit:
            drawn = word()
        return drawn // scale

    return below


class MinstdWords:
    """The next number of `minstd_rand0` below `MODULUS` - 1 at each call; `state` is that of the generator."""

    def __init__(self, state: int, block: int) -> None:
        """`block` says how many numbers are computed at once."""
        self.state = state
        self._block = min(max(block, 16), _BLOCK)
        self._states: list[int] = []

    def __call__(self) -> int:
        if not self._states:
            self._states = minstd_block(self.state, self._block)[::-1].tolist()
        self.state = self._states.pop()
        return self.state - 1


def _shuffled(count: int, below: Callable[[int], int], span: int) -> Array:
    """Return the ints below `count` in the order of `std::shuffle`, which draws two positions at once if `span` allows it."""
    order = list(range(count))
    if count == 0:
        return np.array(order, np.int64)
    if (span - 1) // count < count:
        for index in range(1, count):
            other = below(index + 1)
            order[index], order[other] = order[other], order[index]
        return np.array(order, np.int64)
    index = 1
    if count % 2 == 0:
        other = below(2)
        order[1], order[other] = order[other], order[1]
        index = 2
    while index < count:
        first, second = divmod(below((index + 1) * (index + 2)), index + 2)
        order[index], order[first] = order[first], order[index]
        order[index + 1], order[second] = order[second], order[index + 1]
        index += 2
    return np.array(order, np.int64)


def minstd_order(state: int, count: int) -> tuple[Array, int]:
    """The ints below `count` in random order, int64, by `minstd_rand0`."""
    word = MinstdWords(state, count)
    return _shuffled(count, limited(word, MODULUS - 1), MODULUS - 1), word.state


def order_of_true(state: int, mask: Array, count: int) -> tuple[Array, int]:
    """Return `count` flat indexes (int64) of true elements in random order, -1 if there are fewer."""
    indexes = np.flatnonzero(mask)
    order, state = minstd_order(state, indexes.size)
    result = np.full(count, -1, np.int64)
    result[:min(count, indexes.size)] = indexes[order[:count]]
    return result, state


def mt_order(state: int, count: int) -> tuple[Array, int]:
    """The ints below `count` in random order, int64, by `mt19937`."""
    generator = _generator_at(state)
    numbers: list[int] = []
    drawn = 0

    def word() -> int:
        nonlocal drawn
        if not numbers:
            numbers.extend(reversed(_words(generator, min(_BLOCK, max(count, 16))).tolist()))
        drawn += 1
        return numbers.pop()

    return _shuffled(count, limited(word, _WORD), _WORD), state + drawn * _WORD


# ---- Philox with the two seeds as they are


def philox_fractions(seed: int, offset: int, count: int) -> Array:
    """`count` float32 numbers from 0 to 1 (excluded), of the low 23 bits of each word."""
    from torchspore.engine.random import philox

    words = philox.words(seed % 2**64, offset % 2**64, 0, -(-count // 4))[:count]
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)


def picked(weights: Array, numbers: Array) -> Array:
    """For each row of `numbers` (float32, from 0 to 1) the indexes (int64) whose share of the row's weights they fall into.

    The shares are summed one by one in the dtype of the weights.
    """
    sums = np.cumsum(weights, -1, dtype=weights.dtype)
    totals = sums[..., -1:]
    sums = np.where(totals != 0, sums / np.where(totals != 0, totals, 1).astype(sums.dtype), sums)
    rows = [np.searchsorted(row[:-1], values.astype(row.dtype), "right") for row, values in zip(sums, numbers)]
    return np.array(rows, np.int64).reshape(numbers.shape)


DRAWS: dict[str, tuple[Draw, Any]] = {
    "normal": (standard_normal, np.float32), "laplace": (standard_laplace, np.float32), "minstd_uniform": (minstd_uniform, np.float32),
    "uniform": (uniform_real, np.float32), "int": (uniform_int, np.int32), "order": (minstd_order, np.int64),
    "truncated": (truncated_normal, np.float64),
}
"""How the values of each kind are drawn, and their dtype."""

MERSENNE = frozenset({"uniform", "int"})
"""The kinds that `mt19937` draws."""
