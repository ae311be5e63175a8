"""Calls of many lengths and with many numbers, in split graphs: each has numbers of its own."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops


class Net(nn.Cell):
    """What it gives hangs on the length, and on a Python number."""

    def construct(self, x: Any, number: float = 1.0) -> Any:
        return ops.tanh(x).sum() * x.shape[1] * number, ops.ones((x.shape[1],), ms.float32)


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")


@pytest.mark.filterwarnings("ignore:.*Net is called with something that keeps changing")
@pytest.mark.parametrize("declares", [False, True])
def test_each_length_has_separate_numbers(declares: bool) -> None:
    net = Net()
    if declares:
        net.set_inputs(Tensor(shape=[2, None], dtype=ms.float32))
    for length in range(3, 15):
        total, ones = net(Tensor(np.ones((2, length), np.float32)))
        np.testing.assert_allclose(total.asnumpy(), np.tanh(1.0) * 2 * length * length, rtol=1e-6)
        assert ones.shape == (length,)


def test_each_number_counts() -> None:
    net = Net()
    for number in range(1, 8):
        total, _ = net(Tensor(np.ones((2, 4), np.float32)), number / 2)
        np.testing.assert_allclose(total.asnumpy(), np.tanh(1.0) * 16 * number, rtol=1e-6)
