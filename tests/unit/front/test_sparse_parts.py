"""Sparse Tensors given by their parts: what MindSpore 2.10 can't be asked on the CPU, and what does not fit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore.ops.operations import _sequence_ops as sequences
from mindspore.ops.operations import sparse_ops as sparse

Tensor = ms.Tensor


def longs(*values: Any) -> Any:
    return Tensor(np.array(values, np.int64))


def reals(*values: Any) -> Any:
    return Tensor(np.array(values, np.float32))


AT, VALUES, SHAPE = longs((0, 1), (1, 2), (2, 0)), reals(1, 2, 3), longs(3, 4)
MATRIX = longs(3, 4), longs(0, 3), longs(0, 1, 2, 3), longs(1, 2, 0), VALUES


def listed(result: Any) -> Any:
    return [listed(output) for output in result] if isinstance(result, tuple) else result.asnumpy().tolist()


def test_the_parts_of_a_split_are_longer_first() -> None:
    at, values, shapes = sparse.SparseSplit(2)(longs(0)[0], AT, VALUES, SHAPE)
    assert (listed(at), listed(values), listed(shapes)) == ([[[0, 1], [1, 2]], [[0, 0]]], [[1, 2], [3]], [[2, 4], [1, 4]])


def test_a_quotient_by_dense_values() -> None:
    assert np.allclose(sparse.SparseDenseCwiseDiv()(AT, VALUES, SHAPE, reals(1, 2, 4, 8)).asnumpy(), [0.5, 0.5, 3])


def test_sets_of_a_dense_and_a_sparse_tensor() -> None:
    second = longs((0, 0), (0, 1), (1, 0)), longs(2, 7, 5), longs(2, 2)
    result = sparse.DenseToSparseSetOperation("union")(longs((1, 2, 2), (5, 4, 3)), *second)
    assert listed(result) == [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]], [1, 2, 7, 3, 4, 5], [2, 3]]


def test_ragged_rows_are_filled_up_or_cut() -> None:
    values = reals(1, 2, 3, 4, 5)
    by_ends = sparse.RaggedTensorToTensor(["ROW_SPLITS"])(longs(-1, -1), values, reals(9)[0], [longs(0, 2, 2, 5)])
    assert listed(by_ends) == [[1, 2, 9], [9, 9, 9], [3, 4, 5]]
    by_rows = sparse.RaggedTensorToTensor(["FIRST_DIM_SIZE", "VALUE_ROWIDS"])(longs(3, 2), values, reals(0)[0], [
        longs(4)[0], longs(0, 0, 0, 2, 3),
    ])
    assert listed(by_rows) == [[1, 2], [0, 0], [4, 0]]


def test_products_of_matrices_in_rows() -> None:
    parts = sparse.SparseMatrixSparseMatMul(transpose_a=True)(*MATRIX, *MATRIX)
    assert listed(sparse.CSRSparseMatrixToDense()(*parts)) == [[9, 0, 0, 0], [0, 1, 0, 0], [0, 0, 4, 0], [0, 0, 0, 0]]


def test_gradients_go_to_the_values() -> None:
    def total(values: Any) -> Any:
        return (sparse.SparseDenseCwiseMul()(AT, values, SHAPE, reals(1, 2, 4, 8)) * 2).sum()

    assert listed(ms.grad(total)(VALUES)) == [4, 8, 2]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "beyond": (lambda: sparse.SparseReorder()(longs((0, 4)), reals(1), SHAPE), r"indices inside the shape \(3, 4\), got \(0, 4\)"),
    "order": (lambda: sparse.SparseToDenseV2()(longs((1, 0), (0, 0)), SHAPE, reals(1, 2), reals(0)[0]), "in row-major order, each once"),
    "set": (lambda: sparse.DenseToDenseSetOperation("a+b")(longs((1,)), longs((1,))), "expected 'a-b', 'b-a', 'intersection' or 'union'"),
    "splits": (lambda: sparse.RaggedTensorToSparse(ms.int64)((longs(0, 3, 2),), reals(1, 2)), r"rise from 0, got \[0, 3, 2\]"),
    "no Tensor": (lambda: sparse.RaggedTensorToSparse(ms.int64)(["a"], reals(1)), "expected Tensors as rt_nested_splits, got str"),
    "pointers": (
        lambda: sparse.CSRSparseMatrixToDense()(*MATRIX[:2], longs(0, 1, 2, 9), *MATRIX[3:]), "row_pointers that end at the number",
    ),
    "shape": (lambda: sparse.SparseReshape()(AT, SHAPE, longs(5, -1)), r"a new_shape of 12 elements with at most one -1, got \(5, -1\)"),
    "index": (lambda: sequences.SequenceIndex()((1, 2), 3), "a target that is among the 2 elements"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(TypeError if name == "no Tensor" else ValueError, match=message):
        call()
