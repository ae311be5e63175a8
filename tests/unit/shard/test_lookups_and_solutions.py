"""Lookups in batches by indexes with several axes, and least squares, split among devices, beside one device."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import mindspore.ops.operations as P
import numpy as np
import pytest
from mindspore import Tensor, context, nn
from mindspore.common.api import _cell_graph_executor
from mindspore.ops import auto_generate

from torchspore.errors import StrategyRefused

RANDOM = np.random.RandomState(4)
LOOKUPS = {
    "two axes": ((8, 64), (8, 16, 32), 1, 1, ((2, 1), (2, 2, 2)), 8),
    "two batches": ((4, 8, 4, 6), (4, 8, 4, 2), 2, 2, ((2, 2, 1, 2), (2, 2, 2, 2)), 32),
    "an axis before": ((4, 3, 8, 6), (4, 2, 4), 2, 1, ((2, 1, 1, 1), (2, 2, 2)), 8),
}
MATRICES = RANDOM.randn(2, 4, 2).astype(np.float32)


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    context.set_context(mode=context.GRAPH_MODE)
    yield
    context.reset_auto_parallel_context()
    context.set_context(mode=context.PYNATIVE_MODE)


def split_among(count: int) -> None:
    context.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=count, full_batch=True)


class Lookup(nn.Cell):
    """Rows of each batch."""

    def __init__(self, batch_dims: int, axis: int, strategy: Any = None) -> None:
        super().__init__()
        self.gather, self.axis = P.Gather(batch_dims=batch_dims), axis
        if strategy is not None:
            self.gather.shard(strategy)

    def construct(self, table: Tensor, indices: Tensor) -> Tensor:
        return self.gather(table, indices, self.axis)


@pytest.mark.filterwarnings("ignore:device_num")
@pytest.mark.parametrize("name", LOOKUPS)
def test_every_axis_of_the_indexes_is_split(name: str) -> None:
    shape, indices_shape, axis, batch_dims, strategy, count = LOOKUPS[name]
    table = Tensor(RANDOM.randn(*shape).astype(np.float32))
    indices = Tensor(RANDOM.randint(0, shape[axis], indices_shape).astype(np.int32))
    alone = Lookup(batch_dims, axis)
    expected, gradient = alone(table, indices).asnumpy(), ms.grad(alone)(table, indices).asnumpy()
    split_among(count)
    net = Lookup(batch_dims, axis, strategy)
    assert (net(table, indices).asnumpy() == expected).all()
    np.testing.assert_allclose(ms.grad(net)(table, indices).asnumpy(), gradient, rtol=1e-6)


class Solution(nn.Cell):
    """Least squares of a batch of matrices."""

    def __init__(self, driver: str, strategy: Any = None) -> None:
        super().__init__()
        self.lstsq, self.driver = auto_generate.LstsqV2(), driver
        if strategy is not None:
            self.lstsq.shard(strategy)

    def construct(self, matrices: Tensor, right: Tensor) -> Any:
        return self.lstsq(matrices, right, self.driver)


@pytest.mark.filterwarnings("ignore:device_num")
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("right", [(2, 4), (2, 4, 3)])
def test_least_squares_are_split_by_batch(driver: str, right: tuple[int, ...]) -> None:
    values = Tensor(MATRICES), Tensor(RANDOM.randn(*right).astype(np.float32))
    expected = Solution(driver)(*values)
    split_among(2)
    results = Solution(driver, ((2, 1, 1), (2,) + (1,) * (len(right) - 1)))(*values)
    assert len(results) == len(expected) == 4
    for result, number in zip(results, expected):
        np.testing.assert_allclose(result.asnumpy(), number.asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_matrix_of_least_squares_is_not_split() -> None:
    split_among(2)
    with pytest.raises(StrategyRefused, match="expected 1 at axis 1 of input 0"):
        Solution("gelsd", ((2, 2, 1), (2, 1)))(Tensor(MATRICES), Tensor(MATRICES[..., 0]))


class Triangle(nn.Cell):
    """A triangle of each matrix."""

    def __init__(self, primitive: Any, strategy: Any = None) -> None:
        super().__init__()
        self.triangle = primitive if strategy is None else primitive.shard(strategy)

    def construct(self, x: Tensor) -> Tensor:
        return self.triangle(x)


@pytest.mark.filterwarnings("ignore:device_num")
@pytest.mark.parametrize("name", ["Triu", "Tril"])
@pytest.mark.parametrize("strategy, diagonal", [(((8, 1, 1),), 0), (((1, 2, 4),), -2), (((2, 4, 1),), 5), (((2, 1, 2),), 0)])
def test_triangles_count_from_the_rows_and_columns_of_each_device(name: str, strategy: Any, diagonal: int) -> None:
    x = Tensor(RANDOM.randn(8, 8, 12).astype(np.float32))
    alone = Triangle(getattr(P, name)(diagonal))
    expected, gradient = alone(x).asnumpy(), ms.grad(alone)(x).asnumpy()
    split_among(8)
    net = Triangle(getattr(P, name)(diagonal), strategy)
    assert (net(x).asnumpy() == expected).all()
    assert (ms.grad(net)(x).asnumpy() == gradient).all()
    phase, _ = _cell_graph_executor.compile(net, x)
    operators = _cell_graph_executor._graph_executor.get_parallel_graph_info(phase)["@graph_0"]
    assert not operators[f"{name}-0"]["inputs"][0].startswith("AllGather")


class Called(nn.Cell):
    """A primitive with a strategy."""

    def __init__(self, primitive: Any, strategy: Any, *rest: Any) -> None:
        super().__init__()
        self.primitive, self.rest = primitive if strategy is None else primitive.shard(strategy), rest

    def construct(self, *tensors: Tensor) -> Any:
        return self.primitive(*tensors, *self.rest)


@pytest.mark.filterwarnings("ignore:device_num")
@pytest.mark.parametrize("strategy, axes, is_refused", [
    ((2, 1, 1), (0, -2, -1), False), ((1, 2, 1), (1, 0, 2), False), ((1, 1, 2), (0, 0, 1), False), ((2, 1, 1), (0, 0, 1), True),
    ((1, 2, 1), (0, -2, -1), True), ((2, 2, 1), (0, -2, -1), True),
])
def test_sums_of_diagonals_leave_their_axes_unsplit(strategy: Any, axes: Any, is_refused: bool) -> None:
    x = Tensor(RANDOM.randn(4, 4, 4).astype(np.float32))
    expected = Called(auto_generate.TraceV2(), None, *axes)(x).asnumpy()
    split_among(2)
    net = Called(auto_generate.TraceV2(), (strategy,), *axes)
    if is_refused:
        with pytest.raises(StrategyRefused):
            net(x)
    else:
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:device_num")
@pytest.mark.parametrize("strategy, is_refused", [
    (((2, 1, 1), (2, 1, 1)), False), (((1, 1, 1), (1, 1, 2)), False), (((2, 2, 1), (2, 1, 1)), True), (((2, 1, 1), (1, 1, 1)), True),
])
def test_triangular_equations_are_split_as_in_mindspore(strategy: Any, is_refused: bool) -> None:
    matrices = Tensor(np.tril(RANDOM.randn(4, 4, 4)).astype(np.float32) + 3 * np.eye(4, dtype=np.float32))
    right = Tensor(RANDOM.randn(4, 4, 6).astype(np.float32))
    settings = (0, True, False)
    expected = Called(auto_generate.SolveTriangular(), None, *settings)(matrices, right).asnumpy()
    split_among(2)
    net = Called(auto_generate.SolveTriangular(), strategy, *settings)
    if is_refused:
        with pytest.raises(StrategyRefused):
            net(matrices, right)
    else:
        np.testing.assert_allclose(net(matrices, right).asnumpy(), expected, rtol=1e-4, atol=1e-5)
