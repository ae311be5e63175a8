"""Random numbers for an operator with a seed: each object continues where its last call ended."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import short
from torchspore.engine.random.operator_streams import OperatorStream


class Stream:
    """Return the stream of a pair of seeds; two zeros mean torch's global stream, which `set_seed` starts."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        for name, value in (("seed", seed), ("seed2", seed2)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name}={short(value)}: expected an int from 0 on, got {type(value).__name__}.")
            if value < 0:
                raise ValueError(f"{name}={value}: expected an int from 0 on.")
        self.seeds = seed, seed2
        self._generators: dict[torch.device, torch.Generator] = {}
        self.operator = OperatorStream(self.seeds) if any(self.seeds) else None
        """The stream of MindSpore's kernels on the CPU; None where the seeds do not decide."""

    def on(self, device: torch.device) -> torch.Generator | None:
        """The generator for tensors on `device`, None for the global one."""
        if not any(self.seeds):
            return None
        generator = self._generators.get(device)
        if generator is None:
            seed = (self.seeds[0] * 0x9E3779B97F4A7C15 + self.seeds[1]) % 2**63
            generator = self._generators[device] = torch.Generator(device).manual_seed(seed)
        return generator

    def __repr__(self) -> str:
        return f"{self.seeds[0]}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Stream:
        return Stream(*self.seeds)

    def __reduce__(self) -> Any:
        return Stream, self.seeds


def stream(seed: Any, seed2: Any = 0) -> Stream:
    """The stream of a primitive's constructor as it is, a new one for seeds; None counts as 0."""
    return seed if isinstance(seed, Stream) else Stream(seed or 0, seed2 or 0)
