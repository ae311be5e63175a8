"""`MatMul` and `BatchMatMul` on a grid of two or three axes (`enable_nd_tp`), beside one device."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Parameter, Tensor, nn, ops

from torchspore.distributed.shard.strategy_validation import layouts_of
from torchspore.errors import StrategyRefused

RANDOM = np.random.default_rng(0)
X, V, W = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((16, 32), (32, 64), (64, 16)))
TWO = Layout((2, 2, 2), ("rows", "x", "y"))
THREE = Layout((2, 2, 2), ("x", "y", "z"))
STRATEGIES = {
    "two": ((TWO("rows", ("x", "y")), TWO("x", "y")), (TWO("rows", ("y", "x")), TWO("y", "x"))),
    "three": ((THREE(("z", "y"), "x"), THREE(("x", "z"), "y")), (THREE(("z", "x"), "y"), THREE(("y", "z"), "x"))),
}


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self, strategies: Any, is_turned: bool = False, flag: Any = True) -> None:
        super().__init__()
        self.first, self.second = (ops.MatMul(transpose_b=is_turned) for _ in range(2))
        for product, strategy in zip((self.first, self.second), strategies or ()):
            product.shard(strategy)
            product.add_prim_attr("enable_nd_tp", flag)
        self.v, self.w = (Parameter(Tensor((t.T if is_turned else t).copy()), name=name) for name, t in (("v", V), ("w", W)))

    def construct(self, x: Tensor) -> Tensor:
        return self.second(ops.tanh(self.first(x, self.v)), self.w)


def gradients(net: Net) -> list[np.ndarray[Any, Any]]:
    value, (of_x, of_weights) = ms.value_and_grad(lambda x: net(x).square().sum(), 0, net.trainable_params())(Tensor(X))
    return [t.asnumpy() for t in (value, of_x, *of_weights)]


def split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")


@pytest.mark.parametrize("is_turned", [False, True], ids=["", "transpose_b"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_it_is_as_on_one_device(name: str, is_turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    strategies = STRATEGIES[name]
    if is_turned:
        names = [("y", "x"), ("x", "y")] if name == "two" else [("y", ("x", "z")), ("x", ("y", "z"))]
        layout = TWO if name == "two" else THREE
        strategies = tuple((pair[0], layout(*weight)) for pair, weight in zip(strategies, names))
    alone = gradients(Net(None, is_turned))
    split(monkeypatch)
    for actual, expected in zip(gradients(Net(strategies, is_turned)), alone):
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-4)


def test_the_result_is_cut_as_the_next_product_needs_it() -> None:
    for strategies in STRATEGIES.values():
        for (first, second), (following, _) in (strategies, strategies[::-1]):
            fit = layouts_of("MatMul", {"enable_nd_tp": True}, ((16, 16), (16, 16)), (first, second), None, 8)
            assert fit.outputs[0].tensor_map == tuple(following.to_dict()["tensor_map"])


@pytest.mark.parametrize(("strategy", "flag", "text"), [
    ((TWO("rows", ("y", "x")), TWO("x", "y")), True, "the same names at axis 0 of input 1"),
    ((TWO("rows", ("x", "y")), TWO("x", "y")), False, "the same names at axis 0 of input 1"),
    ((TWO("rows", ("x", "y")), TWO("x", "y")), 1, "enable_nd_tp=1: expected a bool"),
], ids=["another order", "off", "no bool"])
def test_other_layouts_are_refused(strategy: Any, flag: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split(monkeypatch)
    with pytest.raises(StrategyRefused, match=text):
        Net((strategy, strategy), flag=flag)(Tensor(X))


class Batches(nn.Cell):
    """Two products of batches."""

    def __init__(self, strategies: Any, is_turned: bool) -> None:
        super().__init__()
        self.first, self.second = (ops.BatchMatMul(transpose_b=is_turned) for _ in range(2))
        for product, strategy in zip((self.first, self.second), strategies or ()):
            product.shard(strategy)
            product.add_prim_attr("enable_nd_tp", True)
        tables = [np.stack([table, -table, table + 1, table / 2]) for table in (V, W)]
        self.v, self.w = (
            Parameter(Tensor((t.swapaxes(1, 2) if is_turned else t).copy()), name=name) for name, t in zip("vw", tables)
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.second(ops.tanh(self.first(x, self.v)), self.w)


@pytest.mark.parametrize("is_turned", [False, True], ids=["", "transpose_b"])
def test_batches_are_as_on_one_device(is_turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(np.stack([X, 2 * X, X - 1, -X]))

    def results(net: Batches) -> list[np.ndarray[Any, Any]]:
        value, (of_x, of_weights) = ms.value_and_grad(lambda x: net(x).square().sum(), 0, net.trainable_params())(x)
        return [t.asnumpy() for t in (value, of_x, *of_weights)]

    grid = Layout((2, 2, 2), ("batch", "x", "y"))
    weights = [("y", "x"), ("x", "y")] if is_turned else [("x", "y"), ("y", "x")]
    strategies = tuple((grid("batch", "None", names), grid("batch", *weight)) for names, weight in zip((("x", "y"), ("y", "x")), weights))
    alone = results(Batches(None, is_turned))
    split(monkeypatch)
    for actual, expected in zip(results(Batches(strategies, is_turned)), alone):
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-4)


def test_other_batches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    split(monkeypatch)
    grid = Layout((2, 2, 2), ("batch", "x", "y"))
    with pytest.raises(StrategyRefused, match="the same names"):
        Batches(((grid("batch", "None", ("x", "y")), grid("None", "x", "y")),), False)(Tensor(np.stack([X] * 4)))
