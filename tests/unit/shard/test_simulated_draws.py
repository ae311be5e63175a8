"""Simulated ranks draw the random numbers of one device, also where recomputation, a branch or a loop draws them."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.engine.random import generators


class Recomputed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.dropout = nn.Dense(4, 4), nn.Dropout(p=0.3)
        self.recompute()

    def construct(self, x: Any) -> Any:
        return x + self.dropout(ops.tanh(self.dense(x)))


class Branching(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.dropout = nn.Dense(4, 4), nn.Dropout(p=0.3)

    def construct(self, x: Any) -> Any:
        y = self.dense(x)
        if ops.reduce_sum(y) > -1e9:
            return self.dropout(y)
        return y


class Looping(Branching):
    def construct(self, x: Any) -> Any:
        y, at = self.dense(x), ops.reduce_max(x) * 0
        while at < 2:
            y, at = y + self.dropout(y), at + 1
        return y


def trained(kind: type[nn.Cell]) -> list[float]:
    """Losses, and a number drawn after the steps."""
    ms.set_seed(3)
    net = kind()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)).set_train()
    x = Tensor(np.arange(16, dtype=np.float32).reshape(4, 4) / 16)
    return [*(float(step(x, x)) for _ in range(2)), float(torch.rand((), generator=generators.own()))]


@pytest.mark.parametrize("kind", [pytest.param(Recomputed, marks=pytest.mark.slow), Branching, Looping])
def test_masks_are_those_of_one_device(kind: type[nn.Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = trained(kind)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    np.testing.assert_allclose(trained(kind), alone, rtol=3e-6)
