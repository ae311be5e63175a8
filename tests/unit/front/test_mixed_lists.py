"""Lists of Tensors and numbers as data of a Tensor and as indexes, with MindSpore 2.10's dtypes."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor


def one(value: Any, dtype: Any) -> Tensor:
    return Tensor(value, dtype)


LISTS = {
    "float16 and int": (lambda: [one(0.5, ms.float16), 1], ms.float32, [0.5, 1.0]),
    "int32 and int": (lambda: [one(1, ms.int32), 1], ms.int64, [1, 1]),
    "int32 and float": (lambda: [one(1, ms.int32), 1.5], ms.float32, [1.0, 1.5]),
    "float64 and float": (lambda: [one(0.5, ms.float64), 1.5], ms.float32, [0.5, 1.5]),
    "bools": (lambda: [one(True, ms.bool_), False], ms.bool_, [True, False]),
    "bool and int": (lambda: [one(True, ms.bool_), 3], ms.int64, [1, 3]),
    "nested": (lambda: [[one(1, ms.int32), 2], [3, one(4, ms.int64)]], ms.int64, [[1, 2], [3, 4]]),
    "vector and list": (lambda: [one([1.0, 2.0], ms.float32), [3, 4]], ms.float32, [[1.0, 2.0], [3.0, 4.0]]),
    "vector and array": (lambda: (one([1, 2], ms.int32), np.array([3, 4], np.int32)), ms.int64, [[1, 2], [3, 4]]),
}


@pytest.mark.parametrize("name", LISTS)
def test_data_of_tensors_and_numbers(name: str, mode: int) -> None:
    make, dtype, values = LISTS[name]
    tensor = Tensor(make())
    assert tensor.dtype == dtype and tensor.asnumpy().tolist() == values
    assert Tensor(make(), ms.float16).dtype == ms.float16


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(TypeError, match=r"expected Tensors and numbers of one shape, got \(2,\), \(3,\)"):
        Tensor([Tensor([1, 2]), [1, 2, 3]])


@pytest.mark.parametrize("index", [
    lambda i, j: ([i, 1], i, [0, j]), lambda i, j: (1, (0, 1, j)), lambda i, j: ([0, j],), lambda i, j: (i, [0, j], [i, j]),
])
def test_indexes_of_tensors_and_numbers(index: Any, mode: int) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    expected = values[index(0, 1)]
    read = ms.jit(lambda x, i, j: x[index(i, j)])
    assert np.array_equal(Tensor(values)[index(Tensor(0), Tensor(1))].asnumpy(), expected)
    assert np.array_equal(read(Tensor(values), Tensor(0), Tensor(1)).asnumpy(), expected)
    x = Tensor(values)
    x[index(Tensor(0), Tensor(1))] = -1
    values[index(0, 1)] = -1
    assert np.array_equal(x.asnumpy(), values)
