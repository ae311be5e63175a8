"""Nets and looks at their graphs, for the tests of precision."""
from __future__ import annotations

import re
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

import torchspore


class Net(nn.Cell):
    """A convolution with batch norm, a branch of elementwise operators, a dense head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.relu, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dense(8, 5)

    def construct(self, x):
        x = self.relu(self.norm(self.conv(x)))
        return self.head((x * 0.5 + x).mean((2, 3)))


X = np.random.RandomState(0).randn(4, 3, 8, 8).astype(np.float32)
Y = np.array([0, 1, 2, 3], np.int32)


def trained(optimizer: Any = None, steps: int = 3, **context: Any) -> tuple[list[float], Any, Any]:
    """The losses of a few training steps in GRAPH_MODE under this context, the step and the net."""
    ms.set_context(mode=ms.GRAPH_MODE, **context)
    ms.set_seed(1)
    net = Net()
    chosen = (optimizer or (lambda p: nn.Momentum(p, 0.1, 0.9)))(net.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), chosen).set_train()
    return [float(step(Tensor(X), Tensor(Y))) for _ in range(steps)], step, net


def dtypes(cell: Any) -> dict[str, set[str]]:
    """For each ATen operator of the cell's graph the dtypes of what it gives."""
    results: dict[str, set[str]] = {}
    for line in str(torchspore.graphs(cell)[0]).splitlines():
        match = re.match(r"%\w+: \(?(\w+)\[.*? = aten\.(\w+)\.", line)
        if match:
            name = match[2].rstrip("_")
            results.setdefault("addmm" if name == "linear" else name, set()).add(match[1])            # linear calls addmm
    return results


def product(a: Tensor, b: Tensor) -> Tensor:
    """A product and something elementwise."""
    return ops.matmul(a, b) * 1.1 + 0.3
