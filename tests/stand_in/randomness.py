"""The random numbers of the device: generators of their own, whose numbers the host's kernels draw."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from stand_in.memory import NAME

_torch_generator = torch.Generator
devices = 2
generators = [_torch_generator() for _ in range(devices)]
"""The generator that operators of each device use where none is named."""


class _KindOfGenerator(type(torch.Generator)):
    """Makes torch's generators instances of the class below."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _torch_generator)


class Generator(torch.Generator, metaclass=_KindOfGenerator):
    """torch's generator; one for the device is one of the host, whose numbers the device's operators draw."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        kind = torch.device(device)
        return super().__new__(cls, torch.device("cpu") if kind.type == NAME else kind)


@contextmanager
def drawing(index: int) -> Iterator[None]:
    """A block in which the host's kernels draw from the generator of a device."""
    state = torch.default_generator.get_state()
    torch.default_generator.set_state(generators[index].get_state())
    try:
        yield
    finally:
        generators[index].set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(state)
