"""Indexes are integers: a real number in their place is refused, not cut. Losses and metrics take what fits alone."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops, train

ROWS = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
TENSOR, PAIR = Tensor([0.5]), Tensor([[0.5]])

CUT: dict[str, Callable[[], Any]] = {
    "gather_nd": lambda: ops.gather_nd(ROWS, PAIR),
    "gather_elements": lambda: ops.gather_elements(ROWS, 0, PAIR),
    "gather_d": lambda: ops.gather_d(ROWS, 0, PAIR),
    "mint.gather": lambda: mint.gather(ROWS, 0, PAIR),
    "mint.scatter": lambda: mint.scatter(ROWS, 0, PAIR, Tensor([[1.0]])),
    "mint.take": lambda: ROWS.index_select(0, TENSOR),
    "index_select": lambda: ops.index_select(ROWS, 0, TENSOR),
    "tensor_scatter_update": lambda: ops.tensor_scatter_update(ROWS, PAIR, Tensor([[1.0, 1.0, 1.0]])),
    "scatter_nd": lambda: ops.scatter_nd(PAIR, Tensor([1.0]), (3,)),
    "unsorted_segment_sum": lambda: ops.unsorted_segment_sum(ROWS, Tensor([0.5, 1.0]), 2),
    "unsorted_segment_max": lambda: ops.unsorted_segment_max(ROWS, Tensor([0.5, 1.0]), 2),
    "one_hot": lambda: ops.one_hot(TENSOR, 3, 1, 0),
    "mint one_hot": lambda: mint.nn.functional.one_hot(TENSOR, 3),
    "OneHot": lambda: nn.OneHot(depth=3)(TENSOR),
    "Embedding of rows": lambda: nn.Embedding(4, 3, True)(TENSOR),
    "EmbeddingLookup": lambda: nn.EmbeddingLookup(4, 3)(TENSOR),
    "EmbeddingExt": lambda: nn.EmbeddingExt(4, 3)(TENSOR),
    "SparseGatherV2": lambda: ops.SparseGatherV2()(ROWS, TENSOR, 0),
    "sequence_mask": lambda: ops.sequence_mask(TENSOR, 3),
    "reverse_sequence": lambda: ops.reverse_sequence(ROWS, Tensor([0.5, 1.0]), 1),
}


@pytest.mark.parametrize("name", CUT)
def test_a_real_number_is_no_index(name: str, mode: int) -> None:
    with pytest.raises(TypeError, match="expected integers as indexes, got Float32"):
        CUT[name]()


def test_a_real_number_in_brackets_is_no_index(mode: int) -> None:
    for index in (TENSOR, (0, TENSOR)):
        with pytest.raises(IndexError, match=r"expected integers as indexes, got Float32"):
            ROWS[index]


def test_truth_values_in_brackets_choose() -> None:
    assert ROWS[Tensor([False, True])].asnumpy().tolist() == [[3, 4, 5]]


LOSSES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "soft_margin": (lambda: nn.SoftMarginLoss()(ROWS, Tensor([1.0, 1.0, -1.0])), ValueError, "expected equal shapes"),
    "kl_div": (lambda: nn.KLDivLoss()(ROWS, Tensor([1.0, 1.0, 1.0])), ValueError, "expected equal shapes"),
    "softmax": (lambda: ops.SoftmaxCrossEntropyWithLogits()(ROWS, Tensor([1.0, 0.0, 0.0])), ValueError, "expected equal shapes"),
    "sparse softmax": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(ROWS, Tensor([0.5, 1.0])), TypeError, "expected classes as Int32 or Int64",
    ),
    "multi_margin": (lambda: ops.multi_margin_loss(ROWS, Tensor([0.5, 1.0])), TypeError, "expected classes as Int32 or Int64"),
    "multi_margin of nothing": (
        lambda: ops.multi_margin_loss(Tensor(np.zeros((0, 3), np.float32)), Tensor(np.zeros(0, np.int32))), ValueError,
        "expected at least one row of scores",
    ),
    "selu": (lambda: nn.SeLU()(Tensor([True])), TypeError, "expected numbers, got Bool"),
    "hard swish": (lambda: nn.HSwish()(Tensor([True])), TypeError, "expected numbers, got Bool"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_takes_what_fits(name: str, mode: int) -> None:
    call, kind, text = LOSSES[name]
    with pytest.raises(kind, match=text):
        call()


def test_a_sum_keeps_its_dtype(mode: int) -> None:
    loss = nn.MSELoss("sum")(Tensor([1, 2], ms.int32), Tensor([2, 2], ms.int32))
    assert loss.dtype == ms.int32 and int(loss) == 1


@pytest.mark.parametrize(("answers", "labels"), [([5, 0], [0, 0]), ([0, -1], [1, 1]), ([0, 0], [-1, 1])])
def test_a_confusion_matrix_takes_its_classes_alone(answers: list[int], labels: list[int]) -> None:
    matrix = train.ConfusionMatrix(3)
    with pytest.raises(ValueError, match="expected classes from 0 to 2"):
        matrix.update(np.array(answers), np.array(labels))


COUNTED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "gather": (lambda: ops.gather(ROWS, Tensor([-1, 0], ms.int32), 0), [[3, 4, 5], [0, 1, 2]]),
    "gather of columns": (lambda: ops.gather(ROWS, Tensor([-1], ms.int64), 1), [[2], [5]]),
    "gather of batches": (lambda: ops.gather(ROWS, Tensor([[-1], [0]]), 1, 1), [[2], [3]]),
    "Gather": (lambda: ops.Gather()(ROWS, Tensor([-2]), 1), [[1], [4]]),
    "gather_d": (lambda: ops.gather_d(ROWS, 1, Tensor([[-1], [-3]])), [[2], [3]]),
    "gather_elements": (lambda: ops.gather_elements(ROWS, 1, Tensor([[-1], [0]])), [[2], [3]]),
    "mint.gather": (lambda: mint.gather(ROWS, 1, Tensor([[-2], [0]])), [[1], [3]]),
    "index_select": (lambda: ops.index_select(ROWS, 0, Tensor([-1], ms.int32)), [[3, 4, 5]]),
    "Embedding": (lambda: nn.Embedding(2, 3, embedding_table=ROWS)(Tensor([-1], ms.int32)), [[3, 4, 5]]),
    "Tensor.take": (lambda: ROWS.take(Tensor([-1, -9, 9]), 1), [[2, 0, 2], [5, 3, 5]]),
    "Tensor.take of all": (lambda: ROWS.take(Tensor([-1, 2])), [5, 2]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_negative_indexes_count_from_the_end(name: str, mode: int) -> None:
    call, expected = COUNTED[name]
    assert call().asnumpy().tolist() == expected


class Rows(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.table = ms.Parameter(ROWS.copy(), name="table")

    def construct(self, at: Any, columns: Any) -> Any:
        return (ops.gather(self.table, at, 0) * 2).sum() + (ops.gather_d(self.table, 1, columns) ** 2).sum()


def test_what_counts_from_the_end_has_its_gradient(mode: int) -> None:
    rows, columns = Rows(), Tensor([[-1], [-3]])
    step = ms.value_and_grad(rows, None, rows.trainable_params())
    results = [step(Tensor(at, ms.int32), columns) for at in ([-1, 0], [1, 0], [-1, -1])]
    assert [float(value) for value, _ in results] == [43, 43, 61]
    assert results[0][1][0].asnumpy().tolist() == [[2, 2, 6], [8, 2, 2]] and results[2][1][0].asnumpy().tolist() == [[0, 0, 4], [10, 4, 4]]


@pytest.mark.parametrize("at", [-3, 2])
def test_an_index_beyond_both_ends_is_reported(at: int, mode: int) -> None:
    for axis, source in ((0, ROWS), (1, ROWS.T)):
        with pytest.raises(IndexError, match="an index is beyond the axis"):
            ops.gather(source, Tensor([at, -1]), axis)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int32", "bool", "complex64"])
def test_rows_at_one_column_of_indexes_equal_those_of_the_general_form(mode: int, kind: str) -> None:
    ms.set_context(mode=mode)
    rows = np.random.RandomState(0)
    x, updates = ((rows.randn(count, 3) * 5).astype(kind) for count in (7, 20))
    column = rows.randint(0, 7, (20, 1)).astype(np.int32)
    columns = np.concatenate((column, np.zeros_like(column)), 1)
    spread, many = x.reshape(7, 1, 3), ops.tensor_scatter_add(*map(Tensor, (x.reshape(7, 1, 3), columns, updates)))
    np.testing.assert_array_equal(ops.tensor_scatter_add(*map(Tensor, (x, column, updates))).asnumpy(), many.asnumpy()[:, 0])
    np.testing.assert_array_equal(ops.scatter_nd(Tensor(column), Tensor(updates), (7, 3)).asnumpy(),
                                  ops.scatter_nd(Tensor(columns), Tensor(updates), (7, 1, 3)).asnumpy()[:, 0])
    expected = ops.gather_nd(Tensor(spread), Tensor(columns)).asnumpy()
    np.testing.assert_array_equal(ops.gather_nd(Tensor(x), Tensor(column)).asnumpy(), expected)


def test_one_column_of_indexes_without_other_axes() -> None:
    numbers, column = Tensor(np.arange(4, dtype=np.float32)), Tensor(np.array([[1], [1]], np.int32))
    assert ops.tensor_scatter_add(numbers, column, Tensor(np.ones(2, np.float32))).asnumpy().tolist() == [0, 3, 2, 3]
    assert float(ops.gather_nd(numbers, Tensor(np.array([2], np.int32)))) == 2
    assert ops.gather_nd(Tensor(np.zeros((3, 0), np.float32)), column).shape == (2, 0)
    nothing = Tensor(np.zeros((0, 1), np.int32)), Tensor(np.zeros((0, 2), np.float32))
    assert ops.scatter_nd(*nothing, (3, 2)).asnumpy().tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("wrong", [-1, 7])
def test_a_wrong_row_leaves_an_error_with_its_index(wrong: int) -> None:
    x, column = Tensor(np.zeros((7, 3), np.float32)), Tensor(np.array([[0], [wrong]], np.int32))
    text = "got a negative one" if wrong < 0 else "index 7 is out of bounds for dimension with size 7, axis 0"
    for call in (lambda: ops.gather_nd(x, column), lambda: ops.tensor_scatter_add(x, column, Tensor(np.ones((2, 3), np.float32)))):
        with pytest.raises(IndexError, match=text):
            call()
