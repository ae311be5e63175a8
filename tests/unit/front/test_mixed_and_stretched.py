"""Operands of other dtypes and shapes than each other's, by definition: where MindSpore 2.10 reads beyond its memory or loses values."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops


def of(*shape: int, start: float = 0.5) -> Tensor:
    count = int(np.prod(shape))
    return Tensor((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape).astype(np.float32))


def test_vector_products_are_stretched() -> None:
    for left, right in (((4, 3), (3,)), ((3,), (4, 3)), ((2, 4, 3), (4, 3)), ((2, 1, 3), (4, 3)), ((1, 3), (4, 3))):
        a, b = of(*left), of(*right, start=1.0)
        expected = np.cross(*np.broadcast_arrays(a.asnumpy(), b.asnumpy()))
        axis = None if expected.shape.index(3) == expected.ndim - 1 else -1
        np.testing.assert_allclose(ops.cross(a, b, axis).asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_weights_of_sixteen_bits_with_an_input_of_thirty_two(mode: int) -> None:
    ms.set_context(mode=mode)
    single, half = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    for parameter in half.get_parameters():
        parameter.set_dtype(ms.float16)
    x = of(6, 3)
    for training in (True, False):
        expected, result = single.set_train(training)(x), half.set_train(training)(x)
        assert result.dtype == ms.float32
        np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), atol=2e-3)
    assert half.moving_mean.dtype == ms.float16
    np.testing.assert_allclose(half.moving_mean.asnumpy(), single.moving_mean.asnumpy(), atol=1e-3)
    result, expected = (ms.grad(lambda x, net=net: (net.set_train()(x) * of(6, 3, start=1.0)).sum())(x) for net in (half, single))
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), atol=2e-3)


def test_labels_that_need_more_time_than_there_is() -> None:
    labels = Tensor(np.array([[0, 0], [0, 1], [1, 0]])), Tensor(np.array([1, 2, 1], np.int32)), Tensor(np.array([1, 4], np.int32))
    for merged in (True, False):
        losses, gradient = ops.CTCLoss(False, merged, True)(of(4, 2, 4), *labels)
        assert losses.asnumpy()[0] == 0 and not gradient.asnumpy()[:, 0].any() and np.isfinite(losses.asnumpy()).all()
        assert np.isinf(ops.CTCLoss(False, merged, False)(of(4, 2, 4), *labels)[0].asnumpy()[0])


@pytest.mark.parametrize("options", [(True, True), (True, False), (False, False)])
def test_the_gradient_of_a_ctc_loss_is_its_derivative(options: tuple[bool, bool]) -> None:
    labels = Tensor(np.array([[0, 0], [0, 1], [1, 0]])), Tensor(np.array([1, 1, 2], np.int32)), Tensor(np.array([4, 3], np.int32))
    loss, x = ops.CTCLoss(*options), of(4, 2, 4)
    np.testing.assert_allclose(ms.grad(lambda x: loss(x, *labels)[0].sum())(x).asnumpy(), loss(x, *labels)[1].asnumpy(), atol=1e-5)

    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return loss(x, *labels)[0]

    ms.set_context(mode=ms.GRAPH_MODE)
    np.testing.assert_allclose(Net()(x).asnumpy(), loss(x, *labels)[0].asnumpy(), rtol=1e-5)


def test_a_loss_of_single_labels_counts_each_way() -> None:
    """Two times, labels (1, 1) and (1,): the chance that both times show 1, and that one does and the other shows the blank."""
    x = of(2, 2, 3)
    chances = np.exp(x.asnumpy()) / np.exp(x.asnumpy()).sum(-1, keepdims=True)
    labels = Tensor(np.array([[0, 0], [0, 1], [1, 0]])), Tensor(np.array([1, 1, 1], np.int32)), Tensor(np.array([2, 2], np.int32))
    array = ops.CTCLoss(False, False)(x, *labels)[0].asnumpy()
    first, second = chances[:, 0], chances[:, 1]
    expected = [-np.log(first[0, 1] * first[1, 1]), -np.log(second[0, 1] * second[1, 2] + second[0, 2] * second[1, 1])]
    np.testing.assert_allclose(array, expected, rtol=1e-5)


def test_a_target_that_does_not_fit() -> None:
    with pytest.raises(ValueError) as caught:
        ops.cosine_embedding_loss(of(3, 4), of(3, 4), Tensor([1, -1]))
    assert "expected a target of shape (3,), one for each cosine, or one for all, got (2,)." in str(caught.value)


def test_products_of_dtypes_that_have_none() -> None:
    two = Tensor(np.ones((2, 2), np.uint16))
    with pytest.raises(TypeError) as caught:
        ops.mm(two, two)
    assert "mm(input: UInt16[2, 2], mat2: UInt16[2, 2]): expected another dtype than UInt16." in str(caught.value)


def test_scattered_division_of_the_largest_numbers() -> None:
    top = 2**64 - 2
    table = Parameter(Tensor(np.array([[top, 7], [9, top]], np.uint64)), name="table")
    ops.scatter_div(table, Tensor(np.array([0, 0], np.int32)), Tensor(np.array([[2, 2], [3, 1]], np.uint64)))
    assert table.asnumpy().tolist() == [[top // 6, 3], [9, top]]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_integers_are_pushed_forward(mode: int) -> None:
    ms.set_context(mode=mode)
    a, b = Tensor(np.array([1, 2, 3], np.int32)), Tensor(np.array([2, 2, 5], np.int32))
    for result, product, expected in (
        (*ops.jvp(lambda x, y: x * y, (a, b), (a, b)), ([2, 4, 15], [4, 8, 30])),
        (*ops.jvp(lambda x: x * x + x, a, b), ([2, 6, 12], [6, 10, 35])),
    ):
        assert result.dtype == product.dtype == ms.int32 and (result.asnumpy().tolist(), product.asnumpy().tolist()) == expected
    twice = ops.vmap(lambda x, y: ops.jvp(lambda x, y: x * y, (x, y), (x, y)))(a, b)
    assert [gradient.asnumpy().tolist() for gradient in twice] == [[2, 4, 15], [4, 8, 30]]
