"""Diagonals that a matrix has not, and values that are not theirs, are refused where MindSpore 2.10 refuses them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

X = Tensor(np.arange(1, 7).reshape(2, 3).astype(np.float32))


def rows(*shape: int) -> Tensor:
    return Tensor(np.arange(10, 10 + int(np.prod(shape))).reshape(shape).astype(np.float32))


def k(low: int, high: int) -> Tensor:
    return Tensor([low, high], ms.int32)


def part(low: int, high: int, x: Tensor = X) -> Tensor:
    return ops.matrix_diag_part(x, k(low, high), Tensor(9.0))


def diagonals(x: Tensor, low: int, high: int, num_rows: int = -1, num_cols: int = -1) -> Tensor:
    return ops.matrix_diag(x, k(low, high), Tensor(num_rows, ms.int32), Tensor(num_cols, ms.int32), Tensor(9.0))


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: part(3, 3), r"k=\(3, 3\): expected diagonals above -2 and below 3"),
    (lambda: part(-2, 0), "expected diagonals above -2"),
    (lambda: part(0, 0, rows(0, 3)), "expected diagonals above 0"),
    (lambda: part(0, 0, rows(3)), r"expected matrices as x, got shape \(3,\)"),
    (lambda: ops.matrix_diag_part(X, Tensor([0, 1, 2], ms.int32), Tensor(9.0)), r"k=\[0, 1, 2\]: expected an int, or two"),
    (lambda: ops.matrix_set_diag(X, rows(1), k(3, 3)), "below 3"),
    (lambda: ops.matrix_set_diag(X, rows(3), k(0, 0)), r"expected a diagonal of shape \(2,\), for k=\(0, 0\), got \(3,\)"),
    (lambda: ops.matrix_set_diag(X, rows(3, 2), k(1, 2)), r"expected 2 diagonals, for k=\(1, 2\), got a Tensor of shape \(3, 2\)"),
    (lambda: diagonals(rows(2), 0, 0, 1, 1), "num_rows=1: expected at least 2"),
    (lambda: diagonals(rows(2), 0, 0, -5, 2), "num_rows=-5: expected at least 2"),
    (lambda: diagonals(rows(2), 0, 0, 3, 4), "num_rows=3, num_cols=4: expected 2 rows or 2 columns"),
    (lambda: diagonals(rows(3, 2), 1, 2), "expected 2 diagonals"),
    (lambda: diagonals(rows(2, 2), 1, 2, 2, 2), "num_cols=2: expected at least 3"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_what_is_not_there_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_what_is_there() -> None:
    assert part(1, 2).asnumpy().tolist() == [[9.0, 3.0], [2.0, 6.0]] and part(-1, -1).asnumpy().tolist() == [4.0]
    assert ops.matrix_set_diag(X, rows(2, 2), k(-1, 0)).asnumpy().tolist() == [[10.0, 2.0, 3.0], [12.0, 11.0, 6.0]]
    assert diagonals(rows(2), 0, 0, 3, -1).asnumpy().tolist() == [[10.0, 9.0], [9.0, 11.0], [9.0, 9.0]]
    assert diagonals(rows(2, 2), 1, 2).asnumpy().tolist() == [[9.0, 12.0, 11.0], [9.0, 9.0, 13.0], [9.0, 9.0, 9.0]]
