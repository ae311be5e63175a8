"""MindSpore's own streams of random numbers: one torch generator for each device, apart from the generators that torch's functions use.

Operators and compiled code can only draw from torch's global generators. While one of them runs, `lent` puts the states of MindSpore's
generators there, and puts the program's states back afterwards. So `torch.rand` and `torch.manual_seed` in a program change no number of
MindSpore's, and the other way round.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch

from torchspore.engine.devices import device as placing
from torchspore.engine.devices import gpu_kinds
from torchspore.engine.tensors import tensor as engine

Body = TypeVar("Body", bound=Callable[..., Any])

_HOST = torch.device("cpu")
_lock = threading.RLock()
_streams: dict[torch.device, torch.Generator] = {}


class _Seed:
    """The seed of the generators."""

    def __init__(self) -> None:
        self.value: int | None = None


_SEED = _Seed()
_traced = threading.local()
_lent: dict[torch.device, torch.Tensor] = {}
"""The devices whose global generator holds MindSpore's state now, with the state of the program's stream there."""


def new() -> torch.Generator:
    """Return a separate stream on the host."""
    return torch.Generator()


def own(device: torch.device = _HOST) -> torch.Generator:
    """MindSpore's stream on a device."""
    device = _numbered(device)
    generator = _streams.get(device)
    if generator is None:
        with _lock:
            generator = torch.Generator(device)
            if _SEED.value is None:
                generator.seed()
            else:
                generator.manual_seed(_SEED.value)
            generator = _streams.setdefault(device, generator)
    return generator


def _numbered(device: torch.device) -> torch.device:
    if device.type == "cpu":
        return _HOST
    return device if device.index is not None else torch.device(device.type, gpu_kinds.module_of(device).current_device())


def _global(device: torch.device) -> torch.Generator:
    """The generator that torch's functions use on a device."""
    if device.type == "cpu":
        return torch.default_generator
    generator: torch.Generator = gpu_kinds.module_of(device).default_generators[device.index]
    return generator


def unchanged() -> Any:
    """A block that leaves torch's generators of the host and of the current device as they are.

    Without devices, `fork_rng` begins to use all accelerators of the machine, and warns.
    """
    device = placing.current()
    if device.type == "cpu":
        return torch.random.fork_rng([])
    return torch.random.fork_rng([device.index or 0], device_type=device.type)


def seed_devices(seed: int) -> None:
    """Start the streams of all devices from `seed`."""
    with _lock:
        _SEED.value = seed if seed < 2**64 else seed % 2**63
        own()
        for device, generator in _streams.items():
            (_global(device) if device in _lent else generator).manual_seed(_SEED.value)


@contextmanager
def lent(devices: Iterable[torch.device] | None = None) -> Iterator[None]:
    """Let torch's functions draw from MindSpore's streams inside the block.

    These are the streams of `devices`, by default of the host and the current device. Other threads wait. In a capture nothing is drawn,
    and nothing happens here.
    """
    around = engine.frame()
    while around is not None:
        if around.traces:
            _traced.depth = getattr(_traced, "depth", 0) + 1
            try:
                yield
            finally:
                _traced.depth -= 1
            return
        around = around.outer
    chosen = {_HOST, placing.current()} if devices is None else set(devices)
    with _lock:
        borrowed = [device for device in map(_numbered, chosen) if device not in _lent]
        for device in borrowed:
            generator = _global(device)
            _lent[device] = generator.get_state()
            generator.set_state(own(device).get_state())
        try:
            yield
        finally:
            for device in borrowed:
                generator = _global(device)
                own(device).set_state(generator.get_state())
                generator.set_state(_lent.pop(device))


def states_of_torch(kind: str) -> list[tuple[torch.Generator, torch.Tensor]]:
    """Return torch's own generators of the host and of the current device of a kind, with their states."""
    devices = {_HOST, _numbered(torch.device(kind))}
    return [(generator, generator.get_state()) for generator in map(_global, devices)]


@contextmanager
def torch_continuing_from(states: list[tuple[torch.Generator, torch.Tensor]]) -> Iterator[None]:
    """Let torch's own generators continue from these states inside the block, and as before after it."""
    before = [(generator, generator.get_state()) for generator, _ in states]
    for generator, state in states:
        generator.set_state(state)
    try:
        yield
    finally:
        for generator, state in before:
            generator.set_state(state)


def is_lent_in_trace() -> bool:
    """Return whether this thread traces the inside of a `lent` block: an operator of MindSpore draws, and not the program by torch."""
    return getattr(_traced, "depth", 0) > 0


def drawing(body: Body) -> Body:
    """Declare that `body` draws random numbers by torch's functions: they come from MindSpore's streams."""

    @functools.wraps(body)
    def drawn(*arguments: Any, **keywords: Any) -> Any:
        with lent():
            return body(*arguments, **keywords)

    return drawn  # type: ignore[return-value]


def dropout(values: torch.Tensor, probability: float) -> torch.Tensor:
    """PyTorch's dropout with numbers of MindSpore's stream."""
    with lent():
        return torch.nn.functional.dropout(values, probability, True)


def of_device(device: torch.device) -> torch.Generator:
    """The generator that holds the state of MindSpore's stream on a device now."""
    device = _numbered(device)
    return _global(device) if device in _lent else own(device)


def streams_of_operators() -> list[torch.Generator]:
    """MindSpore's stream on the host and, where operators run on an accelerator, the one there."""
    device = placing.current()
    return [of_device(_HOST)] if device.type == "cpu" else [of_device(_HOST), of_device(device)]


def accelerators() -> list[torch.device]:
    """The accelerators on which MindSpore's stream has begun, and the one that operators run on."""
    devices = {device for device in (*_streams, placing.current()) if device.type != "cpu"}
    return sorted(devices, key=lambda device: device.index or 0)


def current_state(kind: str = "cpu") -> torch.Tensor:
    """The state of MindSpore's stream on the current device of a kind, as bytes."""
    return of_device(torch.device(kind)).get_state()


def go_on_from(state: torch.Tensor, kind: str = "cpu") -> None:
    """Continue MindSpore's stream on the current device of a kind from a state that `current_state` gave."""
    of_device(torch.device(kind)).set_state(state)


def state(stream: torch.Generator) -> np.ndarray:
    """The state as bytes."""
    return stream.get_state().numpy()


def restore(stream: torch.Generator, state: np.ndarray) -> None:
    """Continue from a state. Raises RuntimeError or TypeError for an invalid state."""
    stream.set_state(torch.from_numpy(np.ascontiguousarray(state)))


def stream_of(generator: Any) -> torch.Generator | None:
    """Return the stream of an operator's Generator argument; None without one."""
    return None if generator is None else generator._stream
