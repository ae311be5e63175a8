"""`flops_collection` of a graph that is split: the operations of the model, and of one device."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor, flops_collection


def test_a_device_has_its_share() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.product = ops.MatMul().shard(((2, 2), (2, 2)))
            self.weight = Parameter(Tensor(np.ones((32, 64), np.float32)), name="weight")

        def construct(self, x: Tensor) -> Tensor:
            return self.product(x, self.weight)

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = Net()
    _cell_graph_executor.compile(net, Tensor(np.ones((16, 32), np.float32)))
    full = 2 * 16 * 32 * 64
    assert flops_collection(net.current_phase) == (full, full, full / 8, full / 8, False)


def test_products_of_batches() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.product = ops.BatchMatMul().shard(((2, 2, 1, 1), (2, 2, 1, 1)))

        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return self.product(x, y)

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=4, dataset_strategy="full_batch")
    net = Net()
    _cell_graph_executor.compile(net, Tensor(np.ones((2, 4, 8, 16), np.float32)), Tensor(np.ones((2, 4, 16, 8), np.float32)))
    full = 2 * 2 * 4 * 8 * 16 * 8
    assert flops_collection(net.current_phase)[:3] == (full, full, full / 4)
