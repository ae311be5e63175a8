"""`Tensor(np.array([1, 2]))` in construct: constants are part of the graph at every syntax level; what can change is not."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

import torchspore
from torchspore.errors import CompileTypeError

TABLE = np.array([1.0, 2.0], np.float32)
THREE = 3


class Net(nn.Cell):
    def __init__(self, values: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.size, self.array, self.values = 2, np.array([1.0, 2.0], np.float32), values

    def construct(self, x: Any) -> Any:
        return x + self.values(self, x)


@pytest.fixture(autouse=True, params=[ms.STRICT, ms.LAX], ids=["strict", "lax"])
def syntax(request: pytest.FixtureRequest) -> Iterator[int]:
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


@pytest.mark.parametrize(("values", "expected"), [
    (lambda net, x: Tensor(np.array([1, 2])), [2, 4]),
    (lambda net, x: Tensor(np.array([1, 2]) * 2, ms.float32), [3, 6]),
    (lambda net, x: Tensor(np.full((net.size,), THREE, np.float32)), [4, 5]),
    (lambda net, x: Tensor(np.ones(x.shape).astype(np.float32)), [2, 3]),
    (lambda net, x: Tensor(np.array([math.pi, 1], np.float32)), [1 + np.float32(math.pi), 3]),
    (lambda net, x: ms.tensor(np.sqrt(np.arange(2, dtype=np.float32)), ms.float32), [1, 3]),
])
def test_a_constant_is_part_of_one_graph(values: Callable[[Any, Any], Any], expected: list[float]) -> None:
    net = Net(values)
    for _ in range(3):
        np.testing.assert_array_equal(net(Tensor([1.0, 2.0])).asnumpy(), np.float32(expected))
    assert len(torchspore.graphs(net)) == 1


def test_a_number_that_changes_is_followed() -> None:
    net = Net(lambda net, x: Tensor(np.full((2,), net.size, np.float32)))
    assert net(Tensor([1.0, 2.0])).asnumpy().tolist() == [3, 4]
    net.size = 5
    assert net(Tensor([1.0, 2.0])).asnumpy().tolist() == [6, 7]


@pytest.mark.parametrize("values", [
    lambda net, x: Tensor(net.array * 2), lambda net, x: Tensor(TABLE[:2] * 1), lambda net, x: Tensor(np.random.rand(2).astype(np.float32)),
    lambda net, x: Tensor(np.array(net.array.tolist(), np.float32)),
])
def test_what_can_change_is_no_constant(syntax: int, values: Callable[[Any, Any], Any]) -> None:
    net, x = Net(values), Tensor([0.0, 0.0])
    if syntax == ms.STRICT:
        with pytest.raises(CompileTypeError, match="makes a Tensor of a NumPy array that is computed in the call"):
            net(x)
        return
    before = net(x).asnumpy().copy()
    net.array += 1
    TABLE[:] += 1
    try:
        assert not np.array_equal(net(x).asnumpy(), before)
    finally:
        TABLE[:] -= 1
