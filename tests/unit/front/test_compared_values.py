"""Operands for which results differ from MindSpore 2.10 on purpose; tests/parity/cases/compared_values.py has those that do not."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, ops


@pytest.mark.parametrize("function", [ops.mul, ops.maximum, ops.greater, lambda a, b: a * b, lambda a, b: a.minimum(b) * 0 + a * b])
def test_lists_are_operands(function: object) -> None:
    x, y = Tensor([1.0, 2.0]), [3.0, 4.0]
    expected = function(x, Tensor(y)).asnumpy()                                    # type: ignore[operator]
    for operand in (y, tuple(y)):
        np.testing.assert_array_equal(function(x, operand).asnumpy(), expected)    # type: ignore[operator]


def test_xlogy_of_zero_is_zero() -> None:
    y = np.array([-1.0, 0.0, np.inf, np.nan], np.float32)
    for function in (ops.xlogy, mint.xlogy):
        np.testing.assert_array_equal(function(Tensor(np.zeros(4, np.float32)), Tensor(y)).asnumpy(), [0, 0, 0, np.nan])


def test_full_like_has_the_dtype_of_its_first_argument() -> None:
    like, values = Tensor(np.ones((2, 3), np.float32)), Tensor([1, 2, 3])
    assert ms.numpy.full_like(like, values).dtype == ms.float32
    assert ms.numpy.full_like(like, values, ms.float16).dtype == ms.float16


def test_outer_of_mint_refuses_matrices() -> None:
    x = Tensor([1.0, 2.0])
    np.testing.assert_array_equal(mint.outer(x, x).asnumpy(), [[1, 2], [2, 4]])
    for arguments in ((x, Tensor(np.ones((2, 2), np.float32))), (Tensor(1.0), x)):
        with pytest.raises(ValueError, match="the rank of the input must be 1"):
            mint.outer(*arguments)
