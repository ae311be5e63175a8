"""Prints what a program's `bprop` and hooks see on the stand-in, `backward_thread.py MODE`: the thread, and whether a frame is around."""
from __future__ import annotations

import json
import sys
import threading
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
from mindspore import Tensor, nn, ops

from torchspore.engine.tensors.tensor import frame

main_thread = threading.get_ident()
seen: dict[str, list[Any]] = {"threads": [], "frames": []}


def look() -> None:
    """Note the thread, and whether it is inside of a frame."""
    seen["threads"].append(threading.get_ident() == main_thread)
    seen["frames"].append(frame() is not None)


class Chosen(nn.Cell):
    """A Cell whose own gradient depends on a value."""

    def construct(self, x: Any) -> Any:
        return x * 2

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        look()
        if (x.sum() > 0).all():
            return (dout * 5,)
        return (dout * 7,)


class Gradient(nn.Cell):
    """The gradient of a Cell, in one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Chosen()

    def construct(self, x: Any) -> Any:
        return ops.grad(self.net)(x)


def main(mode: int) -> None:
    """Print the gradients for a positive and a negative input, and what was seen."""
    stand_in.begin()
    ms.set_context(device_target="GPU", mode=mode)
    net, ones = Gradient(), np.ones(2, np.float32)
    values = [net(Tensor(ones * sign)).asnumpy().tolist() for sign in (1, -1, 1)]
    print(json.dumps({"values": values, "graphs": len(getattr(net, "_graphs_", ())), **seen}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
