"""Dtypes of results, and refusals, where two Tensors of different dtypes meet in a choice, an update or a diagonal."""
from __future__ import annotations

import itertools

import mindspore as ms
from mindspore import Tensor, mint, ops
from parity.case import case

DTYPES = {"float16": ms.float16, "float32": ms.float32, "float64": ms.float64, "int32": ms.int32, "int64": ms.int64, "uint8": ms.uint8,
          "int8": ms.int8}
PAIRS = [f"{a} {b}" for a, b in itertools.permutations(DTYPES, 2)]
CONDITION = Tensor([True, False])


def answer(call):
    """The dtype and the elements of a result, or the kind of error."""
    try:
        result = call()
        return [str(result.dtype), result.asnumpy().tolist()]
    except (TypeError, ValueError) as error:
        return "TypeError" if isinstance(error, TypeError) else "ValueError"


@case(over=PAIRS)
def choices(text):
    a, b = (DTYPES[name] for name in text.split())
    x, scalar, vector = Tensor([1, 0], a), Tensor(3, b), Tensor([3, 5], b)
    return {
        "where": answer(lambda: ops.where(CONDITION, x, vector)), "where 0-d": answer(lambda: ops.where(CONDITION, x, scalar)),
        "where 0-d first": answer(lambda: ops.where(CONDITION, scalar, x)), "select": answer(lambda: ops.select(CONDITION, x, scalar)),
        "method": answer(lambda: x.where(CONDITION, scalar)),
        "mint": answer(lambda: mint.where(CONDITION, x, scalar)) if "8" not in text else None,
    }


@case(over=PAIRS)
def diagonals(text):
    a, b = (DTYPES[name] for name in text.split())
    matrix, vector = Tensor([[7, 8], [9, 10]], a), Tensor([3, 5], b)
    return {
        "diagonal_scatter": answer(lambda: ops.diagonal_scatter(matrix, vector)),
        "matrix_set_diag": answer(lambda: ops.matrix_set_diag(matrix, vector)),
    }


UPDATES = ["int32 float32", "int64 float64", "uint8 float16", "float16 float32", "float32 float64", "int8 int32"]


@case(over=UPDATES)
def updates_of_a_larger_dtype(text):
    a, b = (DTYPES[name] for name in text.split())
    x, row, at = Tensor([1, 0], a), Tensor([2.5], b), Tensor([0], ms.int64)
    matrix, rows = Tensor([[1, 0], [2, 3]], a), Tensor([1, 1], b)
    return {
        "scatter": answer(lambda: ops.scatter(x, 0, at, row)), "inplace_update": answer(lambda: ops.inplace_update(x, row, 0)),
        "select_scatter": answer(lambda: ops.select_scatter(matrix, rows, 0, 0)),
        "slice_scatter": answer(lambda: ops.slice_scatter(matrix, rows.reshape(1, 2), 0, 0, 1)),
    }


@case()
def random_numbers_like_integers():
    return {str(dtype): str(ops.randn_like(Tensor([1, 2], dtype)).dtype) for dtype in (ms.int32, ms.float16, ms.float64)}
