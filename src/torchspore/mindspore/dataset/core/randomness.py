"""Random numbers of the random transforms.

Inside a pipeline each row of a `map` has its own stream, derived from the pipeline's seed, the epoch and the row's number: the same seed
gives the same numbers for any number of threads. A transform that a program calls directly draws from one stream of the process.
"""
from __future__ import annotations

import random
import threading
import zlib

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.core import config


class _Thread(threading.local):
    key: tuple[int, ...] | None = None
    generator: np.random.Generator | None = None


_thread = _Thread()


class _Process:
    """The generator of this process."""

    def __init__(self) -> None:
        self.seeded: tuple[int | None, np.random.Generator] | None = None


_PROCESS = _Process()
_lock = threading.Lock()


NO_DRAWS = -1
"""In place of a seed: the row's transforms may not draw, because their results are cached."""
Outer = tuple[tuple[int, ...] | None, np.random.Generator | None]
_NONE: Outer = (None, None)


def enter_row(key: tuple[int, ...], stream: np.random.Generator | None = None) -> Outer:
    """Set the row that this thread works on; its stream continues, or is created when a transform draws.

    Returns the previous row: a function of a `map` may itself iterate over a pipeline.
    """
    outer = _thread.key, _thread.generator
    _thread.key, _thread.generator = key, stream
    return outer


def next_row(key: tuple[int, ...]) -> None:
    """Switch to another row, between `enter_row` and `leave_row`."""
    _thread.key, _thread.generator = key, None


def leave_row(outer: Outer = _NONE) -> np.random.Generator | None:
    """Undo `enter_row` and return to `outer`. Returns the row's stream, for a later step of the same row."""
    stream = _thread.generator
    _thread.key, _thread.generator = outer
    return stream


def generator() -> np.random.Generator:
    """Return the stream that a transform currently draws from."""
    if _thread.generator is not None:
        return _thread.generator
    if _thread.key is not None:
        if _thread.key[:1] == (NO_DRAWS,):
            hint = "call map without cache for random transforms, after the map with cache"
            raise RuntimeError(message("a random transform in map(cache=...) or below it", "transforms without random numbers", hint=hint))
        _thread.generator = np.random.Generator(np.random.PCG64(_thread.key))
        return _thread.generator
    seed = config.chosen_seed()
    with _lock:
        if _PROCESS.seeded is None or _PROCESS.seeded[0] != seed:
            _PROCESS.seeded = (seed, np.random.Generator(np.random.PCG64(seed)))
        return _PROCESS.seeded[1]


def seed_python(key: tuple[int, ...]) -> None:
    """Seed Python's and NumPy's random numbers for a row of a worker process, independently of the process that has it."""
    number = zlib.crc32(repr(key).encode())
    random.seed(number)
    np.random.seed(number)


def happens(probability: float) -> bool:
    """Return True with this probability."""
    return generator().random() < probability
