"""Micro batches of one stage in a split graph: each runs forward and backward before the next, with the numbers of one device."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.distributed.shard import execution, memory_model

ROWS, WIDTH = 256, 16
X, Y = (np.random.RandomState(seed).randn(ROWS, WIDTH).astype(np.float32) for seed in (1, 2))


class Block(nn.Cell):
    """A residual block with the layers that connect micro batches: random numbers and running statistics."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        weight = np.random.RandomState(seed).randn(WIDTH, WIDTH).astype(np.float32) / 4
        self.dense, self.norm = nn.Dense(WIDTH, WIDTH, weight_init=Tensor(weight)), nn.BatchNorm1d(WIDTH)
        self.drop = nn.Dropout(p=0.25)

    def construct(self, x: Any) -> Any:
        return x + self.drop(self.norm(ops.gelu(self.dense(x))))


def train(wrapper: Any, is_recomputed: bool = False) -> list[float]:
    """Return the losses of three steps, and the sum of the running means."""
    ms.set_seed(3)
    net = nn.SequentialCell([Block(seed) for seed in range(4)])
    for block in net.cells():
        if is_recomputed:
            block.recompute()
    step = nn.TrainOneStepCell(wrapper(nn.WithLossCell(net, nn.MSELoss())), nn.Adam(net.trainable_params(), 1e-2)).set_train()
    losses = [float(step(Tensor(X), Tensor(Y))) for _ in range(3)]
    return [*losses, *(float(p.asnumpy().sum()) for p in net.get_parameters() if "moving" in p.name)]


def split(monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", **options)


@pytest.mark.parametrize(("cell", "level", "is_recomputed"), [
    (nn.GradAccumulationCell, "", False), (nn.PipelineCell, "level3", True), *(
        pytest.param(cell, level, is_recomputed, marks=pytest.mark.slow)
        for cell in (nn.GradAccumulationCell, nn.PipelineCell) for level in ("", "level2", "level3") for is_recomputed in (False, True)
    ),
])
def test_numbers_are_those_of_one_device(cell: Any, level: str, is_recomputed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = train(lambda network: cell(network, 4), is_recomputed)
    config = {"enable_parallel_optimizer": True, "parallel_optimizer_config": {"optimizer_level": level}} if level else {}
    split(monkeypatch, **config)
    np.testing.assert_allclose(train(lambda network: cell(network, 4), is_recomputed), expected, rtol=2e-5)


def activations(wrapper: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the bytes of activations at the peak of a split step."""
    sizes: list[int] = []
    report = execution.outcomes.report

    def record(graph: Any) -> None:
        sizes.append(memory_model.memory(graph).activations)
        report(graph)

    monkeypatch.setattr(execution.outcomes, "report", record)
    train(wrapper)
    return max(sizes)


def test_one_micro_batch_of_activations_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    split(monkeypatch)
    full = activations(lambda network: network, monkeypatch)
    assert activations(lambda network: nn.GradAccumulationCell(network, 8), monkeypatch) < full / 4
    assert activations(lambda network: nn.MicroBatchInterleaved(network, 8), monkeypatch) > full * 0.8


class Noisy(nn.Cell):
    """Draws with torch's generator, again in the second run of a recomputed block."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        weight = np.random.RandomState(seed).randn(WIDTH, WIDTH).astype(np.float32) / 4
        self.dense = nn.Dense(WIDTH, WIDTH, weight_init=Tensor(weight), bias_init="zeros")

    def construct(self, x: Any) -> Any:
        h = self.dense(x)
        return ops.bernoulli(ops.ones(WIDTH) * 0.5) * h * h


def test_second_runs_draw_the_numbers_of_their_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def losses() -> list[float]:
        ms.set_seed(3)
        net = nn.SequentialCell([Noisy(seed) for seed in range(2)])
        for block in net.cells():
            block.recompute()
        parts = nn.GradAccumulationCell(nn.WithLossCell(net, nn.MSELoss()), 4)
        step = nn.TrainOneStepCell(parts, nn.Adam(net.trainable_params(), 1e-2)).set_train()
        return [float(step(Tensor(X), Tensor(Y))) for _ in range(3)]

    expected = losses()
    split(monkeypatch)
    np.testing.assert_allclose(losses(), expected, rtol=2e-5)


@pytest.mark.parametrize("cell", [nn.GradAccumulationCell, nn.PipelineCell, nn.MicroBatchInterleaved])
def test_a_network_with_several_results_is_refused(cell: Any) -> None:
    class Two(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x.mean(), x

    with pytest.raises(TypeError, match=f"{cell.__name__} with a network that returns a tuple: expected a network that returns one Tensor"):
        cell(Two(), 2)(Tensor(X))
