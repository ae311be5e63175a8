"""Exports a network, or runs an exported one: `exported.py write|read DEVICE FILE`. Prints the values that it computes."""
from __future__ import annotations

import sys
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
from mindspore import Tensor, nn, ops


class Net(nn.Cell):
    """A network whose graph creates Tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 3, weight_init="ones")

    def construct(self, x: Any) -> Any:
        picture = ops.ResizeNearestNeighbor((4, 6))(x.reshape(1, 1, 2, 3)).sum()
        return self.dense(x) * Tensor([1.0, 2.0, 3.0]) + ops.ones((2, 3)) + ops.arange(3) + picture


def main(what: str, target: str, file: str) -> None:
    """Run the network, or the file."""
    if target == "GPU":
        stand_in.begin()
    ms.set_context(device_target=target, mode=1)
    x = Tensor(np.arange(6).reshape(2, 3), ms.float32)
    if what == "write":
        net = Net()
        ms.export(net, x, file_name=file, file_format="MINDIR")
    else:
        net = nn.GraphCell(ms.load(file))
    print(net(x).asnumpy().tolist(), ms.jit(net.construct)(x).asnumpy().tolist() if what == "write" else net(x).asnumpy().tolist())


if __name__ == "__main__":
    main(*sys.argv[1:])
