"""Lists that a call of a graph changes: copies of its arguments, and the lists of globals and attributes."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn

VALUES = [1]


@ms.jit
def _append(x: Tensor, values: list[Any], more: Any = ()) -> Any:
    values.append(x)
    for part in more:
        part.append(x)
    return len(values), values


@ms.jit
def _append_global(x: Tensor) -> Any:
    VALUES.append(5)
    return x + len(VALUES)


@ms.jit
def _raise(x: Tensor, values: list[Any]) -> Any:
    values.append(x)
    raise ValueError("after the change")


@ms.jit
def _print(x: Tensor, values: list[Any]) -> Any:
    print("part")
    return values, float(x.asnumpy().sum())


class _History(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.history: list[Any] = []

    def construct(self, x: Tensor) -> Any:
        self.history.append(x)
        return x + len(self.history)


def test_arguments_are_copied() -> None:
    x, values, nested = Tensor([1.0]), [1], ([2], [3])
    for _ in range(3):
        count, result = _append(x, values, more=nested)
        assert count == 2 and result is not values and result[0] == 1 and (values, nested) == ([1], ([2], [3]))
    with pytest.raises(ValueError, match="after the change"):
        _raise(x, values)
    assert values == [1]


def test_an_unchanged_list_is_the_callers() -> None:
    values = [Tensor([1.0]), [2]]
    for _ in range(2):
        assert _print(Tensor([1.0]), values)[0] is values


def test_lists_of_globals_and_attributes_change() -> None:
    VALUES[:] = [1]
    assert [float(_append_global(Tensor([1.0]))) for _ in range(2)] == [3, 4] and VALUES == [1, 5, 5]
    net = ms.jit(_History())
    assert [float(net(Tensor([1.0]))) for _ in range(2)] == [2, 3]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_variable_that_is_the_input(mode: int) -> None:
    t = Tensor([1.0, 2.0])

    def product(x: Tensor) -> Tensor:
        return (x * t).sum()

    ms.set_context(mode=mode)
    try:
        for function in (product, ms.jit(product)):
            assert ms.grad(function)(t).asnumpy().tolist() == [2, 4]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_list_that_is_passed_twice_is_one_list(mode: int) -> None:
    ms.set_context(mode=mode)

    class Appends(nn.Cell):
        def construct(self, a: Any, b: Any) -> Any:
            a.append(id(a) == id(b))
            return b[-1] if a is b else len(b)

    items = [1]
    assert Appends()(items, items) is True
