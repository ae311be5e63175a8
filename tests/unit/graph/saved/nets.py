"""Small nets whose graphs are saved."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

X = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4) / 10)
LABEL = Tensor(np.array([0, 1, 1], np.int32))


class Sub(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.d = nn.Dense(4, 4)

    def construct(self, x):
        return ops.relu(self.d(x))  # line: relu


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.s = Sub()
        self.head = nn.Dense(4, 2)

    def construct(self, x):
        return self.head(self.s(x))


class Deciding(nn.Cell):
    """A net with a branch and a loop on Tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.d = nn.Dense(4, 2)
        self.limit = Parameter(Tensor(np.array(50.0, np.float32)), name="limit", requires_grad=False)

    def construct(self, x):
        y = self.d(x)
        if y.sum() > 0:
            y = y * 2
        while y.sum() < self.limit:
            y = y + 1
        return y


def step(net: nn.Cell) -> Any:
    """A training step of a net."""
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.SGD(net.trainable_params(), 0.1))


def line(name: str) -> str:
    """`file:line` of a marked line of this file."""
    with open(__file__, encoding="utf-8") as source:
        number = next(number for number, text in enumerate(source, 1) if text.rstrip().endswith(f"# line: {name}"))
    return f"{__file__}:{number}"


__all__ = ["LABEL", "X", "Deciding", "Net", "Sub", "line", "ms", "step"]
