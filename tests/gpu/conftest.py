"""Programs for the tests on an accelerator. Each has a process to itself: limits, devices and algorithms hold for a process.

The programs name the GPU. TESTS_DEVICE=Ascend runs them on an Ascend device instead.
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.processes import USES_STAND_IN, Run

TARGET = os.environ.get("TESTS_DEVICE", "GPU")

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
def run(run: Callable[..., Run]) -> Callable[..., Run]:
    """Runs `python -m torchspore ARGUMENTS` in an empty folder, with TARGET where a program names the GPU."""

    def call(*arguments: Any) -> Run:
        return run(*(re.sub(r"""(["'])GPU\1""", rf"\1{TARGET}\1", text) if isinstance(text, str) else text for text in arguments))

    return call


@pytest.fixture
def device() -> str:
    """The name of the first device in messages and in `Tensor.device`."""
    return "spore:0" if USES_STAND_IN else f"{TARGET}:0"


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
    """Skips a test that calls CUDA itself on an accelerator without it."""
    if USES_STAND_IN or TARGET != "GPU" or not torch.cuda.is_available():
        pytest.skip("needs CUDA")
