"""Initial values that are described by a distribution and a seed: any part of them can be drawn without the rest, bit for bit the same."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.engine.devices import device
from torchspore.engine.random import philox
from torchspore.engine.torch_internals.torch_private import without_modes

_FILLS: dict[str, Callable[..., None]] = {
    "uniform": philox.fill_uniform, "normal": philox.fill_normal, "truncated": philox.fill_truncated_normal,
}
_BLOCK = 1 << 20
"""The largest number of values that are drawn at a time where a part is not contiguous, unless one row has more."""


@dataclass(frozen=True)
class InitialValues:
    """The initial values of a Tensor of real numbers: `kind` is a distribution of `philox`, or 'constant'.

    Equal descriptions give equal values on every device, so that processes compare their `repr`.
    """

    kind: str
    seed: int
    numbers: tuple[float, ...]
    """The arguments of the distribution, or the constant."""
    shape: tuple[int, ...]
    dtype: torch.dtype

    def draw(self, part: Sequence[slice] | None = None) -> torch.Tensor:
        """Return the values, or a part of them given by one slice with bounds for each axis, on the device of the program."""
        slices = [slice(0, size) for size in self.shape] if part is None else list(part)
        with without_modes(), torch.no_grad():
            return self._constant(slices) if self.kind == "constant" else self._drawn(slices)

    def _constant(self, slices: list[slice]) -> torch.Tensor:
        sizes = [item.stop - item.start for item in slices]
        if self.numbers[0] == 0:
            return torch.zeros(sizes, dtype=self.dtype, device=device.current())
        return torch.full(sizes, self.numbers[0], dtype=self.dtype, device=device.current())

    def _drawn(self, slices: list[slice]) -> torch.Tensor:
        first, rest = slices[0], slices[1:]
        row_size = math.prod(self.shape[1:])
        out = torch.empty([item.stop - item.start for item in slices], dtype=self.dtype, device="cpu")
        is_contiguous = all((item.start, item.stop) == (0, size) for item, size in zip(rest, self.shape[1:]))
        if is_contiguous and self.dtype is torch.float32:
            self._fill(out.numpy(), first.start * row_size)
            return out.to(device.current())
        index = (slice(None), *rest)
        step = max(1, _BLOCK // max(1, row_size))
        for start in range(first.start, first.stop, step):
            stop = min(start + step, first.stop)
            rows = np.empty((stop - start, *self.shape[1:]), np.float32)
            self._fill(rows, start * row_size)
            out[start - first.start:stop - first.start].copy_(torch.from_numpy(rows[index]))
        return out.to(device.current())

    def _fill(self, array: np.ndarray[Any, Any], offset: int) -> None:
        _FILLS[self.kind](array, self.seed, *self.numbers, offset=offset)
