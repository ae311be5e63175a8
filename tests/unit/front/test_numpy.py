"""mindspore.numpy where there is no record: what MindSpore 2.10 refuses or has wrong on the CPU, and bad input in our words."""
from __future__ import annotations

import mindspore as ms
import mindspore.numpy as np
import numpy
import pytest
from mindspore import Tensor, nn

X = numpy.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]], numpy.float32)


def _gradient(call, x=X):
    return ms.grad(lambda t: (call(t) * np.arange(1.0, 1.0 + call(t).size).reshape(call(t).shape)).sum())(Tensor(x)).asnumpy()


def test_a_flip_has_its_gradient() -> None:
    weights = numpy.arange(1, 7, dtype=numpy.float32).reshape(2, 3)
    for turned, expected in (
        (lambda t: np.flip(t, 1), weights[:, ::-1]), (np.fliplr, weights[:, ::-1]), (np.flipud, weights[::-1]),
        (np.flip, weights[::-1, ::-1]),
    ):
        numpy.testing.assert_array_equal(_gradient(turned), expected)
    numpy.testing.assert_array_equal(_gradient(np.rot90), numpy.rot90(weights.reshape(3, 2), -1))


def test_select_has_its_gradient() -> None:
    expected = numpy.where(X > 0, 2, numpy.where(X < -1, 2 * X, 0)) * numpy.arange(1, 7).reshape(2, 3)
    numpy.testing.assert_allclose(_gradient(lambda t: np.select([t > 0, t < -1], [t * 2, t * t])), expected)


def test_numbers_and_lists_go_wherever_values_go() -> None:
    x = Tensor(X)
    numpy.testing.assert_array_equal(np.multiply(x, 2).asnumpy(), X * 2)
    numpy.testing.assert_array_equal(np.not_equal(x, 2).asnumpy(), X != 2)
    numpy.testing.assert_array_equal(np.less_equal(0.5, x).asnumpy(), X >= 0.5)
    numpy.testing.assert_allclose(np.float_power(x, 2).asnumpy(), X * X, rtol=1e-6)
    numpy.testing.assert_allclose(np.arctan2(1, [1.0, 2.0]).asnumpy(), numpy.arctan2(1, [1, 2]), rtol=1e-6)
    numpy.testing.assert_allclose(np.sin([0.5, 1]).asnumpy(), numpy.sin([0.5, 1]), rtol=1e-6)
    numpy.testing.assert_allclose(np.log(Tensor([1, 2])).asnumpy(), numpy.log([1, 2]), rtol=1e-6)


def test_a_dtype_that_is_requested_acts() -> None:
    assert np.clip(Tensor([1, 5]), 0, 2, dtype=np.float32).dtype == ms.float32
    assert np.corrcoef(Tensor([1.0, 2.0, 3.0]), dtype="float64").dtype == ms.float64
    assert np.add(Tensor([1]), 2, dtype="float16").dtype == ms.float16


def test_norms_of_matrices() -> None:
    for order in ("nuc", 2, -2):
        array = np.norm(Tensor(X), order).asnumpy()
        numpy.testing.assert_allclose(array, numpy.linalg.norm(X, order), rtol=1e-5)


def test_extremes_of_positions_without_values() -> None:
    assert np.argwhere(Tensor([0.0, 0.0])).shape == (0, 1)
    assert int(np.cross([1, 2], [3, 4])) == -2
    assert np.maximum(np.zeros((0, 3)), 1).shape == (0, 3)
    assert bool(np.max(Tensor([True, False]))) and not bool(np.min(Tensor([True, False])))
    assert np.cbrt(Tensor([0.0, 8.0])).asnumpy().tolist() == pytest.approx([0, 2])
    assert np.intersect1d([], [1]).shape == (0,) and not bool(np.sometrue(np.zeros((2, 0))))
    assert np.divmod([7, 8], [2, 3])[0].asnumpy().tolist() == [3, 2]


def test_what_is_no_array_is_refused_in_our_words() -> None:
    with pytest.raises(TypeError, match=r"array\(.*expected a Tensor, a number, a list or a tuple, got ndarray.\n\nhint: write Tensor"):
        np.array(X)
    with pytest.raises(TypeError, match=r"reshape.*expected a Tensor as x, got list"):
        np.reshape([1, 2], (2, 1))
    with pytest.raises(ValueError, match=r"zeros.*expected lengths of at least 0"):
        np.zeros((2, -1))
    with pytest.raises(ValueError, match=r"split.*expected a number of parts that divides 3"):
        np.split(Tensor([1.0, 2.0, 3.0]), 2)
    with pytest.raises(ValueError, match=r"sum.*axis=5: expected one from -2 to 1"):
        np.sum(Tensor(X), 5)


def test_a_function_pads() -> None:
    def seven(vector, width, axis, keywords):
        return vector * 0 + keywords["value"]

    assert np.pad(Tensor([1.0, 2.0]), 1, seven, value=7).asnumpy().tolist() == [7] * 4


def test_drawn_values_are_in_range() -> None:
    drawn = np.rand(200).asnumpy()
    assert 0 <= drawn.min() < drawn.max() < 1
    assert set(np.randint(2, 5, 200).asnumpy().tolist()) == {2, 3, 4}
    assert abs(float(np.randn(4000).mean())) < 0.2
    ms.set_seed(3)
    first = np.rand(4).asnumpy()
    ms.set_seed(3)
    numpy.testing.assert_array_equal(np.rand(4).asnumpy(), first)


class Attention(nn.Cell):
    """What a program writes: shapes that follow the input, numbers, a mask."""

    def construct(self, x):
        rows, columns = x.shape
        positions = np.arange(0, columns, dtype=np.float32)
        mask = np.tril(np.ones((columns, columns)))
        scores = np.matmul(np.transpose(x), x) / np.sqrt(np.full((1,), rows, np.float32))
        return np.where(mask > 0, scores, -1e9), np.concatenate((x, np.expand_dims(positions, 0)), 0), np.split(x, [1], 1)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_cell_in_both_modes(mode) -> None:
    ms.set_context(mode=mode)
    try:
        net = Attention()
        for x in (X, X[:, :2], numpy.concatenate([X, X])):
            scores, joined, parts = net(Tensor(x))
            width = x.shape[1]
            expected = numpy.where(numpy.tri(width) > 0, x.T @ x / numpy.sqrt(numpy.float32(len(x))), -1e9)
            numpy.testing.assert_allclose(scores.asnumpy(), expected, rtol=1e-5)
            numpy.testing.assert_array_equal(joined.asnumpy(), numpy.concatenate([x, numpy.arange(width, dtype=numpy.float32)[None]]))
            assert isinstance(parts, list) and parts[1].shape == (len(x), width - 1)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_fourier_transforms_have_a_second_home() -> None:
    from mindspore.numpy import fft

    assert fft.fft is ms.ops.fft and set(fft.__all__) <= set(dir(ms.ops))


def test_one_name_in_two_files_is_one_function() -> None:
    from mindspore.numpy import array_creations, array_ops, math_ops

    assert np.where is array_ops.where is array_creations.where and math_ops.sum_ is np.sum and np.max is np.amax is math_ops.amax
