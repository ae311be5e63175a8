"""Primitives that are made of tables name themselves in their errors, and raise what is promised."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore.ops import auto_generate as made

X = ms.Tensor(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: made.view_as_op(X, 1), TypeError, r"ViewAs\(Float32\[2, 3\], 1\)"),
    (lambda: made.contiguous_op(X, 2), TypeError, r"Contiguous\(Float32\[2, 3\], 2\)"),
    (lambda: made.inplace_copy_op(ms.Tensor(1.0), X), ValueError, r"InplaceCopy\(Float32\[\], Float32\[2, 3\]\)"),
    (lambda: made.reflection_pad_1d_op(X), TypeError, r"ReflectionPad1D\(Float32\[2, 3\]\)"),
    (lambda: made.upsample_linear1d_op(), TypeError, r"UpsampleLinear1D\(\)"),
    (lambda: X.select(ms.Tensor([1])), TypeError, "Tensor.select takes a dim and an index, or a condition and y, got 1"),
    (lambda: X.select([1, 2], ms.Tensor([True]), 0), TypeError, "Tensor.select takes .*, got 3"),
    (lambda: ms.ops.cross(X, np.ones((2, 3))), TypeError, "cross.*expected a Tensor for other, got ndarray"),
])
def test_errors_name_the_call(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
