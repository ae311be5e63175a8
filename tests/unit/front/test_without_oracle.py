"""Operators that MindSpore 2.10 has no kernel for on the CPU, against NumPy and by hand."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops import operations as P

X = np.random.RandomState(4).randn(2, 3, 4, 5).astype(np.float32)


def test_einsum(mode: int) -> None:
    a, b = X[0, 0], X[1, 2].T
    np.testing.assert_allclose(ops.einsum("ij,jk->ik", Tensor(a), Tensor(b.copy())).asnumpy(), a @ b, rtol=1e-5)
    np.testing.assert_allclose(ops.einsum("bchw->bc", Tensor(X)).asnumpy(), X.sum((2, 3)), rtol=1e-4, atol=1e-5)


def test_layer_norm(mode: int) -> None:
    gamma, beta = X[0, 0, 0], X[0, 0, 1]
    expected = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * gamma + beta
    result = ops.layer_norm(Tensor(X), (5,), Tensor(gamma), Tensor(beta))
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-4, atol=1e-5)


def test_roll(mode: int) -> None:
    for shift, axis in ((2, None), (-1, 1), ((1, 2), (0, 3))):
        np.testing.assert_array_equal(ops.roll(Tensor(X), shift, axis).asnumpy(), np.roll(X, shift, axis))


def test_unfold(mode: int) -> None:
    array = Tensor(X).unfold(2).asnumpy()
    assert array.shape == (2, 3 * 4, 3 * 4)
    np.testing.assert_array_equal(array[0, :, 0], X[0, :, :2, :2].reshape(-1))


def test_conv_transpose2d_is_the_gradient_of_conv2d(mode: int) -> None:
    weight = np.random.RandomState(5).randn(3, 2, 2, 2).astype(np.float32)
    array = ops.conv_transpose2d(Tensor(X), Tensor(weight), stride=2).asnumpy()
    expected = np.zeros((2, 2, 8, 10), np.float32)
    for i in range(4):
        for j in range(5):
            expected[:, :, 2 * i:2 * i + 2, 2 * j:2 * j + 2] += np.einsum("bc,cokl->bokl", X[:, :, i, j], weight)
    np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)


def test_resize_bilinear(mode: int) -> None:
    line = Tensor(np.array([[[[0.0, 2.0]]]], np.float32))
    assert P.ResizeBilinear((1, 4))(line).asnumpy().reshape(-1).tolist() == [0, 1, 2, 2]
    assert P.ResizeBilinear((1, 3), align_corners=True)(line).asnumpy().reshape(-1).tolist() == [0, 1, 2]


def test_accidental_hits(mode: int) -> None:
    """The figures of the documents; MindSpore has it on Ascend alone."""
    true, drawn = Tensor(np.array([[1, 2], [0, 4], [3, 3]])), Tensor(np.array([0, 1, 2, 3, 4]))
    rows, indices, weights = ops.ComputeAccidentalHits(2)(true, drawn)
    assert rows.dtype == ms.int32 and rows.asnumpy().tolist() == [0, 0, 1, 1, 2, 2]
    assert indices.asnumpy().tolist() == [1, 2, 0, 4, 3, 3]
    assert (weights.asnumpy() == np.finfo(np.float32).min).all()
    with pytest.raises(ValueError, match=r"expected \(N, 1\)"):
        ops.ComputeAccidentalHits()(true, drawn)
