"""Idioms of programs over real processes: in split graphs and by parts of the batch, beside one process."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import split_idioms
from support.patches import replace
from support.split_idioms import IDIOMS, TRAINED, Cut

NARROW = {"half": 2e-3, "brain": 2e-2}
QUICK = ("recurrent",)


def _split(names: tuple[str, ...], cut: Cut) -> list[list[np.ndarray]]:
    import mindspore as ms
    from mindspore.communication import init

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    return [_arrays(IDIOMS[name](cut)) for name in names]


def _arrays(results: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array(value) for value in results]


def _by_parts(names: tuple[str, ...], mode: int) -> list[list[np.ndarray]]:
    import mindspore as ms
    from mindspore.communication import get_rank, init

    init()
    ms.set_context(mode=mode)
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    half = split_idioms.ROWS // 2
    rows = slice(get_rank() * half, (get_rank() + 1) * half)
    plain = split_idioms.stepped

    def stepped(step: Any, net: Any, x: Any = split_idioms.X, y: Any = split_idioms.Y, steps: int = 3) -> Any:
        return plain(step, net, x[rows], y[rows], steps)

    replace(split_idioms, stepped=stepped)
    return [_arrays(IDIOMS[name](None)) for name in names]


def _alone(names: tuple[str, ...], mode: int) -> list[list[np.ndarray]]:
    import mindspore as ms

    ms.set_context(mode=mode)
    return [_arrays(IDIOMS[name](None)) for name in names]


def alike(name: str, first: list[np.ndarray], other: list[np.ndarray], rank: int = 0) -> None:
    assert len(first) == len(other)
    for a, b in zip(first, other):
        if b.shape != a.shape:                             # the gradient of an input, of which each rank has its own rows
            a = a[rank * len(b):(rank + 1) * len(b)]
        scale = max(1e-3, float(np.abs(a).max()))
        np.testing.assert_allclose(b / scale, a / scale, atol=NARROW.get(name, 2e-6), rtol=0, err_msg=name)


SLOW = tuple(name for name in IDIOMS if name not in QUICK)


@pytest.mark.parametrize("names", [QUICK, *(pytest.param((name,), marks=pytest.mark.slow) for name in SLOW)], ids=" ".join)
def test_graphs_that_are_split(names: tuple[str, ...], workers: Any) -> None:
    alone, = workers(1, _alone, names, 0)
    for rank, result in enumerate(workers(2, _split, names, (2, 1))):
        for name, expected, other in zip(names, alone, result):
            alike(name, expected, other, rank)


@pytest.mark.parametrize("mode", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "names", [("own_step", "hooks"), *(pytest.param((name,), marks=pytest.mark.slow) for name in TRAINED)], ids=" ".join)
def test_parts_of_the_batch(names: tuple[str, ...], mode: int, workers: Any) -> None:
    alone, = workers(1, _alone, names, mode)
    results = workers(2, _by_parts, names, mode)
    for at, name in enumerate(names):
        losses = np.mean([result[at][0] for result in results], 0)
        for each in results:
            alike(name, alone[at], [losses, *each[at][1:]])
