"""What a call that can't be one graph must not do twice: draw initial values, keep values of a region that is computed again."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn
from mindspore.common.initializer import Normal, initializer


@pytest.fixture(autouse=True)
def _pynative_after() -> Any:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def _makes_a_layer(a: Tensor) -> Tensor:
    return nn.Dense(2, 2)(a)


def _draws(a: Tensor) -> Tensor:
    return a + initializer(Normal(), (2,), ms.float32)


@pytest.mark.parametrize("function", [_makes_a_layer, _draws])
def test_initial_values_are_drawn_once_a_call(function: Callable[[Tensor], Tensor]) -> None:
    def seen(call: Callable[[Tensor], Tensor]) -> list[Any]:
        ms.set_seed(5)
        values = [call(Tensor([[1.0, 2.0]])).asnumpy().tolist() for _ in range(3)]
        return [*values, initializer(Normal(), (2,), ms.float32).asnumpy().tolist()]

    assert seen(ms.jit(function)) == seen(function)


class Region(nn.Cell):
    """Computed again in the backward pass, with something in it that no graph holds."""

    def __init__(self, step: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.dense, self.drop, self.runs, self.step = nn.Dense(2, 2, weight_init="ones"), nn.Dropout(p=0.5), [0], step

    def construct(self, a: Tensor) -> Tensor:
        result = self.dense(a)
        self.runs[0] += 1
        return self.step(self, result) * 2


def _counts(net: Any, a: Tensor) -> Tensor:
    return a


def _prints_as_a_tensor_decides(net: Any, a: Tensor) -> Tensor:
    if a.sum() > 3:
        a = a * 2
        print("large")
    return a


def _drops(net: Any, a: Tensor) -> Tensor:
    return net.drop(a)


@pytest.mark.parametrize("step", [_counts, _prints_as_a_tensor_decides, _drops])
def test_a_region_with_graph_breaks_is_recomputed(step: Callable[[Any, Tensor], Tensor]) -> None:
    def seen(mode: int) -> list[Any]:
        ms.set_context(mode=mode)
        ms.set_seed(5)
        net = Region(step)
        net.recompute()
        net.set_train()
        forward = ms.jit(lambda a: (net(a) ** 2).sum()) if mode == ms.GRAPH_MODE else lambda a: (net(a) ** 2).sum()
        change, results = ms.value_and_grad(forward, 0, net.trainable_params()), []
        for value in (1.0, -1.0, 2.0, 2.0):
            number, (by_input, by_weights) = change(Tensor([[value, 2.0], [3.0, value]]))
            numbers = [t.asnumpy().tolist() for t in (number, by_input, *by_weights)]
            results += [[round(v, 3) for v in _flat(numbers)], net.runs[0]]
        return results

    assert seen(ms.GRAPH_MODE) == seen(ms.PYNATIVE_MODE)


def test_a_variable_that_two_functions_share_is_put_back() -> None:
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    def counted() -> int:
        return count

    def step(a: Tensor) -> Tensor:
        add()
        return a * 2 if counted() > 100 else a

    compiled = ms.jit(step)
    for turn in range(1, 4):
        compiled(Tensor([1.0]))
        assert count == turn


def _flat(value: Any) -> list[float]:
    return [v for item in value for v in _flat(item)] if isinstance(value, list) else [value]
