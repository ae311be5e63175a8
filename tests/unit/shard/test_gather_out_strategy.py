"""The `out_strategy` of Gather from a table whose rows are cut: the terms are summed on all devices, or scattered along the numbers."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.ops import operations as P

from torchspore.errors import StrategyRefused
from torchspore.graph import dispatch

SOURCE = np.random.default_rng(0)
TABLE = SOURCE.random((64, 16)).astype(np.float32)
NUMBERS = Tensor(SOURCE.integers(0, 64, (8, 4)).astype(np.int32))


class Lookup(nn.Cell):
    """Rows of a table, doubled."""

    def __init__(self, strategies: tuple[Any, ...] = ()) -> None:
        super().__init__()
        self.table = Parameter(Tensor(TABLE), name="table")
        self.gather = P.Gather().shard(*strategies) if strategies else P.Gather()

    def construct(self, numbers: Tensor) -> Tensor:
        return self.gather(self.table, numbers, 0) * 2


def _result_and_gradient(strategies: tuple[Any, ...] = ()) -> tuple[list[np.ndarray], Lookup]:
    net = Lookup(strategies)
    _, (gradient,) = ms.value_and_grad(lambda numbers: (net(numbers) ** 2).sum(), None, net.trainable_params())(NUMBERS)
    return [net(NUMBERS).asnumpy(), gradient.asnumpy()], net


@pytest.fixture(autouse=True)
def simulated_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")


@pytest.mark.parametrize(("strategies", "exchange"), [
    ((((8, 1), (1, 1)), ((1, 1, 1),)), "all_reduce"),
    ((((8, 1), (1, 1)), ((8, 1, 1),)), "reduce_scatter"),
    ((((8, 1), (1, 1)),), "all_reduce"),
    ((((4, 2), (1, 1)), ((1, 1, 2),)), "all_reduce"),
    ((((4, 2), (1, 1)), ((4, 1, 2),)), "reduce_scatter"),
    ((((4, 1), (2, 1)), ((2, 1, 1),)), "all_reduce"),
])
def test_numbers_of_one_device_and_the_exchange(strategies: tuple[Any, ...], exchange: str) -> None:
    expected, _ = _result_and_gradient()
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    results, net = _result_and_gradient(strategies)
    for result, reference in zip(results, expected):
        np.testing.assert_allclose(result, reference, rtol=1e-6)
    graph = next(graph for graph in dispatch.graphs(net) if graph.split is not None)
    exchanges = {str(getattr(node.target, "__name__", node.target)) for node in graph.split.local.module.graph.nodes}
    assert {name for name in exchanges if name in ("all_reduce", "reduce_scatter")} == {exchange}, exchanges


def test_another_output_is_refused_with_those_that_fit() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match=r"expected out_strategy \(\(8, 1, 1\),\) or \(\(1, 1, 1\),\)"):
        _result_and_gradient((((8, 1), (1, 1)), ((2, 1, 1),)))
