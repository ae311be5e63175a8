"""`Cell.compile` raises the error that the call would raise, before anything runs."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor

X = Tensor(np.ones((2, 3), np.float32))


class _Product(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.MatMul()(x, x)


class _Refuses(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != 3:
            raise LookupError("only three axes")
        return x


class _Writes(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.count = Parameter(Tensor(0.0), name="count")

    def construct(self, x: Tensor) -> Tensor:
        ops.assign_add(self.count, Tensor(1.0))
        return ops.MatMul()(x, x)


class _NeedsPython(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x * float(x.asnumpy().sum())


@pytest.fixture(autouse=True)
def graph_mode() -> Any:
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=before)


@pytest.mark.parametrize("compile_net", [
    lambda net: net.compile(X), lambda net: _cell_graph_executor.compile(net, X),
], ids=["cell", "executor"])
@pytest.mark.parametrize("net,error,text", [
    (_Product(), ValueError, "expected as many rows in mat2 as input has columns"), (_Refuses(), LookupError, "only three axes"),
])
def test_compile_raises_the_error_of_the_call(compile_net: Any, net: nn.Cell, error: type[Exception], text: str) -> None:
    for call in (compile_net, compile_net, lambda net: net(X)):
        with pytest.raises(error, match=text):
            call(net)


def test_a_failing_compilation_runs_nothing() -> None:
    net = _Writes()
    with pytest.raises(ValueError, match="expected as many rows"):
        net.compile(X)
    assert float(net.count.asnumpy()) == 0.0


def test_a_call_that_runs_in_parts_still_compiles() -> None:
    net = _NeedsPython()
    net.compile(X)
    assert net(X).asnumpy().tolist() == [[6.0] * 3] * 2


def test_a_split_call_that_no_graph_holds_is_refused_at_compile() -> None:
    from torchspore.errors import StrategyRefused

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2, dataset_strategy="full_batch")
    try:
        with pytest.raises(StrategyRefused, match=r"semi_auto_parallel of a call that .*: expected a call that one graph can hold"):
            _NeedsPython().compile(X)
    finally:
        ms.reset_auto_parallel_context()
