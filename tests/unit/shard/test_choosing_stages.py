"""`auto_pipeline`: the number of stages is the one whose step takes least, and says so."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.parallel._cost_model_context import reset_cost_model_context, set_cost_model_context

from torchspore.context import effects
from torchspore.distributed import device_count
from torchspore.distributed.shard import machine_model
from torchspore.distributed.shard.pipeline_parallel import step_time
from torchspore.distributed.shard.search import costs
from torchspore.graph import dispatch

OPTION = "auto_parallel.auto_pipeline"


class Layers(nn.Cell):
    """Equal layers, each fourth of them in a stage of its own."""

    def __init__(self, width: int, count: int = 4) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(width, width, activation="tanh") for _ in range(count)])
        for at, layer in enumerate(self.layers):
            layer.pipeline_stage = at * 4 // count

    def construct(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def trained(width: int, rows: int, parts: int = 4) -> tuple[list[float], Any]:
    ms.set_seed(1)
    net = Layers(width)
    step = nn.TrainOneStepCell(nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), parts), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    x = np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32)
    return [float(step(Tensor(x), Tensor(x[::-1].copy()))) for _ in range(3)], step


def choose(**more: Any) -> None:
    ms.set_auto_parallel_context(
        parallel_mode="auto_parallel", dataset_strategy="full_batch", pipeline_stages=4, auto_pipeline=True, **more,
    )


@pytest.mark.parametrize(("width", "rows", "expected"), [pytest.param(512, 16, (2, 4), marks=pytest.mark.slow), (16, 1024, (1,))])
def test_the_cheapest_number_is_taken(width: int, rows: int, expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Much weight and little batch: nobody sums gradients over a pipeline. Little weight and much batch: data parallel."""
    alone, _ = trained(width, rows)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    choose()
    result, step = trained(width, rows)
    np.testing.assert_allclose(result, alone, rtol=1e-5)
    split = dispatch.graphs(step)[0].split
    chosen = split.sharded_capture.chosen
    assert sorted(chosen.costs) == [1, 2, 4]
    assert chosen.stages == split.sharded_capture.stages == min(chosen.costs, key=lambda count: (chosen.costs[count].order(), count))
    assert chosen.stages in expected
    outcome = effects.outcome_of(_option(), True)
    assert outcome is not None and outcome.text == chosen.describe() and outcome.text.startswith(f"{chosen.stages} stage")


def _option() -> Any:
    from torchspore.context.options import OPTIONS

    return OPTIONS[OPTION]


def test_cells_of_four_stages_share_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    choose()
    _, step = trained(512, 16)
    sharded_capture = dispatch.graphs(step)[0].split.sharded_capture
    assert sorted(sharded_capture.chosen.costs) == [1, 2]
    if sharded_capture.stages == 2:
        assert [sharded_capture.homes[f"layers.{at}.weight"] for at in range(4)] == [0, 0, 1, 1]


@pytest.mark.slow
def test_what_does_not_fit_into_a_device_is_cut_by_more_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    choose()
    _, roomy = trained(16, 1024)
    set_cost_model_context(device_memory_capacity=100_000.0)
    try:
        _, tight = trained(16, 1024)
    finally:
        reset_cost_model_context()
    without_limit, other = (dispatch.graphs(step)[0].split.sharded_capture.chosen for step in (roomy, tight))
    assert not without_limit.costs[without_limit.stages].excess
    assert other.costs[other.stages].excess == min(cost.excess for cost in other.costs.values())


@pytest.mark.parametrize(("more", "expected"), [
    ({"parallel_mode": "semi_auto_parallel"}, "only parallel_mode='auto_parallel'"),
    ({"search_mode": "dynamic_programming"}, "search_mode='recursive_programming' chooses"),
])
def test_where_nothing_is_chosen_it_is_reported(more: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    choose()
    ms.set_auto_parallel_context(**more)
    _, step = trained(16, 16)
    assert dispatch.graphs(step)[0].split.sharded_capture.stages == 4
    outcome = effects.outcome_of(_option(), True)
    assert outcome is not None and outcome.state == "no effect here" and expected in outcome.text and outcome.text.endswith("there are 4")


def test_strategies_that_fit_no_pipeline_leave_fewer_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that the program cuts into four parts fits four devices alone."""
    from mindspore.ops import operations as P

    class Net(Layers):
        def __init__(self) -> None:
            super().__init__(16)
            self.product = P.MatMul().shard(((4, 1), (1, 1)))

        def construct(self, x: Any) -> Any:
            return super().construct(self.product(x, self.layers[0].weight))

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    choose()
    net = Net()
    net(Tensor(np.ones((8, 16), np.float32)))
    chosen = dispatch.graphs(net)[0].split.sharded_capture.chosen
    assert chosen.stages == 1
    assert sorted(chosen.refused) == [2, 4]


def test_one_stage_takes_as_long_as_the_search_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    _, step = trained(16, 16, parts=1)
    local = dispatch.graphs(step)[0].split.local
    clock, counted = step_time.of(local, 1, machine_model.machine()), costs.of(local, machine_model.machine())
    assert clock.received == counted.received and clock.computing == pytest.approx(counted.computing)
    assert clock.seconds == pytest.approx(counted.seconds)


def test_numbers_of_stages_divide_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.distributed.shard.pipeline_parallel import stage_count

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "12")
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", pipeline_stages=5)
    assert device_count.devices()[0] == 12
    assert stage_count.numbers() == [4, 3, 2, 1]
