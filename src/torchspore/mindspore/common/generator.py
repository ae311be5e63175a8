"""Random number generators, and the state of the default generator of operators."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.engine.devices.device_facts import current_target as device_name
from torchspore.engine.random import generators, random_state
from torchspore.engine.tensors.tensor import raw, write
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.tensor import Tensor
from torchspore.public_names import missing

__all__ = ["Generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
LARGEST = 2**64 - 1


class Generator:
    """A stream of random numbers with a separate seed and state, for operators with a `generator` argument."""

    def __init__(self) -> None:
        self._stream = generators.new()
        self._numbers()

    def _step(self, step: Any) -> tuple[Tensor, Tensor]:
        """Return the current seed and offset, int64, and increase the offset by `step`. Graphs read both from Parameters."""
        seed, offset = self._numbers()
        seed_and_offset = seed + 0, offset + 0
        write(offset, raw(offset) + (raw(step) if isinstance(step, Tensor) else step))
        return seed_and_offset

    def _numbers(self) -> tuple[Any, Any]:
        """Return the seed and the offset as Parameters."""
        if "_seed_and_offset" not in self.__dict__:
            from torchspore.mindspore.common.parameter import Parameter

            self._seed_and_offset = tuple(Parameter(Tensor(0, mstype.int64), name=name, requires_grad=False) for name in ("seed", "offset"))
            self._set_numbers(0)
        return self._seed_and_offset

    def _set_numbers(self, offset: int) -> None:
        if "_seed_and_offset" in self.__dict__:
            seed = self.initial_seed()
            for parameter, number in zip(self._seed_and_offset, (seed - 2**64 if seed >= 2**63 else seed, offset)):
                parameter.set_data(Tensor(number, mstype.int64))

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream from `seed`, an int from -2**63 to 2**64 - 1; return the generator. Raises TypeError and ValueError."""
        if not is_int(seed):
            raise TypeError(message(f"manual_seed({short(seed)})", f"an int, got {type(seed).__name__}"))
        if not -(2**63) <= seed <= LARGEST:
            raise ValueError(message(f"manual_seed({seed})", "an int from -2**63 to 2**64 - 1"))
        random_state.starts_anew()
        self._stream.manual_seed(seed)
        self._set_numbers(0)
        return self

    def initial_seed(self) -> int:
        """Return the initial seed of the stream."""
        return int(self._stream.initial_seed())

    def seed(self) -> int:
        """Start the stream from a seed of the operating system, and return it."""
        random_state.starts_anew()
        started = int(self._stream.seed())
        self._set_numbers(0)
        return started

    def get_state(self) -> Tensor:
        """Return the state of the stream as a Tensor of bytes, for `set_state`."""
        offset = self._numbers()[1].asnumpy().reshape(1).view(np.uint8)
        return Tensor.from_numpy(np.concatenate([*map(generators.state, self._streams()), offset]))

    def set_state(self, state: Tensor) -> None:
        """Continue from a state of `get_state`. Raises TypeError and ValueError for other values."""
        if not isinstance(state, Tensor):
            raise TypeError(message(f"set_state({short(state)})", f"a Tensor from get_state, got {type(state).__name__}"))
        streams = self._streams()
        ends = np.cumsum([generators.state(stream).size for stream in streams])
        values = state.asnumpy()
        refusal = ValueError(message(f"set_state of shape {state.shape} and dtype {state.dtype}", "a Tensor from get_state"
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
        """Return the streams whose states make up the generator's state."""
        return [self._stream]


class _Default(Generator):
    """Return the generator that `set_seed` starts."""

    def __init__(self) -> None:
        self._stream = generators.own()

    def _streams(self) -> list[Any]:
        """Return the host's stream, and that of the accelerator on which operators run."""
        return generators.streams_of_operators()

    def manual_seed(self, seed: int) -> Generator:
        """Start the streams of all devices from `seed`."""
        super().manual_seed(seed)
        generators.seed_devices(seed)
        return self


default_generator = _Default()


def manual_seed(seed: int) -> Generator:
    """Start the default stream of operators; return its generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default stream of operators from a seed of the operating system, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default stream of operators."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default stream as a Tensor of bytes: with an accelerator, those of the host and of the device."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Continue the default stream of operators from a state of `get_rng_state` on the same kind of device.

    Raises TypeError and ValueError for other values.
    """
    default_generator.set_state(state)


__getattr__ = missing(__name__)
