"""Numbers that a dtype can't hold, and the dtypes that names and Python types mean."""
from __future__ import annotations

import operator
import sys
from typing import Any

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

VALUES = {"uint8": [0, 44, 255], "int8": [-128, 44, 127], "int32": [-(2**31), 44, 2**31 - 1], "uint64": [0, 44, 2**64 - 1]}
NUMBERS = (-1, 300, -300, 2**31, 2**40, -(2**40), 2**63, -(2**70))
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


class Compare(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x > -1, x < 300, x == 300, x <= 300


@pytest.mark.parametrize("dtype", VALUES)
def test_a_comparison_means_the_number_that_is_written(dtype: str) -> None:
    x = Tensor(np.array(VALUES[dtype], dtype))
    for compare in COMPARISONS:
        for number in NUMBERS:
            assert compare(x, number).asnumpy().tolist() == [compare(value, number) for value in VALUES[dtype]], (compare, number)


def test_a_comparison_in_both_modes(mode: int) -> None:
    result = Compare()(Tensor(np.array([0, 255], np.uint8)))
    assert [output.asnumpy().tolist() for output in result] == [[True, True], [True, True], [False, False], [True, True]]


def test_large_unsigned_integers_have_their_order() -> None:
    x, y = (Tensor(np.array(values, np.uint64)) for values in ([0, 1, 2**64 - 1], [1, 2**63, 5]))
    assert (x < y).asnumpy().tolist() == [True, True, False] and (x >= y).asnumpy().tolist() == [False, False, True]


def test_extremes_and_bounds_of_small_integers() -> None:
    x = Tensor(np.array([1, 255], np.uint8))
    assert mnp.maximum(x, -1).asnumpy().tolist() == [1, 255] == mnp.minimum(x, Tensor(300)).asnumpy().tolist()
    assert mnp.clip(x, -1, 300).asnumpy().tolist() == [1, 255]
    assert mnp.clip(Tensor([1, 2]), Tensor([1.0]), 1.5).asnumpy().tolist() == [1.0, 1.5]


@pytest.mark.parametrize(("expected", "dtype"), [
    (float, ms.float64), ("float", ms.float64), (int, ms.int64), ("int", ms.int64), ("long", ms.int64), ("short", ms.int16),
    ("byte", ms.int8), ("uint", ms.uint64), ("Float32", ms.float32), ("INT32", ms.int32), ("half", ms.float16),
    ("bool_", ms.bool_), (np.float32, ms.float32),
])
def test_what_astype_takes(expected: Any, dtype: Any) -> None:
    assert Tensor([1.5]).astype(expected).dtype == dtype


def test_dtypes_of_created_tensors_and_of_results() -> None:
    assert mnp.ones(2, int).dtype == ms.int32 and mnp.full((2,), 1.5, "float").dtype == ms.float32
    assert mnp.ones(2, "Int32").dtype == ms.int32
    assert mnp.arange(2, dtype=int).dtype == ms.int64 and mnp.mean(Tensor([1.0]), dtype=float).dtype == ms.float64
    assert mnp.average(Tensor([1, 2]), returned=True)[1].dtype == ms.int64
    assert ops.Trace()(Tensor(np.array([[1, 255], [0, 3]], np.uint8))).dtype == ms.uint8
    assert ops.histc(Tensor([1.5, -2.0], ms.float16), 2).dtype == ms.float32
    assert mnp.trapz(Tensor([1.5, -2.0], ms.float16)).dtype == ms.float16
    assert mnp.unwrap(Tensor([1.5, -2.0], ms.float16)).dtype == ms.float32


def test_a_stack_of_one_tensor_has_one_more_axis() -> None:
    assert ops.stack(ops.ones((2, 3)), 1).shape == (2, 1, 3) and ops.Stack()(ops.ones((2, 3))).shape == (1, 2, 3)


def test_bessel_functions_of_negative_numbers() -> None:
    x = Tensor([-1.0, 0.0])
    assert ops.BesselK0()(x).asnumpy().tolist() == [np.inf, np.inf] == ops.BesselK1e()(x).asnumpy().tolist()
    assert ops.BesselY0()(x).asnumpy().tolist() == [-np.inf, -np.inf]


def test_numbers_that_say_how_much_is_done_take_no_time() -> None:
    assert mnp.matrix_power(Tensor([[1, 1], [1, 0]]), 10).asnumpy().tolist() == [[89, 55], [55, 34]]
    assert mnp.matrix_power(Tensor([[1.0, 0.0], [0.0, 1.0]]), 2**31).asnumpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert [index.shape for index in mnp.tril_indices(2, 2**63)] == [(4,), (4,)]
    for call in (lambda: mnp.diag_indices(3, 2**63), lambda: mnp.polyint([1, 2], 2**31)):
        with pytest.raises(ValueError, match="expected"):
            call()


def test_a_deviation_of_nothing_is_no_number() -> None:
    assert np.isnan(mnp.std(ops.zeros((0, 3)), 0, 1).asnumpy()).all()
    with pytest.raises(TypeError, match="bins=True: expected an int"):
        mnp.histogram_bin_edges(Tensor([1.0, 2.0]), True)


def test_a_seed_that_holds_itself_is_reported() -> None:
    deep: Any = 1.0
    for _ in range(2000):
        deep = [deep]
    # Python 3.14 shows it: there the depth that is available depends on the size of the stack.
    shown = "<list that can't be shown>" if sys.version_info < (3, 14) else r"\[{28} \.\. \]{28}"
    with pytest.raises(TypeError, match=f"seed2={shown}\\): expected an int, got list"):
        ops.UniformReal(1, deep)


def test_inv_of_a_tensor_is_one_over_each_element() -> None:
    x = Tensor([[1.0, 2.0], [4.0, 5.0]])
    assert x.inv().asnumpy().tolist() == [[1.0, 0.5], [0.25, np.float32(0.2)]]
    assert np.allclose(x.inverse().asnumpy() @ x.asnumpy(), np.eye(2), atol=1e-5)


def test_figures_of_truth_and_of_complex_numbers() -> None:
    x = Tensor(np.array([[1, 255], [0, 3]], np.uint8))
    assert ops.ReduceAll()(x).dtype == ms.bool_ == ops.ReduceAny()(Tensor(2)).dtype
    assert ops.ReduceAll()(x, 0).asnumpy().tolist() == [False, True]
    assert ops.SquaredDifference()(Tensor([1 + 2j]), Tensor([-1 + 0j])).asnumpy().tolist() == [8 + 0j]


BIG = Tensor(np.array([2**63 + 5, 3, 7], np.uint64))
EXACT: dict[str, tuple[Any, Any]] = {
    "max": (lambda: BIG.max(), 2**63 + 5),
    "min": (lambda: BIG.min(), 3),
    "argmax": (lambda: BIG.argmax(), 0),
    "amax by name": (lambda: ops.amax(input=BIG), 2**63 + 5),
    "ReduceMin": (lambda: ops.ReduceMin()(BIG), 3),
    "ArgMaxWithValue": (lambda: ops.ArgMaxWithValue()(BIG)[1], 2**63 + 5),
    "topk": (lambda: ops.topk(BIG, 2)[0], [2**63 + 5, 7]),
    "cummax": (lambda: ops.cummax(BIG, 0)[0], [2**63 + 5] * 3),
    "clamp": (lambda: ops.clamp(BIG, 4, 2**40), [2**40, 4, 7]),
    "clip from below 0": (lambda: BIG.clip(-1, 2**63), [2**63, 3, 7]),
    "relu": (lambda: ops.relu(BIG), [2**63 + 5, 3, 7]),
    "maximum": (lambda: ops.maximum(BIG, Tensor([4], ms.uint64)), [2**63 + 5, 4, 7]),
    "minimum": (lambda: ops.minimum(BIG, Tensor([4], ms.uint64)), [4, 3, 4]),
    "floor_divide": (lambda: ops.floor_divide(BIG, Tensor([2], ms.uint64)), [2**62 + 2, 1, 3]),
    "by itself": (lambda: BIG // BIG, [1, 1, 1]),
    "by a large one": (lambda: Tensor([3], ms.uint64) // BIG, [0, 1, 0]),
    "remainder": (lambda: BIG % Tensor([10], ms.uint64), [(2**63 + 5) % 10, 3, 7]),
    "fmod": (lambda: ops.fmod(BIG, BIG - Tensor([1], ms.uint64)), [1, 1, 1]),
    "sum": (lambda: BIG.sum(), 2**63 + 15),
    "int": (lambda: Tensor(int(BIG[0]) - 2**63), 5),
}


@pytest.mark.parametrize("name", EXACT)
def test_large_unsigned_integers_are_no_negative_ones(name: str, mode: int) -> None:
    call, expected = EXACT[name]
    assert call().asnumpy().tolist() == expected


def test_unsigned_quotients_are_pythons() -> None:
    draw = np.random.RandomState(0)
    values = [int(v) for v in draw.randint(0, 2**63, 40, np.uint64)]
    values = [*values, *(v + 2**63 for v in values), 1, 2**63 - 1, 2**63, 2**64 - 1]
    x, y = (Tensor(np.array(array, np.uint64)) for array in (values, [values[(7 * i) % len(values)] for i in range(len(values))]))
    pairs = list(zip(values, y.asnumpy().tolist()))
    assert (x // y).asnumpy().tolist() == [a // b for a, b in pairs] and (x % y).asnumpy().tolist() == [a % b for a, b in pairs]


@pytest.mark.parametrize("values", [[2**63], np.array([2**63]), np.array([2**63], np.ulonglong)], ids=["a list", "an array", "ulonglong"])
def test_tensors_of_large_unsigned_integers(values: Any) -> None:
    x = Tensor(values)
    assert x.dtype == ms.uint64 and x.asnumpy().tolist() == [2**63] and Tensor(values, ms.uint64).asnumpy().tolist() == [2**63]
