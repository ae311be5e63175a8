"""LstsqV2 has the four results of MindSpore 2.10 for each driver."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from mindspore.ops.auto_generate import LstsqV2

A = np.array([[[1, 2], [3, 4], [5, 7]], [[2, 1], [0, 1], [1, 1]]], np.float32)
B = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
SOLUTION = [[-0.0714296, 0.5000007], [-0.5, 5.5]]


@pytest.mark.parametrize("driver,residuals,ranks,values", [
    ("gelsd", 2, [2, 2], [[10.191427, 0.3671376], [2.6762435, 0.9152719]]), ("gels", 2, [], []), ("gelsy", 0, [2, 2], []),
    (None, 0, [2, 2], []),
])
def test_drivers(driver: str | None, residuals: int, ranks: list[int], values: list[list[float]]) -> None:
    solution, squares, rank, singular_values = LstsqV2()(Tensor(A), Tensor(B), driver)
    assert np.allclose(solution.asnumpy(), SOLUTION, atol=1e-5) and squares.size == residuals
    assert rank.asnumpy().tolist() == ranks and rank.dtype == ms.int64
    assert np.allclose(singular_values.asnumpy(), np.array(values, np.float32), atol=1e-5)
