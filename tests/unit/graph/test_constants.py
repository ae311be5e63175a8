"""What a graph works out once: functions under `constexpr`; and what it gives in the places of iterators, as MindSpore 2.10 does."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, jit, nn, ops

import torchspore

X = Tensor(np.ones((2, 2), np.float32))


@ops.constexpr
def mask(n):
    return Tensor(np.triu(np.ones((n, n), np.float32)))


@ops.constexpr(check=False)
def row(n):
    return np.arange(n).astype(np.float32)


def with_constants(x):
    return x * mask(x.shape[0]) + Tensor(row(2))


def in_a_branch_and_a_loop(x):
    if x.sum() > 0:
        x = x * mask(2)
    count = Tensor(0)
    while count < 2:
        count, x = count + 1, x + mask(2)
    return x


def written_into(x):
    result = mask(2)
    result += 1
    result[0] = 5
    return x * result


@pytest.mark.parametrize("function", [with_constants, in_a_branch_and_a_loop, written_into])
def test_a_constant_function_does_not_cut_a_graph(function: Any) -> None:
    call = jit(function)
    for x in (X, -X, X * 2):
        assert call(x).asnumpy().tolist() == function(x).asnumpy().tolist()
    assert [graph.runs for graph in torchspore.graphs(call)] == [3]


def test_the_gradient_through_a_constant() -> None:
    call = jit(lambda x: ms.grad(lambda y: (y * y * mask(2)).sum())(x))
    assert call(X).asnumpy().tolist() == [[2, 2], [0, 2]]
    assert len(torchspore.graphs(call)) == 1


@pytest.mark.parametrize(("function", "expected"), [
    (lambda x: map(abs, (1, 2)), (1, 2)), (lambda x: map(abs, [1, 2]), [1, 2]),
    (lambda x: zip((1, 2), (3, 4)), ((1, 3), (2, 4))), (lambda x: range(3), (0, 1, 2)), (lambda x: enumerate((5, 6)), ((0, 5), (1, 6))),
    (lambda x: filter(lambda k: k > 1, (1, 2)), [2]), (lambda x: (k for k in (1, 2)), [1, 2]), (lambda x: {"a": 1}.items(), [("a", 1)]),
    (lambda x: {"a": 1}.keys(), ("a",)), (lambda x: {"a": 1}.values(), (1,)), (lambda x: iter((1, 2)), (1, 2)),
    (lambda x: [map(abs, (1,)), range(2)], [(1,), (0, 1)]),
])
@pytest.mark.parametrize("cut", [False, True])
def test_a_graph_gives_tuples_for_iterators(function: Any, expected: Any, cut: bool) -> None:
    def expected_values(x):
        if cut:
            float(x.asnumpy().sum())          # no graph holds this, so the call runs in parts
        return x + 1, function(x)

    call = jit(expected_values)
    for _ in range(3):
        assert call(X)[1] == expected


def test_what_stays_an_iterator_is_fresh_in_each_call() -> None:
    call = jit(lambda x: (x + 1, reversed((1, 2))))
    assert [list(call(X)[1]) for _ in range(3)] == [[2, 1]] * 3


def test_an_iterator_is_handed_on_between_parts() -> None:
    def function(x):
        items = iter((1, 2, 3))
        first = next(items)
        float(x.asnumpy().sum())
        return x * first + next(items)

    call = jit(function)
    assert [call(X).asnumpy().tolist() for _ in range(4)] == [[[3, 3], [3, 3]]] * 4


class Both(nn.Cell):
    """Two results that both have a gradient by one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Parameter(Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)), name="table")
        self.gather = ops.Gather()

    @jit
    def construct(self, index):
        return self.gather(self.table, index, 0), self.table.value()


def test_two_results_inside_a_gradient_that_pynative_takes_are_one_graph() -> None:
    net, index = Both(), Tensor([0, 2])
    result = ms.grad(lambda i: sum((part * part).sum() for part in net(i)), None, net.trainable_params())(index)[0]
    expected = np.arange(12, dtype=np.float32).reshape(4, 3) * 2 * [[2], [1], [2], [1]]
    assert result.asnumpy().tolist() == expected.tolist()
    assert len(torchspore.graphs(net)) == 1
