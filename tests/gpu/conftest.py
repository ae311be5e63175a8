"""Programs for the tests on a GPU. Each runs in a process of its own: limits, devices and algorithms hold for a process."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from running import USES_STAND_IN, Run

HEAD = """
import json, sys, numpy as np, torch, mindspore as ms
from mindspore import Tensor, amp, nn, ops
results = {}
rng = np.random.RandomState(0)
floats = lambda *shape: Tensor(rng.randn(*shape).astype(np.float32))
ints = lambda high, *shape: Tensor(rng.randint(0, high, shape).astype(np.int32))
def net():
    ms.set_seed(1)
    return nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(8 * 64, 10))
def train_step(network, optimizer=nn.SGD):
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer(network.trainable_params(), 0.001))
    return step.set_train()
def batches(count):
    global rng
    rng = np.random.RandomState(0)
    return [(floats(16, 3, 16, 16), ints(10, 16)) for _ in range(count)]
"""


@pytest.fixture
def run_program(run: Callable[..., Run]) -> Callable[[str], Any]:
    """Runs a program after HEAD and gives what it put into `results`."""

    def call(text: str) -> Any:
        ended = run("-c", HEAD + text + "\nprint(json.dumps(results))\n")
        assert ended.code == 0, ended.err[-3000:]
        return json.loads(ended.out.splitlines()[-1])

    return call


@pytest.fixture
def cuda() -> None:
    """Skips a test that calls CUDA itself, where the stand-in accelerator is the GPU."""
    if USES_STAND_IN:
        pytest.skip("needs CUDA: the stand-in accelerator has none")
