"""Jacobians, products with them and slices of functions that take gradients themselves; held against formulas and differences."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from torchspore.engine.autograd.grad import GradientInside

X = np.array([1.0, 2.0], np.float32)
V = np.array([1.0, 0.5], np.float32)


def quartic(x: Any) -> Any:
    return (x ** 4).sum()


def branched(x: Any) -> Any:
    y = ops.tanh(x * x[0])
    if y.sum() > 0:
        y = y * y
    return y.sum()


@pytest.mark.parametrize("function", [quartic, ms.jit(quartic)], ids=["plain", "jit"])
def test_second_derivatives(mode: int, function: Any) -> None:
    gradient, x, v = ms.grad(function), Tensor(X), Tensor(V)
    hessian = np.diag(12 * X ** 2)
    value, product = ops.jvp(gradient, x, v)
    np.testing.assert_allclose(value.asnumpy(), 4 * X ** 3, rtol=1e-6)
    np.testing.assert_allclose(product.asnumpy(), hessian @ V, rtol=1e-6)
    for jacobian in (ms.jacrev, ms.jacfwd):
        np.testing.assert_allclose(jacobian(gradient)(x).asnumpy(), hessian, rtol=1e-6)


def test_what_a_gradient_may_be_nested_in(mode: int) -> None:
    x, v = Tensor(X), Tensor(V)
    gradient = ms.grad(quartic)
    third = ms.jacrev(ms.jacfwd(gradient))(x).asnumpy()
    assert third[0, 0, 0] == 24 and third[1, 1, 1] == 48 and np.count_nonzero(third) == 2
    assert ms.grad(lambda x: ops.jvp(gradient, x, v)[1].sum())(x).asnumpy().tolist() == [24, 24]
    assert ms.jit(lambda x: ops.jvp(gradient, x, v)[1])(x).asnumpy().tolist() == [12, 24]
    rows = ops.vmap(lambda x: ops.jvp(gradient, x, v)[1])(Tensor(np.stack([X, 2 * X])))
    assert rows.asnumpy().tolist() == [[12, 24], [48, 96]]
    by_both = ms.jacfwd(lambda x, y: (ms.grad(lambda q: (q ** 3 * y).sum())(x), x + y), (0, 1))(x, v)
    assert [[part.asnumpy().tolist() for part in row] for row in by_both] == [
        [[[6, 0], [0, 6]], [[3, 0], [0, 12]]], [[[1, 0], [0, 1]], [[1, 0], [0, 1]]],
    ]
    result, product, other = ops.jvp(lambda x: (gradient(x), x * 2), x, v, has_aux=True)
    assert (result.asnumpy().tolist(), product.asnumpy().tolist(), other.asnumpy().tolist()) == ([4, 32], [12, 24], [2, 4])
    output, aux = ms.jacrev(lambda x: (gradient(x), x * 2), has_aux=True)(x)
    assert output.asnumpy().tolist() == [[12, 0], [0, 48]] and aux.asnumpy().tolist() == [2, 4]


@pytest.mark.parametrize("sign", [1, -1])
def test_both_sides_of_a_branch_that_a_tensor_decides(mode: int, sign: int) -> None:
    x, v, step = Tensor(X * np.array([1, sign], np.float32)), Tensor(V), 1e-3
    gradient = ms.grad(ms.jit(branched))
    differences = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(ops.jvp(gradient, x, v)[1].asnumpy(), differences.asnumpy(), atol=2e-3)
    np.testing.assert_allclose(ms.jacrev(gradient)(x).asnumpy() @ V, differences.asnumpy(), atol=2e-3)


def test_a_series_says_that_it_takes_no_gradient_inside() -> None:
    with pytest.raises(GradientInside, match="a gradient inside of this transform: expected a function that takes none"):
        ops.derivative(ms.grad(quartic), Tensor(X), 2)
