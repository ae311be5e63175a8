"""Writes before an error inside of a gradient: they stay, as in a call without a gradient."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

WEIGHT = ms.Parameter(ms.Tensor([1.0, 2.0], ms.float32), name="weight")
X = np.array([1, 2], np.float32)


class Failing(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.w = ms.Parameter(ms.Tensor(np.ones(2, np.float32)), name="w")
        self.last = None

    def construct(self, x: Any) -> Any:
        self.calls += 1
        self.w += x
        self.last = x * 2
        if self.calls == 1:
            raise ValueError("first call")
        return x * self.w


def assign_and_raise(x: Any) -> Any:
    ops.assign(WEIGHT, ms.Tensor([33.0, 44.0], ms.float32))
    raise ValueError("assigned")


def assign_and_misuse(x: Any) -> Any:
    y = x * WEIGHT
    ops.assign(WEIGHT, ms.Tensor([7.0, 8.0], ms.float32))
    return ops.reshape(y, (3, 3))


def product(x: Any) -> Any:
    return (x * WEIGHT).sum()


@case()
def values_after_errors() -> Any:
    x, results = ms.Tensor(X), {}
    for function in (assign_and_raise, assign_and_misuse):
        try:
            ms.grad(function, 0, [WEIGHT])(x)
        except (ValueError, RuntimeError):
            results[function.__name__] = WEIGHT.asnumpy().copy()
    results["next"] = ms.grad(product)(x).asnumpy().copy()
    local = ms.Tensor(X)

    def write_and_raise(x: Any) -> Any:
        local[0] = 100.0
        raise KeyError("written")

    try:
        ms.grad(write_and_raise)(x)
    except KeyError:
        results["local"] = local.asnumpy().copy()
    net = Failing()
    gradient = ms.grad(net, 0, [net.w])
    try:
        gradient(x)
    except ValueError:
        results["cell"], results["attribute"] = net.w.asnumpy().copy(), net.last.asnumpy().copy()
    results["second call"], results["cell after it"] = gradient(x)[0].asnumpy().copy(), net.w.asnumpy().copy()
    return results
