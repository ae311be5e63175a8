"""Generators of random numbers, and the state of the one that operators draw from where none is given."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.engine.core import generators, random_state
from torchspore.engine.core.device_facts import current_target as device_name
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.tensor import Tensor
from torchspore.names import missing

__all__ = ["Generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
LARGEST = 2**64 - 1


class Generator:
    """A stream of random numbers with a seed and a state of its own, for operators that take a `generator`."""

    def __init__(self) -> None:
        self._stream = generators.new()
        self._numbers()

    def _step(self, step: Any) -> tuple[Tensor, Tensor]:
        """The seed and the offset of now, int64; the offset grows by `step`. In graphs too, which read both from Parameters."""
        from torchspore.mindspore import ops

        seed, offset = self._numbers()
        given = seed + 0, offset + 0
        ops.assign_add(offset, step)
        return given

    def _numbers(self) -> tuple[Any, Any]:
        """The seed and the offset, as Parameters."""
        if "_kept" not in self.__dict__:
            from torchspore.mindspore.common.parameter import Parameter

            self._kept = tuple(Parameter(Tensor(0, mstype.int64), name=name, requires_grad=False) for name in ("seed", "offset"))
            self._set_numbers(0)
        return self._kept

    def _set_numbers(self, offset: int) -> None:
        if "_kept" in self.__dict__:
            seed = self.initial_seed()
            for kept, number in zip(self._kept, (seed - 2**64 if seed >= 2**63 else seed, offset)):
                kept.set_data(Tensor(number, mstype.int64))

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream from `seed`, an int from -2**63 to 2**64 - 1; gives the generator back. Raises TypeError and ValueError."""
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(message(f"manual_seed({short(seed)})", f"an int, got {type(seed).__name__}"))
        if not -(2**63) <= seed <= LARGEST:
            raise ValueError(message(f"manual_seed({seed})", "an int from -2**63 to 2**64 - 1"))
        random_state.starts_anew()
        self._stream.manual_seed(seed)
        self._set_numbers(0)
        return self

    def initial_seed(self) -> int:
        """The seed that the stream was started from."""
        return int(self._stream.initial_seed())

    def seed(self) -> int:
        """Starts the stream from a seed of the operating system's, and gives it."""
        random_state.starts_anew()
        started = int(self._stream.seed())
        self._set_numbers(0)
        return started

    def get_state(self) -> Tensor:
        """The state of the stream as a Tensor of bytes, for `set_state`."""
        offset = self._numbers()[1].asnumpy().reshape(1).view(np.uint8)
        return Tensor.from_numpy(np.concatenate([*map(generators.state, self._streams()), offset]))

    def set_state(self, state: Tensor) -> None:
        """Goes on from a state that `get_state` gave. Raises TypeError and ValueError for anything else."""
        if not isinstance(state, Tensor):
            raise TypeError(message(f"set_state({short(state)})", f"a Tensor that get_state gave, got {type(state).__name__}"))
        streams = self._streams()
        ends = np.cumsum([generators.state(stream).size for stream in streams])
        values = state.asnumpy()
        refusal = ValueError(message(f"set_state of shape {state.shape} and dtype {state.dtype}", "a Tensor that get_state gave"
                                     + (f" on {device_name()}" if len(streams) > 1 else "")))
        if values.dtype != np.uint8 or values.shape != (ends[-1] + 8,):
            raise refusal
        *parts, offset = np.split(values, ends)
        try:
            for stream, part in zip(streams, parts):
                generators.restore(stream, part)
        except (RuntimeError, TypeError):
            raise refusal from None
        self._numbers()
        self._set_numbers(int(offset.copy().view(np.int64)[0]))

    def _streams(self) -> list[Any]:
        """The streams whose states are the generator's."""
        return [self._stream]


class _Default(Generator):
    """The generator that `set_seed` starts."""

    def __init__(self) -> None:
        self._stream = generators.own()

    def _streams(self) -> list[Any]:
        """The host's stream, and that of the accelerator that operators run on."""
        return generators.streams_of_operators()

    def manual_seed(self, seed: int) -> Generator:
        """Starts the streams of all devices from `seed`."""
        super().manual_seed(seed)
        generators.seed_devices(seed)
        return self


default_generator = _Default()


def manual_seed(seed: int) -> Generator:
    """Starts the stream that operators draw from; gives its generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Starts the stream that operators draw from by a seed of the operating system's, and gives it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the stream that operators draw from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the stream that operators draw from, as a Tensor of bytes: on an accelerator that of the host and of the device."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Continues the stream that operators draw from at a state that `get_rng_state` gave on the same kind of device.

    Raises TypeError and ValueError for anything else.
    """
    default_generator.set_state(state)


__getattr__ = missing(__name__)
