"""The random numbers that MindSpore's operators draw on the CPU, bit for bit.

Each operator of MindSpore's has a generator of its own. It is seeded from two numbers: the seed of the program, and one that
`_get_graph_seed` counts up from use to use. A layer such as Dropout takes its seeds when it is constructed. Its generator continues from
call to call, separately for each shape of the input. A function takes new seeds at each call. A program without a seed takes the state from
MindSpore's torch generator instead.

A graph holds the operators `torchspore::keep_mask`, `torchspore::draw`, `torchspore::draw_order` and `torchspore::draw_by` with the number
of a stream in `_streams`, so that each run draws on. The graph keeps these streams alive. A primitive that `construct` creates has a new
generator at each call in PyNative. In a graph its generator continues from call to call, as MindSpore's does.
"""
from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from torchspore.engine.random import distributions, generators, philox, random_state
from torchspore.engine.random.candidate_draws import expected_counts as expected_counts_of
from torchspore.engine.random.distributions import DRAWS, MERSENNE, MODULUS, keep_mask
from torchspore.engine.random.parameter_draws import PARAMETER_DRAWS
from torchspore.engine.tensors.tensor import frame
from torchspore.engine.torch_internals.custom_operators import define

States = dict[tuple[tuple[int, ...], str], int]
"""The state of a generator for each shape and dtype of a layer's input."""

Snapshot = tuple[dict[int, States], dict[tuple[str, int], int]]
"""The states of all layers' streams by the numbers of the streams, and how far the seeds of functions are counted."""

_lock = threading.Lock()
_streams: weakref.WeakValueDictionary[int, OperatorStream] = weakref.WeakValueDictionary()
_functions: dict[tuple[str, int | None], OperatorStream] = {}


class _Streams:
    """Number of the streams."""

    def __init__(self) -> None:
        self.count = 0


_STREAMS = _Streams()
_MOST_STATES = 4096
"""How many generators a stream with parameters in Tensors holds, those that drew last: that of Gamma has one for each value of alpha."""


class OperatorStream:
    """The stream of one operator: of a layer with the seeds it was constructed with, or of a function that takes new seeds at each call."""

    def __init__(self, seeds: tuple[int, int] | None, kernel_name: str = "", op_seed: int | None = 0) -> None:
        self.seeds, self._kernel_name, self._op_seed = seeds, kernel_name, op_seed
        self.states: States = {}
        with _lock:
            _STREAMS.count += 1
            self.number = _STREAMS.count
        _streams[self.number] = self

    @property
    def is_seeded(self) -> bool:
        """True if the numbers are MindSpore's: a program without a seed draws from MindSpore's torch generator."""
        return self.seeds is None or any(self.seeds)

    def keep(self, shape: tuple[int, ...], dtype: str, keep_probability: float) -> tuple[np.ndarray[Any, Any], int]:
        """True for each element of `shape` that is kept, and the state of the generator before."""
        mask, start = self._next(shape, dtype, lambda state: keep_mask(state, math.prod(shape), keep_probability), first_state)
        return mask.reshape(shape), start

    def draw(self, kind: str, key: str, shape: tuple[int, ...], numbers: list[float]) -> tuple[np.ndarray[Any, Any], int]:
        """Values of a kind in `DRAWS` with the parameters `numbers`, and the state of the generator before."""
        draw, count = DRAWS[kind][0], math.prod(shape)
        first = first_seed if kind in MERSENNE else first_state
        values, start = self._next(shape, kind + key, lambda state: draw(state, count, *numbers), first)
        return values.reshape(shape), start

    def order(self, mask: torch.Tensor, count: int) -> tuple[np.ndarray[Any, Any], int]:
        """Return `count` flat indexes (int64) of true elements of `mask` in random order, -1 if there are fewer, and the state before."""
        return self._next(tuple(mask.shape), "mask", lambda state: distributions.order_of_true(state, mask.numpy(), count), first_state)

    def draw_by(
        self, kind: str, key: str, parameters: list[np.ndarray[Any, Any]], shape: tuple[int, ...], options: list[float],
    ) -> tuple[np.ndarray[Any, Any], int]:
        """Return values of a kind in `PARAMETER_DRAWS` with parameters in arrays, and the state of the generator before.

        The generator continues from call to call, separately for each `shape`, `key` and the part of the parameters that the kind reads.
        """
        how = PARAMETER_DRAWS[kind]
        label = shape, f"{kind} {key} {how.key(parameters)}"
        with _lock:
            seeds = how.seeds(parameters) if how.seeds else self.seeds or self._function_seeds()
            continues = self.seeds is not None and any(seeds)
            if not any(seeds):
                seeds = _state_without_seed(), 0
            start = how.start(self.states.get(label, 0) if continues else 0, seeds)
            values, end = how.draw(start, parameters, shape, options)
            if continues:
                self.states.pop(label, None)
                self.states[label] = end
                if len(self.states) > _MOST_STATES:
                    del self.states[next(iter(self.states))]
        return values, start

    def _function_seeds(self) -> tuple[int, int]:
        return random_state.graph_seeds((random_state.get_seed() or 0) if self._op_seed is None else self._op_seed, self._kernel_name)

    def _next(
        self, shape: tuple[int, ...], key: str, draw: Callable[[int], Any], first: Callable[[tuple[int, int]], int],
    ) -> tuple[np.ndarray[Any, Any], int]:
        with _lock:
            if self.seeds is None:
                seeds = self._function_seeds()
                start = first(seeds) if any(seeds) else _state_without_seed()
                return draw(start)[0], start
            start = self.states.get((shape, key), 0) or first(self.seeds)
            values, self.states[shape, key] = draw(start)
        return values, start

    def __deepcopy__(self, memo: dict[int, Any]) -> OperatorStream:
        return OperatorStream(self.seeds, self._kernel_name, self._op_seed)

    def __reduce__(self) -> Any:
        return OperatorStream, (self.seeds, self._kernel_name, self._op_seed)


def of_function(kernel_name: str, op_seed: int | None) -> OperatorStream:
    """Return the stream of the function whose seeds are counted under `kernel_name`; None represents the seed of the program."""
    key = kernel_name, op_seed
    if key not in _functions:
        _functions[key] = OperatorStream(None, kernel_name, op_seed)
    return _functions[key]


def substitute(number: int) -> OperatorStream:
    """Return a new stream with the number of a stream of another process, whose graph is compiled here. The caller keeps it alive."""
    stream = OperatorStream((1, number))
    stream.number = number
    _streams[number] = stream
    return stream


def is_of_layer(number: int) -> bool:
    """Return whether the stream of this number belongs to a layer or a primitive, not to a function."""
    stream = _streams.get(number)
    return stream is not None and stream.seeds is not None


@functools.lru_cache(maxsize=1024)
def first_state(seeds: tuple[int, int]) -> int:
    """The state of `minstd_rand0` that MindSpore starts from for two seeds."""
    words = philox.scramble(*seeds)
    return (words[0] | words[1] << 32) % MODULUS or 1


@functools.lru_cache(maxsize=1024)
def first_seed(seeds: tuple[int, int]) -> int:
    """The seed of `mt19937` that MindSpore starts from for two seeds."""
    return philox.scramble(*seeds)[0]


def _state_without_seed() -> int:
    """A state for a program without a seed, from MindSpore's torch generator."""
    return int(torch.randint(1, MODULUS, (), generator=generators.of_device(torch.device("cpu"))))


def _stream(number: int) -> OperatorStream:
    stream = _streams.get(number)
    if stream is None:
        raise RuntimeError("a graph draws from the stream of a layer that does not exist any more.")
    return stream


def _keep_mask(stream: int, shape: list[int], keep_probability: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    mask, start = _stream(stream).keep(tuple(map(int, shape)), str(dtype), keep_probability)
    return torch.from_numpy(mask), torch.tensor([start], dtype=torch.int64)


def _form(stream: int, shape: list[Any], keep_probability: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(shape, dtype=torch.bool), torch.empty([1], dtype=torch.int64)


def _redraw_keep_mask(state: torch.Tensor, shape: list[int], keep_probability: float) -> torch.Tensor:
    sizes = tuple(map(int, shape))
    return torch.from_numpy(keep_mask(int(state), math.prod(sizes), keep_probability)[0].reshape(sizes))


def _redraw_form(state: torch.Tensor, shape: list[Any], keep_probability: float) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bool)


KEEP_MASK = define(
    "keep_mask(int stream, SymInt[] shape, float keep_probability, ScalarType dtype) -> (Tensor, Tensor)", _keep_mask, _form,
    (torch.Tag.nondeterministic_seeded,),
)
"""The mask of a dropout, and the state that it was drawn from."""

REDRAW_KEEP_MASK = define(
    "keep_mask_again(Tensor state, SymInt[] shape, float keep_probability) -> Tensor", _redraw_keep_mask, _redraw_form
)
"""The mask that was drawn from a state."""


def _draw(stream: int, kind: str, key: str, shape: list[int], numbers: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    values, start = _stream(stream).draw(kind, key, tuple(map(int, shape)), numbers)
    return torch.from_numpy(values), torch.tensor(divmod(start, _STATE_UNIT), dtype=torch.int64)


def _form_of_draw(stream: int, kind: str, key: str, shape: list[Any], numbers: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(shape, dtype=_dtype_of(kind)), torch.empty([2], dtype=torch.int64)


def _redraw(state: torch.Tensor, kind: str, shape: list[int], numbers: list[float]) -> torch.Tensor:
    high, low = state.tolist()
    sizes = tuple(map(int, shape))
    return torch.from_numpy(DRAWS[kind][0](high * _STATE_UNIT + low, math.prod(sizes), *numbers)[0].reshape(sizes))


def _redraw_value_form(state: torch.Tensor, kind: str, shape: list[Any], numbers: list[float]) -> torch.Tensor:
    return torch.empty(shape, dtype=_dtype_of(kind))


def _dtype_of(kind: str) -> torch.dtype:
    return _TORCH_DTYPES[DRAWS[kind][1]]


_TORCH_DTYPES = {np.float32: torch.float32, np.int32: torch.int32, np.int64: torch.int64, np.float64: torch.float64}

_STATE_UNIT = 1 << 62
"""A state takes two int64 numbers in a Tensor: that of `mt19937` has more than 64 bits after many draws."""

DRAW = define(
    "draw(int stream, str kind, str key, SymInt[] shape, float[] numbers) -> (Tensor, Tensor)", _draw, _form_of_draw,
    (torch.Tag.nondeterministic_seeded,),
)
"""Values of a kind, and the state that they were drawn from."""

REDRAW = define("draw_again(Tensor state, str kind, SymInt[] shape, float[] numbers) -> Tensor", _redraw, _redraw_value_form)
"""The values that were drawn from a state."""

def _draw_order(stream: int, mask: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    order, start = _stream(stream).order(mask, count)
    return torch.from_numpy(order), torch.tensor(divmod(start, _STATE_UNIT), dtype=torch.int64)


def _form_of_order(stream: int, mask: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty([count], dtype=torch.int64), torch.empty([2], dtype=torch.int64)


def _redraw_order(state: torch.Tensor, mask: torch.Tensor, count: int) -> torch.Tensor:
    return torch.from_numpy(distributions.order_of_true(int(state[1]), mask.numpy(), count)[0])


DRAW_ORDER = define(
    "draw_order(int stream, Tensor mask, int count) -> (Tensor, Tensor)", _draw_order, _form_of_order, (torch.Tag.nondeterministic_seeded,),
)
"""Indexes of true elements in random order, and the state that they were drawn from."""

REDRAW_ORDER = define(
    "draw_order_again(Tensor state, Tensor mask, int count) -> Tensor", _redraw_order,
    lambda state, mask, count: torch.empty([count], dtype=torch.int64),
)
"""The indexes that were drawn from a state."""


def _draw_by(
    stream: int, kind: str, key: str, parameters: list[torch.Tensor], shape: list[int], options: list[float],
) -> tuple[torch.Tensor, torch.Tensor]:
    arrays = [parameter.numpy() for parameter in parameters]
    values, start = _stream(stream).draw_by(kind, key, arrays, tuple(map(int, shape)), options)
    return torch.from_numpy(np.ascontiguousarray(values)), _as_pieces(start)


def _form_of_draw_by(
    stream: int, kind: str, key: str, parameters: list[torch.Tensor], shape: list[Any], options: list[float],
) -> tuple[torch.Tensor, torch.Tensor]:
    return _values_of_draw_by(kind, parameters, shape), torch.empty([_PIECES], dtype=torch.int64)


def _values_of_draw_by(kind: str, parameters: list[torch.Tensor], shape: list[Any]) -> torch.Tensor:
    how = PARAMETER_DRAWS[kind]
    dtype = parameters[0].dtype if how.dtype is None else _TORCH_DTYPES[how.dtype]
    return torch.empty(how.form(parameters[0].shape, shape), dtype=dtype)


def _redraw_with_parameters(
    state: torch.Tensor, kind: str, parameters: list[torch.Tensor], shape: list[int], options: list[float],
) -> torch.Tensor:
    start = sum(piece << _PIECE_BITS * index for index, piece in enumerate(state.tolist()))
    values = PARAMETER_DRAWS[kind].draw(start, [parameter.numpy() for parameter in parameters], tuple(map(int, shape)), options)[0]
    return torch.from_numpy(np.ascontiguousarray(values))


def _as_pieces(state: int) -> torch.Tensor:
    """A state of up to 310 bits as int64 numbers, the lowest bits first."""
    return torch.tensor([state >> _PIECE_BITS * index & (1 << _PIECE_BITS) - 1 for index in range(_PIECES)], dtype=torch.int64)


_PIECE_BITS, _PIECES = 62, 5

DRAW_BY = define(
    "draw_by(int stream, str kind, str key, Tensor[] parameters, SymInt[] shape, float[] options) -> (Tensor, Tensor)", _draw_by,
    _form_of_draw_by, (torch.Tag.nondeterministic_seeded,),
)
"""Values of a kind with parameters in Tensors, and the state that they were drawn from."""

REDRAW_WITH_PARAMETERS = define(
    "draw_by_again(Tensor state, str kind, Tensor[] parameters, SymInt[] shape, float[] options) -> Tensor", _redraw_with_parameters,
    lambda state, kind, parameters, shape, options: _values_of_draw_by(kind, parameters, shape),
)
"""The values that were drawn from a state."""

NAMING_STREAMS = frozenset({KEEP_MASK, DRAW, DRAW_ORDER, DRAW_BY})
"""The operators whose first argument is the number of a stream."""

MOVABLE = frozenset({KEEP_MASK, REDRAW_KEEP_MASK, DRAW, REDRAW, DRAW_ORDER, REDRAW_ORDER, DRAW_BY, REDRAW_WITH_PARAMETERS})
"""The operators across which other operators of a graph may move."""


def drawn(stream: OperatorStream, kind: str, shape: Sequence[int], *numbers: float, key: str = "") -> torch.Tensor:
    """Values of a kind in `DRAWS` on the CPU, with the parameters of its distribution.

    A primitive has a generator for each `shape` and `key`.
    """
    if any(length < 0 for length in shape):
        torch.empty(tuple(shape), device="meta")          # torch's error, which messages of operators are made of
    around = frame()
    if around is None:
        return torch.from_numpy(stream.draw(kind, key, tuple(map(int, shape)), list(numbers))[0])
    around.keep_alive(stream)
    values: torch.Tensor = around.draw(
        lambda: DRAW(stream.number, kind, key, shape, numbers), lambda state: REDRAW(state, kind, shape, numbers),
    )[0]
    return values


def order_of_true(stream: OperatorStream, mask: torch.Tensor, count: int) -> torch.Tensor:
    """Return `count` flat indexes (int64) of true elements of `mask`, a CPU tensor, in random order; -1 if there are fewer."""
    around = frame()
    if around is None:
        return torch.from_numpy(stream.order(mask, count)[0])
    around.keep_alive(stream)
    order: torch.Tensor = around.draw(
        lambda: DRAW_ORDER(stream.number, mask, count), lambda state: REDRAW_ORDER(state, mask, count),
    )[0]
    return order


def drawn_by(
    stream: OperatorStream, kind: str, parameters: Sequence[torch.Tensor], shape: Sequence[int], *options: float, key: str = "",
) -> torch.Tensor:
    """Values of a kind in `PARAMETER_DRAWS` on the CPU for parameters in CPU Tensors that need no gradient."""
    around, tensors = frame(), list(parameters)
    if around is None:
        arrays = [tensor.numpy() for tensor in tensors]
        values = stream.draw_by(kind, key, arrays, tuple(map(int, shape)), list(options))[0]
        return torch.from_numpy(np.ascontiguousarray(values))
    around.keep_alive(stream)
    values_in_graph: torch.Tensor = around.draw(
        lambda: DRAW_BY(stream.number, kind, key, tensors, shape, list(options)),
        lambda state: REDRAW_WITH_PARAMETERS(state, kind, tensors, shape, list(options)),
    )[0]
    return values_in_graph


def _expected_counts(classes: torch.Tensor, tries: torch.Tensor, count: int, limit: int, is_log: bool) -> torch.Tensor:
    return torch.from_numpy(expected_counts_of(classes.numpy(), int(tries), count, limit, is_log))


expected_counts = define(
    "expected_counts(Tensor classes, Tensor tries, int count, int limit, bool is_log) -> Tensor", _expected_counts,
    lambda classes, tries, count, limit, is_log: classes.new_empty(classes.shape, dtype=torch.float32),
)
"""How often each class is expected among `count` classes below `limit` that took so many tries, float32."""


def _philox_fractions(seed: int, offset: int, shape: list[int]) -> torch.Tensor:
    sizes = tuple(map(int, shape))
    return torch.from_numpy(distributions.philox_fractions(seed, offset, math.prod(sizes)).reshape(sizes))


def _picked(weights: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    values = weights.detach().numpy()
    if values.size and not (values.min() >= 0 and np.isfinite(values).all()):
        raise ValueError("weights: expected finite numbers from 0 on.")
    columns = values.shape[-1]
    rows, drawn = values.reshape(-1, columns), numbers.numpy()
    return torch.from_numpy(distributions.picked(rows, drawn.reshape(len(rows), -1)).reshape(drawn.shape))


def _mersenne_order(count: int, seed: int) -> torch.Tensor:
    return torch.from_numpy(distributions.mt_order(seed % 2**32, count)[0])


philox_fractions = define(
    "philox_fractions(int seed, int offset, SymInt[] shape) -> Tensor", _philox_fractions, lambda seed, offset, shape: torch.empty(shape),
)
"""Numbers from 0 to 1 (excluded), float32, that the two seeds decide."""

picked = define(
    "picked(Tensor weights, Tensor numbers) -> Tensor", _picked,
    lambda weights, numbers: numbers.new_empty(numbers.shape, dtype=torch.int64),
)
"""For each row of numbers from 0 to 1 the indexes of the weights into whose share they fall. Raises ValueError for negative weights."""

mersenne_order = define(
    "mersenne_order(SymInt count, int seed) -> Tensor", _mersenne_order, lambda count, seed: torch.empty([count], dtype=torch.int64),
)
"""The ints below `count` in the order that the seed decides, int64."""


def dropped(x: torch.Tensor, keep_probability: float, stream: OperatorStream) -> tuple[torch.Tensor, torch.Tensor]:
    """`x` on the CPU with elements set to 0, the others divided by the probability as MindSpore does it, and the mask (bool)."""
    around, shape = frame(), x.shape
    if around is None:                              # the dispatcher would take most of the time of a small mask
        mask = torch.from_numpy(stream.keep(tuple(shape), str(x.dtype), keep_probability)[0])
    else:
        around.keep_alive(stream)
        mask, _ = around.draw(
            lambda: KEEP_MASK(stream.number, shape, keep_probability, x.dtype),
            lambda state: REDRAW_KEEP_MASK(state, shape, keep_probability),
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
        return layers, dict(random_state.kernel_seeds)


def restore(states: Snapshot) -> None:
    """Continue from a `snapshot`."""
    layers, counts = states
    with _lock:
        for number, stream in list(_streams.items()):
            stream.states = dict(layers.get(number, {}))
        random_state.kernel_seeds.clear()
        random_state.kernel_seeds.update(counts)


@contextmanager
def separate_generators() -> Iterator[None]:
    """Run a block that leaves no mark in torch's generators and in the streams of operators: code that is tried or measured."""
    states = snapshot()
    try:
        with generators.unchanged():
            yield
    finally:
        restore(states)


def as_json() -> list[Any]:
    """The `snapshot` as JSON."""
    layers, counts = snapshot()
    states = [
        [number, [[list(shape), dtype, state] for (shape, dtype), state in states_of_layer.items()]]
        for number, states_of_layer in layers.items()
    ]
    return [states, [[name, seed, count] for (name, seed), count in counts.items()]]


def restore_json(value: Any) -> None:
    """Continue from a state of `as_json`; None is the state before any draw. Raises TypeError or ValueError for anything else."""
    states, counts = value or ([], [])
    layers = {int(number): {(tuple(map(int, shape)), str(dtype)): int(state) for shape, dtype, state in entry} for number, entry in states}
    restore((layers, {(str(name), int(seed)): int(count) for name, seed, count in counts}))
