"""A Tensor that a call makes of a number is that number for operators that must know it, and ends no capture."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import functional as F


def _written(x: Any) -> Any:
    end = Tensor(3, ms.int32)
    end += 1
    return x + F.range(Tensor(0, ms.int32), end, Tensor(1, ms.int32))


CALLS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "range": (lambda x: x + F.range(Tensor(0, ms.int32), Tensor(4, ms.int32), Tensor(1, ms.int32)), [2, 3, 4, 5]),
    "primitive": (lambda x: x + ops.Range()(Tensor(3, ms.int32), Tensor(-1, ms.int32), Tensor(-1, ms.int32)), [5, 4, 3, 2]),
    "arange": (lambda x: x + ops.arange(Tensor(0.5), Tensor(4.5), Tensor(1.0)), [2.5, 3.5, 4.5, 5.5]),
    "linspace": (lambda x: x + ops.linspace(Tensor(0, ms.float32), Tensor(3, ms.float32), 4), [2, 3, 4, 5]),
    "logspace": (lambda x: x + ops.logspace(Tensor(0, ms.float32), Tensor(3, ms.float32), 4), [3, 12, 102, 1002]),
    "of a length": (lambda x: x + F.range(Tensor(0, ms.int32), Tensor(x.shape[0], ms.int32), Tensor(1, ms.int32)), [2, 3, 4, 5]),
    "written into": (_written, [2, 3, 4, 5]),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_one_graph(name: str) -> None:
    call, expected = CALLS[name]

    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return call(x)

    level = ms.get_context("jit_syntax_level")
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    try:
        net = Net()
        for _ in range(2):
            np.testing.assert_allclose(net(Tensor(np.full(4, 2), ms.int32)).asnumpy(), expected, rtol=1e-6)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=level)


def test_draws_between_two() -> None:
    class Net(nn.Cell):
        def construct(self) -> Any:
            low, high = Tensor(3, ms.int32), Tensor(5, ms.int32)
            return ops.randint(low, high, (40,)), ops.UniformInt()((40,), low, high)

    level = ms.get_context("jit_syntax_level")
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    try:
        for drawn in Net()():
            assert set(drawn.asnumpy().tolist()) == {3, 4}
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=level)
