"""Products of vectors and Jacobians: vectors of another structure or dtype are refused, as in MindSpore 2.10."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.nn.grad.cell_grad import Jvp, Vjp


class _Cube(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x**3


class _Product(nn.Cell):
    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y


@pytest.mark.parametrize("call", [
    lambda x: Jvp(_Cube())(x, (x, x)), lambda x: Jvp(_Cube())(x, (x,)), lambda x: Jvp(_Product())(x, x, x),
    lambda x: Vjp(_Cube())(x, (x, x)), lambda x: Vjp(_Cube())(x, (x,)), lambda x: ops.jvp(_Cube(), x, (x,)),
    lambda x: ops.vjp(_Cube(), x)[1]((x, x)), lambda x: ops.vjp(_Cube(), 1), lambda x: ops.jvp(_Cube(), x, x.astype(ms.int32)),
])
def test_vectors_of_another_structure_or_dtype_are_refused(mode: int, call: Callable[[Tensor], Any]) -> None:
    with pytest.raises(TypeError, match=r"expected|Tensor"):
        call(Tensor(np.ones((2, 2), np.float32)))


def test_vectors_of_the_structure_are_multiplied(mode: int) -> None:
    x, v = Tensor([[1.0, 2.0]]), Tensor([[1.0, 3.0]])
    assert Jvp(_Cube())(x, v)[1].asnumpy().tolist() == Vjp(_Cube())(x, v)[1].asnumpy().tolist() == [[3.0, 36.0]]
    assert Jvp(_Product())(x, x, (v, v))[1].asnumpy().tolist() == [[2.0, 12.0]]
