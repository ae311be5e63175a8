"""The random numbers that MindSpore's operators draw on the CPU, bit for bit.

Each operator of MindSpore's has a generator of its own. It is seeded from two numbers: the seed of the program, and one that
`_get_graph_seed` counts up from use to use. A layer such as Dropout takes its seeds when it is constructed. Its generator continues from
call to call, separately for each shape of the input. A function takes new seeds at each call. A program without a seed takes the state from
MindSpore's torch generator instead.

A graph holds the operator `torchspore::keep_mask` with the number of a stream in `_streams`, so that each run draws on.
"""
from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from torchspore.engine import generators, philox, random
from torchspore.engine.defining import define
from torchspore.engine.tensor import frame

States = dict[tuple[tuple[int, ...], str], int]
"""The state of a generator for each shape and dtype of a layer's input."""

Snapshot = tuple[dict[int, States], dict[tuple[str, int], int]]
"""The states of all layers' streams by the numbers of the streams, and how far the seeds of functions are counted."""

_MODULUS = 2**31 - 1
_MULTIPLIER = 16807
_BLOCK = 1 << 14

_lock = threading.Lock()
_streams: weakref.WeakValueDictionary[int, OperatorStream] = weakref.WeakValueDictionary()
_functions: dict[tuple[str, int], OperatorStream] = {}
_count = 0


class OperatorStream:
    """The stream of one operator: of a layer with the seeds it was constructed with, or of a function that takes new seeds at each call."""

    def __init__(self, seeds: tuple[int, int] | None, kernel_name: str = "", op_seed: int = 0) -> None:
        global _count
        self.seeds, self._kernel_name, self._op_seed = seeds, kernel_name, op_seed
        self.states: States = {}
        with _lock:
            _count += 1
            self.number = _count
        _streams[self.number] = self

    @property
    def is_seeded(self) -> bool:
        """Whether the numbers are MindSpore's: a program without a seed draws from MindSpore's torch generator."""
        return self.seeds is None or any(self.seeds)

    def keep(self, shape: tuple[int, ...], dtype: str, keep_probability: float) -> tuple[np.ndarray[Any, Any], int]:
        """True for each element of `shape` that is kept, and the state of the generator before."""
        count = math.prod(shape)
        with _lock:
            if self.seeds is None:
                seeds = random.graph_seeds(self._op_seed, self._kernel_name)
                start = first_state(seeds) if any(seeds) else _state_without_seed()
                return keep_mask(start, count, keep_probability)[0].reshape(shape), start
            start = self.states.get((shape, dtype), 0) or first_state(self.seeds)
            mask, self.states[shape, dtype] = keep_mask(start, count, keep_probability)
        return mask.reshape(shape), start

    def __deepcopy__(self, memo: dict[int, Any]) -> OperatorStream:
        return OperatorStream(self.seeds, self._kernel_name, self._op_seed)

    def __reduce__(self) -> Any:
        return OperatorStream, (self.seeds, self._kernel_name, self._op_seed)


def of_function(kernel_name: str, op_seed: int) -> OperatorStream:
    """The stream of the function whose seeds are counted under `kernel_name`."""
    key = kernel_name, op_seed
    if key not in _functions:
        _functions[key] = OperatorStream(None, kernel_name, op_seed)
    return _functions[key]


def is_of_layer(number: int) -> bool:
    """Whether the stream of this number belongs to a layer or a primitive, not to a function."""
    stream = _streams.get(number)
    return stream is not None and stream.seeds is not None


@functools.lru_cache(maxsize=1024)
def first_state(seeds: tuple[int, int]) -> int:
    """The state of `minstd_rand0` that MindSpore starts from for two seeds."""
    words = philox.scramble(*seeds)
    return (words[0] | words[1] << 32) % _MODULUS or 1


def _powers() -> np.ndarray[Any, Any]:
    values, power = [], 1
    for _ in range(_BLOCK):
        power = power * _MULTIPLIER % _MODULUS
        values.append(power)
    return np.array(values, np.uint64)


_table: np.ndarray[Any, Any] | None = None


def keep_mask(state: int, count: int, keep_probability: float) -> tuple[np.ndarray[Any, Any], int]:
    """Which of `count` elements are kept, and the state afterwards: a number of `minstd_rand0` for each, below the probability or not.

    The generator is x * 16807 modulo 2**31 - 1. The number of an element is float32(x - 1) / 2**31 in float32.
    """
    global _table
    if _table is None:
        _table = _powers()
    limit = np.uint64(_last_kept(keep_probability))
    mask = np.empty(count, np.bool_)
    modulus, shift = np.uint64(_MODULUS), np.uint64(31)
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        values = _table[:size] * np.uint64(state)
        high = values >> shift
        values &= modulus
        values += high
        np.right_shift(values, shift, out=high)
        values &= modulus
        values += high
        np.less_equal(values, limit, out=mask[start:start + size])
        state = int(values[-1])
    return mask, state


@functools.lru_cache(maxsize=256)
def _last_kept(keep_probability: float) -> int:
    """The largest state whose number is below the probability."""
    probability = np.float32(keep_probability)
    low, high = 0, _MODULUS
    while low < high:
        middle = (low + high + 1) // 2
        number = min(np.float32(middle - 1) / np.float32(2.0**31), np.nextafter(np.float32(1), np.float32(0)))
        low, high = (middle, high) if number < probability else (low, middle - 1)
    return low


def _state_without_seed() -> int:
    """A state for a program without a seed, from MindSpore's torch generator."""
    return int(torch.randint(1, _MODULUS, (), generator=generators.of_device(torch.device("cpu"))))


def _keep_mask(stream: int, shape: list[int], keep_probability: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    source = _streams.get(stream)
    if source is None:
        raise RuntimeError("a graph draws from the stream of a layer that does not exist any more.")
    mask, start = source.keep(tuple(map(int, shape)), str(dtype), keep_probability)
    return torch.from_numpy(mask), torch.tensor([start], dtype=torch.int64)


def _form(stream: int, shape: list[Any], keep_probability: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(shape, dtype=torch.bool), torch.empty([1], dtype=torch.int64)


def _keep_mask_again(state: torch.Tensor, shape: list[int], keep_probability: float) -> torch.Tensor:
    sizes = tuple(map(int, shape))
    return torch.from_numpy(keep_mask(int(state), math.prod(sizes), keep_probability)[0].reshape(sizes))


def _form_again(state: torch.Tensor, shape: list[Any], keep_probability: float) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bool)


KEEP_MASK = define(
    "keep_mask(int stream, SymInt[] shape, float keep_probability, ScalarType dtype) -> (Tensor, Tensor)", _keep_mask, _form,
    (torch.Tag.nondeterministic_seeded,),
)
"""The mask of a dropout, and the state that it was drawn from."""

KEEP_MASK_AGAIN = define("keep_mask_again(Tensor state, SymInt[] shape, float keep_probability) -> Tensor", _keep_mask_again, _form_again)
"""The mask that was drawn from a state."""


def dropped(x: torch.Tensor, keep_probability: float, stream: OperatorStream) -> tuple[torch.Tensor, torch.Tensor]:
    """`x` on the CPU with elements set to 0, the others divided by the probability as MindSpore does it, and the mask (bool)."""
    around, shape = frame(), x.shape
    if around is None:                              # the dispatcher would take most of the time of a small mask
        mask = torch.from_numpy(stream.keep(tuple(shape), str(x.dtype), keep_probability)[0])
    else:
        mask, _ = around.draw(
            lambda: KEEP_MASK(stream.number, shape, keep_probability, x.dtype),
            lambda state: KEEP_MASK_AGAIN(state, shape, keep_probability),
        )
    scale = float(np.float32(1) / np.float32(keep_probability))
    if x.dtype in (torch.float16, torch.bfloat16):
        return (x.to(torch.float32) * scale).to(x.dtype) * mask, mask
    return x * (mask.to(x.dtype) * scale), mask


# ---- states, for what runs a second time


def snapshot() -> Snapshot:
    """The states of all streams, for `restore`."""
    with _lock:
        layers = {number: dict(stream.states) for number, stream in list(_streams.items()) if stream.states}
        return layers, dict(random.kernel_seeds)


def restore(states: Snapshot) -> None:
    """Continue from a `snapshot`."""
    layers, counts = states
    with _lock:
        for number, stream in list(_streams.items()):
            stream.states = dict(layers.get(number, {}))
        random.kernel_seeds.clear()
        random.kernel_seeds.update(counts)


@contextmanager
def kept_apart() -> Iterator[None]:
    """Run a block that leaves no mark in torch's generators and in the streams of operators: code that is tried or measured."""
    states = snapshot()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        restore(states)


def as_json() -> list[Any]:
    """The `snapshot` as JSON."""
    layers, counts = snapshot()
    states = [[number, [[list(shape), dtype, state] for (shape, dtype), state in kept.items()]] for number, kept in layers.items()]
    return [states, [[name, seed, count] for (name, seed), count in counts.items()]]


def restore_json(value: Any) -> None:
    """Continue from what `as_json` gave; None is the state before any draw. Raises TypeError or ValueError for anything else."""
    states, counts = value or ([], [])
    layers = {int(number): {(tuple(map(int, shape)), str(dtype)): int(state) for shape, dtype, state in kept} for number, kept in states}
    restore((layers, {(str(name), int(seed)): int(count) for name, seed, count in counts}))
