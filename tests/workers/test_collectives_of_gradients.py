"""Collectives of a program in a split graph: they run on full values; values computed of gradients of cut Parameters are refused."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def send(name: str, is_gradient: bool) -> str:
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore.communication import init

    from torchspore.errors import StrategyRefused

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    collective = {"AllReduce": ops.AllReduce, "CollectiveGather": lambda: ops.CollectiveGather(0)}[name]()

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Dense(8, 4, has_bias=False)
            self.net.matmul.shard(((1, 1), (2, 1)))
            self.gradient = ops.GradOperation(get_by_list=True)

        def construct(self, x):
            (gradient,) = self.gradient(self.net, self.net.trainable_params())(x)
            return collective(((gradient if is_gradient else x)**2).sum().reshape((1,)))

    try:
        return str(Step()(Tensor(np.ones((4, 8), np.float32))))
    except StrategyRefused as error:
        return str(error)


@pytest.mark.parametrize("name", ["AllReduce", "CollectiveGather"])
def test_a_collective_of_gradients_of_cut_parameters_is_refused(workers: Any, name: str) -> None:
    for text in workers(2, send, name, True):
        assert "of values that depend on gradients of split Parameters: expected no exchange of the program's own there" in text, text


@pytest.mark.parametrize(("name", "expected"), [("AllReduce", "[64.]"), ("CollectiveGather", "[32. 32.]")])
def test_a_collective_of_other_values_runs_on_full_values(workers: Any, name: str, expected: str) -> None:
    assert workers(2, send, name, False)[0] == expected
