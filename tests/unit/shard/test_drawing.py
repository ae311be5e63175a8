"""Dropout in a pipeline has the masks of one device, whatever the order of the parts, and leaves the generator where one device does."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.context import effects
from torchspore.distributed.shard.pipeline_parallel import random_numbers
from torchspore.engine.random import generators
from torchspore.graph import dispatch

SCHEDULES = ("1f1b", "gpipe", "zero_bubble_v", "interleaved")


class Dropped(nn.Cell):
    """A layer with dropout behind it, and noise where it is asked for."""

    def __init__(self, noise: Any) -> None:
        super().__init__()
        self.dense, self.dropout, self.noise = nn.Dense(16, 16), nn.Dropout(p=0.3), noise

    def construct(self, x: Any) -> Any:
        y = self.dropout(ops.tanh(self.dense(x)))
        return y if self.noise is None else y + self.noise(y) * 0.01


def trained(schedule: str = "1f1b", noise: Any = None, recompute: bool = False, is_cut: bool = False) -> tuple[list[float], Any]:
    """Losses, a number drawn after the steps, and the step, of two layers, or four in turns, in two stages."""
    if is_cut:
        config = {"pipeline_interleave": True, "pipeline_scheduler": "1f1b" if schedule == "interleaved" else schedule}
        more = {"pipeline_config": config} if schedule != "1f1b" else {}
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2, **more)
    ms.set_seed(3)
    count = 4 if schedule == "interleaved" else 2
    layers = nn.CellList([Dropped(noise) for _ in range(count)])
    for at, layer in enumerate(layers):
        layer.pipeline_stage = at % 2 if schedule == "interleaved" else at * 2 // count
        if recompute:
            layer.recompute()
    net = nn.SequentialCell(*layers)
    parts = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 4)
    step = nn.TrainOneStepCell(parts, nn.Adam(net.trainable_params(), 1e-2)).set_train()
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    values = [float(step(Tensor(x), Tensor(x[::-1].copy()))) for _ in range(3)]
    return [*values, float(torch.rand((), generator=generators.own()))], step


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("again", [False, True])
def test_masks_are_those_of_one_device(schedule: str, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, _ = trained(schedule, recompute=again)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    result, step = trained(schedule, recompute=again, is_cut=True)
    np.testing.assert_allclose(result, alone, rtol=3e-6)
    pipeline = dispatch.graphs(step)[0].split.pipeline
    assert pipeline.schedule is not None and pipeline.schedule.idle < 0.4


def several(y: Any) -> Any:
    """Noise of the ways that have a stream of their own where the program seeds them, and take the generator's where not."""
    result = ops.StandardNormal()(y.shape) + ops.UniformReal()(y.shape) + ops.randint(0, 5, y.shape) + ops.randn(*y.shape)
    return result + ops.randperm(y.shape[1]).astype(ms.float32) + ops.rand(*y.shape) + ops.standard_normal(y.shape)


@pytest.mark.parametrize("noise", [lambda y: ops.standard_normal(y.shape), several])
def test_noise_whose_length_hangs_on_its_form(noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, _ = trained(noise=noise)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    result, _ = trained(noise=noise, is_cut=True)
    np.testing.assert_allclose(result, alone, rtol=3e-6)


def test_draws_that_depend_on_values_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    _, step = trained(noise=lambda y: ops.random_poisson((1,), Tensor([3.0])).sum(), is_cut=True)
    module = dispatch.graphs(step)[0].split.local.module
    assert not any(node.target is random_numbers.seek for node in module.graph.nodes)
    assert any("each stage draws separate random numbers" in line for line in effects.notes()["distribution"])


def test_states_are_those_of_the_draws() -> None:
    mask = '["bernoulli_.float", [{"shape": [64, 64], "dtype": "float32", "device": "cpu"}, 0.5], {}]'
    other = '["rand.default", [[63, 64]], {"device": {"text": "cpu"}}]'
    generators.own().manual_seed(1)
    with generators.lent():
        _check_states(mask, other)
    assert random_numbers.way(mask, "cpu") is not random_numbers._draw_all


def _check_states(mask: str, other: str) -> None:
    result = random_numbers.ahead(f"{mask}\n{other}\n{mask}", "cpu")
    for at, state in enumerate(result):
        assert torch.equal(generators.current_state(), state)
        torch.rand(63, 64) if at == 1 else torch.empty(64, 64).bernoulli_(0.5)
