"""Indices of lists and tuples, as programs write them; a graph holds their numbers."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES = {
    "list": ([0, 2], [0, 2]),
    "tuple of columns": ((slice(None), (0, 2)), (slice(None), [0, 2])),
    "two tuples": (((0, 1), (1, 2)), ([0, 1], [1, 2])),
    "one tuple": (((0, 1),), ([0, 1],)),
    "truth values": ([True, False, True], [True, False, True]),
}


@pytest.mark.parametrize(("index", "meant"), INDICES.values(), ids=INDICES)
def test_lists_and_tuples_pick_elements(index: object, meant: object, mode: int) -> None:
    @ms.jit
    def picked(x):
        return x[index]

    np.testing.assert_array_equal(picked(Tensor(ROWS)).asnumpy(), ROWS[meant])


@pytest.mark.parametrize(("index", "meant"), INDICES.values(), ids=INDICES)
def test_lists_and_tuples_are_written_to(index: object, meant: object, mode: int) -> None:
    @ms.jit
    def changed(x):
        y = x * 1
        y[index] = 7
        return y

    expected = ROWS.copy()
    expected[meant] = 7
    np.testing.assert_array_equal(changed(Tensor(ROWS)).asnumpy(), expected)


def test_a_list_of_numbers_is_written_in_the_tensors_dtype(mode: int) -> None:
    x = Tensor(np.zeros((2, 2)), ms.float64)
    x[0] = [0.1, 1 / 3]
    assert x.asnumpy()[0].tolist() == [0.1, 1 / 3]
    n = Tensor(np.zeros(2), ms.int32)
    n[:] = [1, 2]
    assert n.asnumpy().tolist() == [1, 2]
