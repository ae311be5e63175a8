"""Python numbers that keep changing are inputs of the graph where it computes with them; else each value has a graph."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import torchspore
from torchspore.graph import dispatch

X = np.arange(8, dtype=np.float32).reshape(2, 4) / 4


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        ms.set_seed(3)
        self.dense = nn.Dense(4, 4)
        self.step, self.rate = 0, 0.5


class Scales(Net):
    def construct(self, x, step, rate=1.0):
        return self.dense(x) * (step + 1) / 3 - rate ** 2


class Attribute(Net):
    def construct(self, x):
        return self.dense(x) * self.rate + (self.step % 4)


class Counts(Net):
    def construct(self, x):
        self.step += 1
        return self.dense(x) * self.step


class Warms(Net):
    def construct(self, x, step):
        rate = min(step / 5, 1.0)
        if step > 3:
            rate = rate * 2
        return self.dense(x) * rate


class Shapes(Net):
    def construct(self, x, count):
        return ops.tile(self.dense(x), (count, 1))


class Returns(Net):
    def construct(self, x, step):
        return self.dense(x), step, step + 1


class Tells(Net):
    def construct(self, x, step):
        if isinstance(step, int):
            return self.dense(x) * step
        return self.dense(x) - step


class IntegerTensors(Net):
    def construct(self, x, step):
        counts = ops.ones((2,), ms.int32)
        return counts * step, counts + step, counts > step, ops.zeros((2,), ms.float16) + step * 0.5


CALLS: dict[type[Net], Any] = {
    Scales: lambda net, i: net(Tensor(X), i, i * 0.25),
    Attribute: lambda net, i: (setattr(net, "rate", 0.1 * i), setattr(net, "step", i), net(Tensor(X)))[-1],
    Counts: lambda net, i: (net(Tensor(X)), net.step),
    Returns: lambda net, i: net(Tensor(X), i),
    Warms: lambda net, i: net(Tensor(X), i),
    Shapes: lambda net, i: net(Tensor(X), i % 4 + 1),
    Tells: lambda net, i: net(Tensor(X), i),
    IntegerTensors: lambda net, i: net(Tensor(X), i),
}
SINGLE_GRAPH = (Scales, Attribute, Counts, Returns, Warms, IntegerTensors)
"""Those that one graph serves, after the first three of their values."""


def outcome(kind: type[Net], mode: int) -> tuple[list[Any], Net]:
    ms.set_context(mode=mode)
    net, out = kind(), []
    for i in range(12):
        result = CALLS[kind](net, i)
        result = result if isinstance(result, tuple) else (result,)
        out.append([(type(v), v.dtype, v.asnumpy()) if isinstance(v, Tensor) else (type(v), None, v) for v in result])
    return out, net


@pytest.fixture(autouse=True)
def pynative_after():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("kind", CALLS)
def test_numbers_are_pynatives(kind: type[Net]) -> None:
    eager, _ = outcome(kind, ms.PYNATIVE_MODE)
    graphed, net = outcome(kind, ms.GRAPH_MODE)
    for eager_value, other in zip(eager, graphed):
        for (kind_a, dtype_a, a), (kind_b, dtype_b, b) in zip(eager_value, other):
            assert (kind_a, dtype_a) == (kind_b, dtype_b)
            np.testing.assert_allclose(a, b, rtol=1e-6)
    if kind in SINGLE_GRAPH:
        assert len(dispatch.graphs(net)) <= 3, torchspore.graphs(net)
        runs = max(graph.runs for graph in dispatch.graphs(net))
        assert runs >= 9
