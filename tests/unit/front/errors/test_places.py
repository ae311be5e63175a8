"""Where an error says that it happened: the user's line, in both modes and inside gradient transforms; and what it leaves behind."""
from __future__ import annotations

import inspect

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.engine.tensors import tensor as engine


class Wrong(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 3)

    def construct(self, x):
        y = self.dense(x)
        return ops.matmul(y, x)


LINE = inspect.getsourcelines(Wrong.construct)[1] + 2
MESSAGE = (
    f"{__file__}:{LINE}: matmul(input: Float32[2, 3], other: Float32[2, 3]): expected as many rows in other as input has columns: "
    "shapes (2, 3) and (2, 3) have 2 and 3.\n\nhint: transpose other: other.swapaxes(-1, -2)."
)
X, SQUARE = Tensor(np.zeros((2, 3), np.float32)), Tensor(np.zeros((3, 3), np.float32))
WAYS = {
    "call": lambda net: net(X), "gradient": lambda net: ms.grad(net)(X),
    "weights": lambda net: ms.grad(net, None, net.trainable_params())(X),
    "jit": lambda net: ms.jit(lambda x: net(x))(X), "nested": lambda net: ms.grad(ms.grad(net))(X),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_line_in_construct_comes_first(way: str, mode: int) -> None:
    net = Wrong()
    with pytest.raises(ValueError) as caught:
        WAYS[way](net)
    assert str(caught.value) == MESSAGE


@pytest.mark.parametrize("way", WAYS)
def test_nothing_stays_open(way: str, mode: int) -> None:
    net = Wrong()
    before = net.dense.weight.asnumpy().copy()
    with pytest.raises(ValueError):
        WAYS[way](net)
    assert engine.active == 0 and engine.frame() is None
    assert type(net.dense.weight.torch()).__name__ == "Tensor" and not net.dense.weight.torch().requires_grad
    assert np.array_equal(before, net.dense.weight.asnumpy())
    assert net(SQUARE).shape == (3, 3)


def test_a_wrong_call_of_an_inner_cell_names_the_inner_cell(mode: int) -> None:
    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 3)

        def construct(self, x):
            return self.dense(x, x)

    line = inspect.getsourcelines(Outer.construct)[1] + 1
    with pytest.raises(TypeError) as caught:
        Outer()(X)
    assert str(caught.value) == f"{__file__}:{line}: Dense(Float32[2, 3], Float32[2, 3]): expected Dense.construct(x)."


def test_a_type_error_of_the_user_passes(mode: int) -> None:
    class RaisesTypeError(nn.Cell):
        def construct(self, x):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        RaisesTypeError()(X)
