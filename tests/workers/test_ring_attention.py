"""Ring attention over real processes: the numbers of one process."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import ring_attention


def split_results(strategy: Any, mode: dict[str, Any]) -> list[np.ndarray]:
    from mindspore.communication import init

    init()
    return ring_attention.results("BSH", strategy, False, **mode)


def part(t: np.ndarray, shape: tuple[int, ...], rank: int, columns: int) -> np.ndarray:
    """The part of a value that a rank of a grid (batch, sequence) holds, if it does not hold all of it."""
    if t.shape == shape:
        return t
    at, sequence = divmod(rank, columns), 1 if t.ndim == 3 else 2
    rows, positions = (slice(at[i] * shape[axis], (at[i] + 1) * shape[axis]) for i, axis in enumerate((0, sequence)))
    return t[rows, positions] if sequence == 1 else t[rows, :, positions]


@pytest.mark.parametrize(("count", "strategy"), [(2, ((1, 2, 1),) * 3), pytest.param(4, ((2, 2, 1),) * 3, marks=pytest.mark.slow)])
def test_processes_compute_what_one_computes(workers: Any, count: int, strategy: Any) -> None:
    alone = ring_attention.results("BSH", None, False, sparse_mode=2)
    for rank, values in enumerate(workers(count, split_results, strategy, {"sparse_mode": 2})):
        for value, expected in zip(values, alone, strict=True):
            np.testing.assert_allclose(value, part(expected, value.shape, rank, 2), rtol=2e-5, atol=2e-5)
