"""A net that counts its forward passes, and the gradient of its weight."""
from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import nn, ops

PLAIN = ops.GradOperation(get_by_list=True)


class Net(nn.Cell):
    """Counts its forward passes in a Parameter, as batch norm counts them in its averages."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor([2.0, 3.0]), name="weight")
        self.passes = ms.Parameter(ms.Tensor(0.0), name="passes", requires_grad=False)
        self.mask = ms.Tensor([1.0, 1.0])
        self.factor = 1.0
        self.inner = nn.Dropout(p=0.5)

    def construct(self, x: Any) -> Any:
        ops.assign_add(self.passes, ms.Tensor(1.0))
        return (x * x * self.weight * self.mask * self.factor).sum()


def make_net() -> tuple[Net, ms.Tensor]:
    return Net().set_grad(), ms.Tensor([1.0, 2.0])


def gradient(net: Net, x: Any) -> list[float]:
    return PLAIN(net, ms.ParameterTuple([net.weight]))(x)[0].asnumpy().tolist()  # type: ignore[no-any-return]
