"""One seed starts every stream of random numbers."""
from __future__ import annotations

import random
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer


def test_the_seed_is_numpys_too() -> None:
    ms.set_seed(5)
    first = np.random.rand(3)
    ms.set_seed(5)
    assert (np.random.rand(3) == first).all() and ms.get_seed() == 5


def test_two_initializers_after_one_seed_differ_and_the_same_seed_repeats_them() -> None:
    def drawn():
        ms.set_seed(7)
        return [initializer(Normal(), [100], ms.float32).asnumpy().tobytes() for _ in range(2)]

    first = drawn()
    assert first[0] != first[1] and first == drawn()


def test_layers_and_operators_repeat_their_bits(mode: int) -> None:
    def drawn():
        ms.set_seed(9)
        net = nn.SequentialCell(nn.Dense(8, 8), nn.Dropout(p=0.5)).set_train()
        x = Tensor(np.ones((4, 8), np.float32))
        return [net(x).asnumpy().tobytes(), net(x).asnumpy().tobytes(), ops.rand(3).asnumpy().tobytes(), ops.randn(3).asnumpy().tobytes()]

    first = drawn()
    assert first == drawn() and first[0] != first[1]


def test_set_seed_also_seeds_python() -> None:
    import random

    ms.set_seed(5)
    first = random.random()
    ms.set_seed(5)
    assert random.random() == first


def test_the_later_of_two_seeds_holds_for_datasets() -> None:
    ms.set_seed(1)
    ms.dataset.config.set_seed(2)
    assert ms.dataset.config.get_seed() == 2
    ms.set_seed(1)
    assert ms.dataset.config.get_seed() == 1


class Draws(nn.Cell):
    """Starts one of the streams, then draws from one."""

    def construct(self, x: Any, which: int) -> Any:
        if which == 0:
            ms.set_seed(3)
        if which == 1:
            ms.manual_seed(3)
        if which == 2:
            np.random.seed(3)
        if which == 3:
            random.seed(3)
        return x + ops.rand(2)


@pytest.mark.parametrize("which", range(4))
def test_a_seed_that_is_set_in_a_call_counts_in_both_modes(which: int) -> None:

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(7)
        net = Draws()
        results.append([net(ms.Tensor([x, 2.0]), which).asnumpy().tolist() for x in range(4)] + [np.random.rand(), random.random()])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert results[0] == results[1]
