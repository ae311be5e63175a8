"""`pipeline_segments`: each stage runs several segments of the network by turns."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.errors import StrategyRefused


class Net(nn.Cell):
    """Layers in virtual stages."""

    def __init__(self, stages: list[int]) -> None:
        super().__init__()
        self.layers = nn.CellList([
            nn.Dense(4, 4, weight_init=Tensor(np.random.RandomState(at).randn(4, 4), ms.float32), bias_init="zeros", activation="tanh")
            for at in range(len(stages))
        ])
        for layer, stage in zip(self.layers, stages, strict=True):
            if stage >= 0:
                layer.pipeline_stage = stage

    def construct(self, x, y):  # type: ignore[no-untyped-def]
        for layer in self.layers:
            x = layer(x)
        return ((x - y) ** 2).mean()


X, Y = (Tensor(np.random.RandomState(seed).randn(8, 4), ms.float32) for seed in (1, 2))


def losses(stages: list[int], micro_batches: int = 4) -> list[float]:
    net = Net(stages)
    step = nn.TrainOneStepCell(nn.PipelineCell(net, micro_batches), nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    return [float(step(X, Y).asnumpy()) for _ in range(3)]


def pipeline(monkeypatch: pytest.MonkeyPatch, devices: int, **config: Any) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(devices))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2, **config)


def outcome(name: str) -> str:
    option = OPTIONS[f"auto_parallel.{name}"]
    return str(effects.outcome_of(option, None))


def waits(text: str) -> int:
    """Return the share of the time, in percent, that stages wait, from an outcome."""
    return int(text.partition("stages wait ")[2].partition("%")[0])


@pytest.mark.parametrize(("stages", "segments", "devices"), [
    ([0, 1, 2, 3], 2, 2), ([0, 0, 1, 1, 2, 2, 3, 3], 2, 4), ([0, 1, 2, 3, 4, 5], 3, 2), ([0, 1, 0, 1], 2, 2),
])
def test_results_are_those_of_one_device(
    stages: list[int], segments: int, devices: int, monkeypatch: pytest.MonkeyPatch, graph_mode: None
) -> None:
    expected = losses([-1] * len(stages))
    pipeline(monkeypatch, devices, pipeline_segments=segments)
    np.testing.assert_allclose(losses(stages), expected, rtol=1e-5)
    assert outcome("pipeline_segments").startswith(f"applied: each stage runs {segments} segments of the network by turns; stages wait ")


def test_stages_wait_less_than_with_one_segment(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    pipeline(monkeypatch, 2, pipeline_config={"pipeline_interleave": False, "pipeline_scheduler": "1f1b"})
    losses([0, 0, 1, 1])
    waits_of_segment = waits(outcome("pipeline_config"))
    pipeline(monkeypatch, 2, pipeline_segments=2)
    losses([0, 1, 2, 3])
    assert waits(outcome("pipeline_segments")) < waits_of_segment


@pytest.mark.parametrize(("stages", "segments", "expected"), [
    ([0, 1, 2, 3], 1, r"pipeline_stage = 2 with pipeline_stages=2: expected a stage from 0 to 1"),
    ([0, 1, 2, 4], 2, r"pipeline_stage = 4 with pipeline_stages=2, pipeline_segments=2: expected a stage from 0 to 3"),
    ([0, 0, 1, 1], 2, r"pipeline_segments=2 with 2 stages that run 1, 1 segments: expected a network whose Cells have the stages 0 to 3"),
])
def test_what_does_not_fit_is_refused(
    stages: list[int], segments: int, expected: str, monkeypatch: pytest.MonkeyPatch, graph_mode: None
) -> None:
    pipeline(monkeypatch, 2, pipeline_segments=segments)
    with pytest.raises(StrategyRefused, match=expected):
        losses(stages)
