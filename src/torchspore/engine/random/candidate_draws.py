"""Sampled candidates: the classes that MindSpore's CPU kernels draw, and the counts that are expected of them."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchspore.engine.random import c_math, philox
from torchspore.engine.random.distributions import MODULUS, MinstdWords, limited

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]

_RESERVED = 512
"""Counters of Philox that one call reserves for each class."""


def candidates(state: int, parameters: Arrays, shape: tuple[int, ...], options: Sequence[float]) -> tuple[Array, int]:
    """`shape[0]` classes below options[1], int64, and then the number of tries, by `minstd_rand0`.

    options[0] says whether they differ, options[2] whether the true classes parameters[0] are left out.
    """
    (count,), (unique, limit, avoids_true) = shape, options
    excluded = set(parameters[0].ravel().tolist()) if avoids_true else set()
    if (unique and count + len(excluded) > limit) or len(excluded) >= limit:
        excluded = set()
    word = MinstdWords(state, count)
    below, width = limited(word, MODULUS - 1), int(limit)
    return _collected(lambda: below(width), count, bool(unique), excluded), word.state


def log_uniform_candidates(state: int, parameters: Arrays, shape: tuple[int, ...], options: Sequence[float]) -> tuple[Array, int]:
    """The same by Philox, small classes more often. No class is omitted."""
    (count,), (unique, limit, _) = shape, options
    key, stream, drawn = philox.parts_of(state)
    fractions = _fractions(key, stream, drawn, count)
    logarithm, width = math.log1p(limit), int(limit)
    values = _collected(lambda: (int(math.exp(next(fractions) * logarithm)) - 1) % width, count, bool(unique), set())
    return values, philox.state_of((key, stream), drawn + _RESERVED * count)


def _fractions(key: int, stream: int, counter: int, count: int) -> Iterator[float]:
    """float64 numbers from 0 to 1 (excluded), two of each counter from `counter` on, computed for about `count` numbers at once."""
    size = min(max(count // 2, 8), 1 << 13)
    while True:
        words = philox.words(key, stream, counter, size).astype(np.uint64)
        yield from (((words[0::2] & np.uint64(0xFFFFF)) << np.uint64(32) | words[1::2]) * 2.0**-52).tolist()
        counter += size


def _collected(draw: Callable[[], int], count: int, is_unique: bool, excluded: set[int]) -> Array:
    """`count` classes that `draw` gives and that are not excluded, different ones if `is_unique`, and then the number of tries.

    MindSpore counts no tries where classes may repeat.
    """
    values: list[int] = []
    tries = 0
    excluded = set(excluded)
    while len(values) < count:
        value = draw()
        tries += 1
        if value in excluded:
            continue
        values.append(value)
        if is_unique:
            excluded.add(value)
    return np.array([*values, tries if is_unique else count], np.int64)


def expected_counts(classes: Array, tries: int, count: int, limit: int, is_log: bool) -> Array:
    """Return how often each class is expected among `count` drawn ones, float32, in the shape of `classes`.

    Raises ValueError for classes below 0 if `is_log`.
    """
    if not is_log:
        return np.full(classes.shape, _expected_count(np.float32(1) / np.float32(limit), tries, count), np.float32)
    if (classes < 0).any():
        raise ValueError("true_classes: expected ints from 0 on.")
    logarithm = math.log1p(limit)
    shares = [np.float32(math.log((value + 2.0) / (value + 1.0)) / logarithm) for value in classes.ravel().tolist()]
    return np.array([_expected_count(share, tries, count) for share in shares], np.float32).reshape(classes.shape)


def _expected_count(share: np.float32, tries: int, count: int) -> np.float32:
    if tries == count:
        return share * np.float32(count)
    return -np.float32(c_math.expm1_float32(float(np.float32(tries) * np.float32(c_math.log1p_float32(float(-share))))))
