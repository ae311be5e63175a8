"""Strategies with too few or too many parts, and numbers that cut nothing, are refused with the line; none runs as if it were right."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Parameter, Tensor, nn, ops
from mindspore.ops import operations as P

from torchspore.errors import StrategyRefused

X, Y, W = (Tensor(np.ones(shape, np.float32)) for shape in ((16, 32), (16, 32), (32, 64)))
GRID = Layout((2, 4), ("a", "b"))


class Net(nn.Cell):
    """Calls what it is given."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def construct(self, *inputs: Any) -> Any:
        return self.call(*inputs)


def called(make: Callable[[], Callable[..., Any]], *inputs: Any, batch: Any = "full_batch") -> Any:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=batch)
    return Net(make())(*inputs)


@pytest.fixture(autouse=True)
def eight_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")


@pytest.mark.parametrize("make, strategy, count", [
    (lambda: P.Add().shard(((2, 2),)), (X, Y), 2),
    (lambda: P.LayerNorm(begin_norm_axis=1, begin_params_axis=1).shard(((2, 1), (1,))), (X, X[0], X[0]), 3),
    (lambda: P.Select().shard(((2, 2), (2, 2))), (X > 0, X, Y), 3),
    (lambda: P.SparseSoftmaxCrossEntropyWithLogits().shard(((8, 1),)), (X, Tensor(np.zeros(16), ms.int32)), 2),
    (lambda: P.Gather().shard(((1, 1),)), (X, Tensor(np.zeros((16, 8)), ms.int32), 0), 2),
    (lambda: P.Assign().shard(((2, 2),)), (Parameter(X.copy(), name="weight"), Y), 2),
    (lambda: lambda *inputs, add=P.AddN().shard(((2, 2),)): add(inputs), (X, Y), 2),
    (lambda: P.Add().shard(((2, 2), (2, 2), (2, 2))), (X, Y), 2),
])
def test_an_operator_wants_a_tuple_for_each_input(make: Any, strategy: Any, count: int) -> None:
    with pytest.raises(StrategyRefused, match=rf"test_misfits.py:\d+: .* on 8 devices: expected {count} tuples, one for each input, got"):
        called(make, *strategy)


def test_what_can_not_be_cut_may_be_omitted() -> None:
    for strategy in (((2, 2),), (GRID("a", "b"),)):
        np.testing.assert_array_equal(called(lambda: P.Pow().shard(strategy), X, Tensor(2.0)).asnumpy(), X.asnumpy())  # noqa: B023
    assert called(lambda: P.OneHot().shard(((8, 1),)), Tensor(np.zeros(16), ms.int32), 4, Tensor(1.0), Tensor(0.0)).shape == (16, 4)


@pytest.mark.parametrize("strategy", [((2, 2),), ((2, 2), (1, 1), (1, 1)), (None,), ()])
def test_a_function_and_a_cell_want_a_strategy_for_each_tensor(strategy: Any) -> None:
    expected = rf": a strategy of {len(strategy)}, .* for 2 Tensors: expected a tuple, a Layout or None for each Tensor"
    with pytest.raises(StrategyRefused, match=f"an input of _product{expected}"):
        called(lambda: ms.shard(_product, in_strategy=strategy), X, W)
    with pytest.raises(StrategyRefused, match=f"an input of Net{expected}"):
        called(lambda: Net(_product).shard(strategy), X, W)
    with pytest.raises(StrategyRefused, match=r"a result of _product: a strategy of 2, .* for 1 Tensors"):
        called(lambda: ms.shard(_product, ((2, 2), None), out_strategy=((1, 1), None)), X, W)


def _product(x: Tensor, w: Tensor) -> Tensor:
    return ops.matmul(x, w)


def test_none_may_stand_for_a_number_between() -> None:
    out = called(lambda: ms.shard(lambda x, n, w: ops.matmul(x * n, w), in_strategy=((2, 2), None, (1, 2))), X, 2.0, W)
    assert float(out[0, 0]) == 64.0


@pytest.mark.parametrize("batch, expected", [
    (((0, 1), (1, 1)), "expected ints from 1 on, whose product divides 8"),
    (((-1, 1), (1, 1)), "expected ints from 1 on, whose product divides 8"),
    (((2, 1),), "for input 1 of the batch: expected a tuple of numbers for each input"),
])
def test_a_batch(batch: Any, expected: str) -> None:
    with pytest.raises(StrategyRefused, match=expected):
        called(lambda: P.Add(), X, Y, batch=batch)


@pytest.mark.parametrize("cut, out, message", [
    (((2, 4), (4, 1)), ((8, 1),), "in_strategy ((2, 4), (4, 1)) and out_strategy ((8, 1),) on 8 devices: expected out_strategy ((2, 1),)."),
    ((GRID("a", "b"), GRID("b", "None")), (GRID(("a", "b"), "None"),), "expected rows of the output that divide by 8, got 12."),
])
def test_a_sum_is_scattered_along_rows_that_divide(cut: Any, out: Any, message: str) -> None:
    with pytest.raises(StrategyRefused) as caught:
        called(lambda: P.MatMul().shard(cut, out), Tensor(np.ones((12, 32), np.float32)), W)
    assert str(caught.value).endswith(message), caught.value
