"""Streams of random numbers as objects: torch's generators, with their states as arrays."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch


def new() -> torch.Generator:
    """A stream of its own on the host."""
    return torch.Generator()


def default() -> torch.Generator:
    """The stream that operators draw from on the host."""
    return torch.default_generator


def seed_devices(seed: int) -> None:
    """Starts the streams that operators draw from on accelerators too."""
    torch.manual_seed(seed)


def state(stream: torch.Generator) -> np.ndarray:
    """The state as bytes."""
    return stream.get_state().numpy()


def restore(stream: torch.Generator, kept: np.ndarray) -> None:
    """Goes on from a state. Raises RuntimeError or TypeError for what is none."""
    stream.set_state(torch.from_numpy(np.ascontiguousarray(kept)))


def stream_of(generator: Any) -> torch.Generator | None:
    """The stream of a Generator that an operator was given; None where it was given none."""
    return None if generator is None else generator._stream
