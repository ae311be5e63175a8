"""A Parameter that several operators with strategies use has one layout, as in MindSpore."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor

from torchspore.errors import StrategyRefused


class _Net(nn.Cell):
    def __init__(self, first: Any, second: Any) -> None:
        super().__init__()
        self.first, self.second = ops.MatMul().shard(first), ops.MatMul().shard(second)
        self.weight = Parameter(Tensor(np.ones((16, 16), np.float32)), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        return self.second(self.first(x, self.weight), self.weight)


def _compile(first: Any, second: Any) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=16, dataset_strategy="full_batch")
    _cell_graph_executor.compile(_Net(first, second), Tensor(np.ones((16, 16), np.float32)))


@pytest.mark.parametrize("first,second", [
    (((4, 2), (2, 2)), ((4, 2), (2, 2))), (((16, 1), (1, 1)), ((2, 1), (1, 1))), (((1, 1), (1, 16)), ((1, 1), (1, 16))),
])
def test_equal_layouts_are_accepted(first: Any, second: Any) -> None:
    _compile(first, second)


@pytest.mark.parametrize("first,second", [
    (((2, 1), (1, 8)), ((2, 8), (8, 1))), (((1, 2), (2, 1)), ((8, 2), (2, 1))), (((1, 1), (1, 1)), ((1, 1), (1, 4))),
])
def test_other_layouts_are_refused(first: Any, second: Any) -> None:
    with pytest.raises(StrategyRefused, match=r"MatMul with the Parameter weight cut .*: expected the layout in which MatMul has it, cut"):
        _compile(first, second)


@pytest.mark.filterwarnings("ignore:device_num=8 in one process")      # it comes once per process
def test_both_inputs_of_square_sum_all_have_a_strategy() -> None:
    sums = ops.SquareSumAll().shard(((2, 4), (2, 4)))

    class Net(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Any:
            return sums(x, y)

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    x = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
    net = Net()
    _cell_graph_executor.compile(net, Tensor(x), Tensor(x + 1))
    first, second = net(Tensor(x), Tensor(x + 1))
    assert np.allclose([float(first), float(second)], [np.sum(x**2), np.sum((x + 1) ** 2)])
