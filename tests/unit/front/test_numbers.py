"""Which dtype and value an operation has, where MindSpore is not torch."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P

NUMBERS = {
    "float": (1.0, ms.float32),
    "int": (1, ms.int64),
    "bool": (True, ms.bool_),
    "floats": ([1.0, 2.0], ms.float32),
    "ints": ([[1, 2]], ms.int64),
    "mixed": ((1, 2.5), ms.float32),
    "float64 array": (np.zeros(2), ms.float64),
    "float32 array": (np.zeros(2, np.float32), ms.float32),
    "uint32 array": (np.zeros(2, np.uint32), ms.uint32),
    "float64 scalar": (np.float64(1.5), ms.float64),
    "bools": ([True, False], ms.bool_),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_the_dtype_of_what_a_tensor_is_created_from(kind: str) -> None:
    data, dtype = NUMBERS[kind]
    assert Tensor(data).dtype == dtype


def test_a_requested_dtype_wins() -> None:
    assert Tensor(np.zeros(2), ms.float16).dtype == ms.float16
    assert Tensor([1, 2], ms.int32).dtype == ms.int32
    assert Tensor(Tensor([1, 2]), ms.float32).dtype == ms.float32


def test_a_mean_of_integers_is_an_integer(mode: int) -> None:
    x = Tensor(np.array([1, 2, 4], np.int32))
    for mean in (ops.mean(x), x.mean(), P.ReduceMean()(x)):
        assert mean.dtype == ms.int32 and int(mean) == 2
    assert int(Tensor(np.array([-1, -2, -4], np.int32)).mean()) == -2


def test_an_integer_to_a_negative_power_is_zero_but_for_ones() -> None:
    x = Tensor(np.array([2, 1, -1, -3], np.int32))
    assert (x ** -1).asnumpy().tolist() == [0, 1, -1, 0]
    assert (x ** -2).asnumpy().tolist() == [0, 1, 1, 0]
    assert (x ** -1).dtype == ms.int32


def test_std_and_var_are_the_populations() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0])
    assert float(x.std()) == pytest.approx(np.std([1, 2, 3, 4]))
    assert float(x.var()) == pytest.approx(1.25)
    assert float(ops.std(x)) == pytest.approx(np.std([1, 2, 3, 4]))
    assert float(Tensor(np.array([1, 2, 3, 4], np.int32)).std()) == pytest.approx(np.std([1, 2, 3, 4]))
    assert float(x.std(ddof=1)) == pytest.approx(np.std([1, 2, 3, 4], ddof=1))


def test_an_array_may_stand_left_of_a_tensor_but_not_right() -> None:
    array = np.ones(2, np.float32)
    result = array + Tensor([1.0, 2.0])
    assert np.asarray(result).tolist() == [2, 3]
    with pytest.raises(TypeError):
        Tensor([1.0, 2.0]) + array


def test_a_numpy_scalar_may_stand_on_both_sides() -> None:
    x = Tensor([1.0, 2.0])
    assert (x + np.float32(1)).asnumpy().tolist() == [2, 3]
    assert (x > np.float32(1)).asnumpy().tolist() == [False, True]
    assert (x == np.float32(2)) is False and (x != np.float32(2)) is True        # as in MindSpore


def test_products_take_one_dtype(mode: int) -> None:
    a, b = Tensor(np.ones((2, 2), np.float32)), Tensor(np.ones((2, 2), np.float16))
    for call in (lambda: ops.matmul(a, b), lambda: P.MatMul()(a, b), lambda: P.BatchMatMul()(a, b), lambda: a @ b):
        with pytest.raises(TypeError):
            call()
    bias = Tensor(np.ones(2, np.float16))
    for call in (lambda: P.BiasAdd()(a, bias), lambda: ops.bias_add(a, bias)):
        with pytest.raises(TypeError):
            call()


def test_the_dtypes_of_argmax() -> None:
    x = Tensor([[1.0, 3.0, 2.0]])
    assert ops.argmax(x, 1).dtype == ms.int64
    assert x.argmax(1).dtype == ms.int64
    assert P.Argmax()(x).dtype == ms.int32
    assert P.Argmin()(x).dtype == ms.int32


def test_a_zero_d_tensor_promotes_like_any_other() -> None:
    assert (Tensor(np.ones(2, np.int32)) + Tensor(1)).dtype == ms.int64
    assert (Tensor(np.ones(2, np.float16)) + Tensor(1.0)).dtype == ms.float32
    assert (Tensor(np.ones(2, np.int32)) + 1).dtype == ms.int32
    assert (Tensor(np.ones(2, np.float16)) + 1.5).dtype == ms.float16
    assert (Tensor(np.ones(2, np.int32)) / 2).dtype == ms.float32


def test_uint32_is_widened_computed_and_narrowed(mode: int) -> None:
    x, y = (Tensor(np.array(values, np.uint32)) for values in ([1, 2, 4_000_000_000], [1, 3, 5]))
    assert (x + y).dtype == ms.uint32 and (x + y).asnumpy().tolist() == [2, 5, 4_000_000_005 % 2**32]
    assert (x > y).asnumpy().tolist() == [False, False, True]
    assert x.asnumpy().dtype == np.uint32
    assert x.astype(ms.int64).asnumpy().tolist() == [1, 2, 4_000_000_000]
    assert int(x.max()) == 4_000_000_000
    assert int(x[2]) == 4_000_000_000


@pytest.mark.parametrize("dtype", [ms.uint16, ms.uint32, ms.uint64])
def test_wide_unsigned_integers_do_not_mix_with_others(dtype: object) -> None:
    x = Tensor([1, 2], dtype)
    with pytest.raises(TypeError):
        x + Tensor(np.ones(2, np.int32))
    with pytest.raises(TypeError):
        x == Tensor(np.ones(2, np.int32))  # noqa: B015


def test_uint32_class_numbers_are_refused_where_mindspore_refuses_them() -> None:
    labels, logits = Tensor(np.array([0, 1], np.uint32)), Tensor(np.zeros((2, 3), np.float32))
    for call in (
        lambda: ops.one_hot(labels, 3, Tensor(1.0), Tensor(0.0)), lambda: ops.cross_entropy(logits, labels),
        lambda: ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True)(logits, labels),
    ):
        with pytest.raises(TypeError):
            call()


class Unsigned(nn.Cell):
    def construct(self, x):
        values, indices = ops.max(x, 0)
        return x.max(), x.sum(), ops.cumsum(x, 0), ops.argmax(x), values, indices, ops.clamp(x, 1, 3), ops.gather(x, Tensor([1, 0]), 0)


def test_uint32_inside_a_cell(mode: int) -> None:
    net, x = Unsigned(), Tensor(np.array([7, 2], np.uint32))
    for _ in range(2):
        result = net(x)
        assert [t.asnumpy().tolist() for t in result] == [7, 9, [7, 9], 0, 7, 0, [3, 2], [2, 7]]
        assert [t.dtype for t in result] == [ms.uint32] * 3 + [ms.int64, ms.uint32, ms.int64] + [ms.uint32] * 2


def test_tuple_to_array_is_int32_or_float32(mode: int) -> None:
    for numbers, dtype in (((1, 2, 3), ms.int32), ((1.5, 2), ms.float32), ((True,), ms.int32)):  # as seen in 2.10
        for array in (ops.tuple_to_array(numbers), P.TupleToArray()(numbers)):
            assert (array.dtype, array.asnumpy().tolist()) == (dtype, list(map(float, numbers)))
    with pytest.raises(TypeError) as caught:
        ops.tuple_to_array([1])
    assert str(caught.value).endswith("tuple_to_array([1]): expected a tuple of numbers.\n\nhint: write Tensor(...) for other data.")
