"""Small trainings by two processes, which real MindSpore and torchspore both run; `tools/record.py parallel` records the former.

This file imports `mindspore` alone. A case gives the weights of its rank after three steps.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

STEPS = 3
SEVERAL = "data_parallel"
Case = Callable[[int], Any]
"""Takes the rank, and gives the network after training."""


def _dense(random: Any, rows: int, columns: int) -> Any:
    weight = ms.Tensor(random.uniform(-0.5, 0.5, (columns, rows)).astype(np.float32))
    return nn.Dense(rows, columns, weight_init=weight, bias_init="zeros")


class Net(nn.Cell):
    """Three layers, six Parameters."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        random = np.random.RandomState(seed)
        self.a, self.b, self.c = _dense(random, 4, 6), _dense(random, 6, 3), _dense(random, 3, 2)

    def construct(self, x: Any) -> Any:
        """The output for a batch."""
        return self.c(ops.tanh(self.b(ops.tanh(self.a(x)))))


def batch(rank: int, step: int) -> tuple[Any, Any]:
    """This rank's part of a batch."""
    random = np.random.RandomState(10 * step + rank)
    return ms.Tensor(random.rand(4, 4).astype(np.float32)), ms.Tensor(random.rand(4, 2).astype(np.float32))


def _by_cell(net: Any, rank: int, optimizer: Any = None) -> Any:
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9) if optimizer is None else optimizer
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    for number in range(STEPS):
        step(*batch(rank, number))
    return net


def _options(**options: Any) -> None:
    ms.set_auto_parallel_context(parallel_mode=SEVERAL, **options)


def gradients_stay_sums(rank: int) -> Any:
    """`gradients_mean` is off by default."""
    _options()
    return _by_cell(Net(), rank)


def gradients_become_means(rank: int) -> Any:
    """Divided by the number of processes."""
    _options(gradients_mean=True)
    return _by_cell(Net(), rank)


def other_values_without_broadcast(rank: int) -> Any:
    """Each rank keeps its own first values."""
    _options(gradients_mean=True)
    return _by_cell(Net(rank + 1), rank)


def other_values_with_broadcast(rank: int) -> Any:
    """All begin with those of rank 0."""
    _options(gradients_mean=True, parameter_broadcast=True)
    return _by_cell(Net(rank + 1), rank)


def each_by_itself(rank: int) -> Any:
    """A message for each gradient."""
    _options(gradients_mean=True, comm_fusion={"openstate": False})
    return _by_cell(Net(), rank)


def all_in_one(rank: int) -> Any:
    """One message."""
    _options(gradients_mean=True, comm_fusion={"allreduce": {"mode": "auto", "config": None}})
    return _by_cell(Net(), rank)


def by_size(rank: int) -> Any:
    """Messages of up to 32 MB."""
    _options(gradients_mean=True, comm_fusion={"allreduce": {"mode": "size", "config": 32}})
    return _by_cell(Net(), rank)


def cut_after_the_first(rank: int) -> Any:
    """Two messages."""
    _options(gradients_mean=True, all_reduce_fusion_config=[0])
    return _by_cell(Net(), rank)


def cut_twice(rank: int) -> Any:
    """Three messages."""
    _options(gradients_mean=True, all_reduce_fusion_config=[1, 3])
    return _by_cell(Net(), rank)


def layerwise(rank: int) -> Any:
    """The gradient of one Parameter stays this rank's."""
    _options(gradients_mean=True)
    net = Net()
    net.b.weight.layerwise_parallel = True
    return _by_cell(net, rank)


def hybrid(rank: int) -> Any:
    """The other mode in which gradients are summed."""
    ms.set_auto_parallel_context(parallel_mode="hybrid_parallel", gradients_mean=True)
    return _by_cell(Net(), rank)


def stand_alone(rank: int) -> Any:
    """Nobody sums."""
    ms.set_auto_parallel_context(parallel_mode="stand_alone")
    return _by_cell(Net(), rank)


def half_precision(rank: int) -> Any:
    """Weights of float16, summed in float32."""
    _options(gradients_mean=True)
    net = Net().to_float(ms.float16)
    for parameter in net.get_parameters():
        parameter.set_dtype(ms.float16)
    return _by_cell(net, rank, nn.SGD(net.trainable_params(), 0.1))


def scaled_loss(rank: int) -> Any:
    """The loss times a scale."""
    _options(gradients_mean=True)
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, loss_scale=1024.0)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, sens=1024.0).set_train()
    for number in range(STEPS):
        step(*batch(rank, number))
    return net


def by_function(rank: int) -> Any:
    """The program calls the reducer itself."""
    _options(gradients_mean=True)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ops.value_and_grad(lambda x, y: nn.MSELoss()(net(x), y), None, optimizer.parameters)
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    for number in range(STEPS):
        _, grads = gradient(*batch(rank, number))
        optimizer(reducer(grads))
    return net


def by_model(rank: int) -> Any:
    """`Model.train`, with a part of the data for each rank."""
    _options(gradients_mean=True)
    net = Net()
    random = np.random.RandomState(5)
    rows = list(zip(random.rand(24, 4).astype(np.float32), random.rand(24, 2).astype(np.float32)))
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False, num_shards=2, shard_id=rank).batch(4)
    ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9)).train(1, data, dataset_sink_mode=False)
    return net


CASES: dict[str, Case] = {
    case.__name__: case for case in (
        gradients_stay_sums, gradients_become_means, other_values_without_broadcast, other_values_with_broadcast, each_by_itself,
        all_in_one, by_size, cut_after_the_first, cut_twice, layerwise, hybrid, stand_alone, half_precision, scaled_loss, by_function,
        by_model,
    )
}
SAME_ONLY_IN_MODE = {"by_function": (1,), "other_values_with_broadcast": (0,)}
"""Cases that MindSpore runs, or acts on, in one mode only."""


def run(name: str, mode: int, rank: int) -> dict[str, Any]:
    """The weights of a case, by their names."""
    ms.set_context(mode=mode)
    ms.reset_auto_parallel_context()
    try:
        net = CASES[name](rank)
        return {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    finally:
        ms.reset_auto_parallel_context()
