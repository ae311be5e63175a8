"""Weights that rounding alone changes: some optimizers turn a gradient that is only a rounding error into a full step."""
from __future__ import annotations

from collections.abc import Iterable

import torch

NOISE = 1e-6
"""The relative change of the first weights that stands for rounding, about ten times as large."""
MOST = 0.1
"""The largest share of weights that may differ by rounding."""


def add_noise(parameters: Iterable[torch.Tensor], seed: int) -> None:
    """Change weights by about 1e-6 of their values."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            if parameter.is_floating_point():
                noise = torch.rand(parameter.shape, generator=generator, dtype=torch.float64) * 2 - 1
                parameter.mul_((1 + NOISE * noise).to(parameter))


def compare_stable(
    expected: list[torch.Tensor], actual: list[torch.Tensor], noisy: list[list[torch.Tensor]], tolerance: float,
) -> tuple[float, float]:
    """Return the largest difference of the weights without those that rounding explains, and their share of all.

    Rounding explains differences above the tolerance if the noise causes as many of them, and as large ones in each tensor.
    """
    largest, count, total, most = 0.0, 0, 0, 0
    for index, (first, second) in enumerate(zip(expected, actual)):
        if first.numel() == 0:
            continue
        a, b = first.double(), second.double()
        scale = max(1e-6, float(a.abs().max()))
        changes = torch.stack([(run[index].double() - a).abs() for run in noisy])
        gap = (a - b).abs().nan_to_num(nan=float("inf"))
        if float(gap.max()) > 3 * float(changes.max()):
            largest = max(largest, float(gap.max()) / scale)
        is_large = gap > tolerance * scale
        largest = max(largest, float(gap[~is_large].max()) / scale if not is_large.all() else 0.0)
        count, total = count + int(is_large.sum()), total + a.numel()
        most += int((changes > tolerance * scale).flatten(1).sum(1).max())
    return (largest if count <= min(most, MOST * total) else float("inf")), count / max(total, 1)
