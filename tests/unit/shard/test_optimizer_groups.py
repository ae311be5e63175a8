"""The groups in which the parallel optimizer splits Parameters, and the groups of messages that sum gradients, as records show them."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor

from torchspore.errors import StrategyRefused


class Net(nn.Cell):
    def __init__(self, strategies: Any) -> None:
        super().__init__()
        self.first, self.second = (ops.MatMul().shard(strategy) for strategy in strategies)
        self.weight1 = Parameter(Tensor(np.ones((48, 64), np.float32)), name="weight1")
        self.weight2 = Parameter(Tensor(np.ones((64, 16), np.float32)), name="weight2")

    def construct(self, x, label):
        return self.second(self.first(x, self.weight1), self.weight2) - label


def compiled(strategies: Any, **config: int) -> nn.Cell:
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=32, dataset_strategy="full_batch")
    if config:
        ms.set_auto_parallel_context(enable_parallel_optimizer=True, parallel_optimizer_config=config)
    net = Net(strategies)
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    step.compile(Tensor(np.ones((32, 48), np.float32)), Tensor(np.zeros((32, 16), np.float32)))
    return step


def groups(step: nn.Cell) -> list[int]:
    """The number of devices in the optimizer's group of each weight; 1 for a weight that it does not split."""
    layouts = step.parameter_layout_dict
    return [int(layouts[name][5].partition("-")[0] or 1) for name in ("weight1", "weight2")]


@pytest.mark.parametrize(("config", "expected"), [
    ({"parallel_optimizer_threshold": 1}, [1, 4]),           # rows of weight1 (6 on each device) do not divide by 4
    ({"parallel_optimizer_threshold": 5}, [1, 1]),           # weight2 has 4 KB: the full Parameter counts
    ({"parallel_optimizer_threshold": 4}, [1, 4]),
    ({"parallel_optimizer_threshold": 1, "optimizer_weight_shard_size": 2}, [2, 2]),
])
def test_groups_of_the_parallel_optimizer(config: dict[str, int], expected: list[int]) -> None:
    assert groups(compiled((((4, 8), (8, 1)), ((4, 4), (4, 2))), **config)) == expected


def test_a_group_larger_than_all_devices_is_refused() -> None:
    with pytest.raises(StrategyRefused, match="'optimizer_weight_shard_size': 128} for 32 devices: expected at most 32"):
        compiled((((4, 8), (8, 1)), ((4, 4), (4, 2))), optimizer_weight_shard_size=128)


def test_message_groups_of_gradients() -> None:
    step = compiled((((4, 8), (8, 1)), ((4, 4), (4, 2))))
    assert _cell_graph_executor._get_allreduce_fusion(step) == {"weight1": 1, "weight2": 1}
    ms.set_auto_parallel_context(comm_fusion={"allreduce": {"mode": "index", "config": [0]}})
    assert _cell_graph_executor._get_allreduce_fusion(step) == {"weight1": 1, "weight2": 2}
    ms.set_auto_parallel_context(comm_fusion={"openstate": False})
    assert _cell_graph_executor._get_allreduce_fusion(step) == {}


def test_sums_of_gradients_among_planned_devices_do_not_run() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=8)
    net = nn.Dense(4, 2)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    inputs = Tensor(np.ones((3, 4), np.float32)), Tensor(np.ones((3, 2), np.float32))
    before = net.weight.asnumpy().copy()
    step.compile(*inputs)
    with pytest.raises(RuntimeError, match="the sum of gradients among 8 devices in one process: expected a process for each device"):
        step(*inputs)
    assert np.array_equal(net.weight.asnumpy(), before)
