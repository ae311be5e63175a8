"""Calls like an earlier one, whose graph is recalled without a key: every change that a key would show is noticed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.engine.native import operators
from torchspore.graph.specialization import graph_table

pytestmark = pytest.mark.skipif(not operators.is_loaded(), reason="`torchspore doctor --build` builds the short paths")


def array(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that were looked up by key."""
    calls: list[Any] = []
    look_up = graph_table.look_up

    def counting(*arguments: Any) -> Any:
        calls.append(arguments[0])
        return look_up(*arguments)

    monkeypatch.setattr("torchspore.graph.specialization.lookup.look_up", counting)
    return calls


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(Tensor(array(3)), name="w")
        self.scale = 2.0
        self.inner = nn.ReLU()

    def construct(self, x: Any) -> Any:
        return self.inner(x * self.w * self.scale)


def test_a_call_is_looked_up_once(looked_up: list[Any]) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Net(), Tensor(array(2, 3))
    for _ in range(5):
        assert np.array_equal(net(x).asnumpy(), array(2, 3) * array(3) * 2)
    assert len(looked_up) == 1
    function = ms.jit(lambda a, b: a - b)
    assert [function(x, Tensor(array(3) + number)).asnumpy()[0, 0] for number in range(3)] == [0, -1, -2]
    assert len(looked_up) == 2


CHANGES: dict[str, tuple[Callable[[Net], Any], Any]] = {
    "an attribute": (lambda net: setattr(net, "scale", 3.0), array(2, 3) * array(3) * 3),
    "a Parameter": (lambda net: net.w.set_data(Tensor(array(3) + 1)), array(2, 3) * (array(3) + 1) * 2),
    "another Parameter": (
        lambda net: setattr(net, "w", ms.Parameter(Tensor(array(3) - 1), name="w")), np.maximum(array(2, 3) * (array(3) - 1) * 2, 0),
    ),
    "a dtype": (lambda net: net.w.set_dtype(ms.float16), array(2, 3) * array(3) * 2),
    "a Cell": (lambda net: setattr(net, "inner", nn.Tanh()), np.tanh(array(2, 3) * array(3) * 2)),
    "a hook": (lambda net: net.inner.register_forward_hook(lambda cell, inputs, output: output + 1), array(2, 3) * array(3) * 2 + 1),
    "construct": (lambda net: setattr(type(net), "construct", lambda self, x: x + 5), array(2, 3) + 5),
    "half precision": (lambda net: net.to_float(ms.float16), array(2, 3) * array(3) * 2),
    "the context": (lambda net: ms.set_context(jit_level="O1"), array(2, 3) * array(3) * 2),
    "the mode": (lambda net: ms.set_context(mode=ms.PYNATIVE_MODE), array(2, 3) * array(3) * 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    monkeypatch.setattr(Net, "construct", Net.construct)               # restored after the test
    net, x = Net(), Tensor(array(2, 3))
    for _ in range(3):
        net(x)
    change, expected = CHANGES[name]
    change(net)
    out = net(x)
    assert np.allclose(out.asnumpy(), expected, rtol=1e-3)
    assert out.dtype == (ms.float16 if name == "half precision" else ms.float32)


def test_arguments_of_another_form() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    difference = ms.jit(lambda a, b: a * 2 - b)

    x, y = Tensor(array(2, 3)), Tensor(array(2, 3) + 1)
    transposed = Tensor(array(3, 2)).T
    parameter = ms.Parameter(y, name="y")
    forms = [(x, y), (x, x), (x, transposed), (Tensor(array(1, 3)), y), (x.astype(ms.float64), y), (x, 1), (x, 2), (x, parameter)]
    for _ in range(3):
        for a, b in forms:
            expected = a.asnumpy() * 2 - (b.asnumpy() if isinstance(b, Tensor) else b)
            assert np.array_equal(difference(a, b).asnumpy(), expected)


def test_an_attribute_of_a_tensor_counts() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    @ms.jit
    def scaled(x: Any) -> Any:
        return x * getattr(x, "factor", 1)

    x = Tensor(array(3))
    for _ in range(3):
        scaled(x)
    x.factor = 4
    assert np.array_equal(scaled(x).asnumpy(), array(3) * 4)
    assert np.array_equal(scaled(Tensor(array(3))).asnumpy(), array(3))


def test_a_global_and_a_closure_count() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    factors = [2]

    @ms.jit
    def scaled(x: Any) -> Any:
        return x * factors[0]

    x = Tensor(array(3))
    for factor in (2, 2, 3, 3, 4):
        factors[0] = factor
        assert np.array_equal(scaled(x).asnumpy(), array(3) * factor)


def test_a_tensor_that_is_state_and_argument() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    class Sum(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.total = ms.Parameter(Tensor(array(3)), name="total", requires_grad=False)
            self.table = Tensor(array(3))

        def construct(self, x: Any) -> Any:
            ops.assign_add(self.total, x)
            return self.total + x * self.table

    net, total = Sum(), array(3)
    for x in (Tensor(array(3)), Tensor(array(3)), net.table, Tensor(array(3)), net.table):
        total = total + array(3)
        assert np.array_equal(net(x).asnumpy(), total + array(3) * array(3))


def test_gradients_around_a_recalled_call() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    square = ms.jit(lambda x: (x * x).sum())
    x = Tensor(array(3))
    for _ in range(3):
        square(x)
        assert np.array_equal(ms.grad(square)(x).asnumpy(), 2 * array(3))
        assert np.array_equal(ms.grad(lambda x: square(x) * 2)(x).asnumpy(), 4 * array(3))


class Growing(nn.Cell):
    """Appends a row to each of two caches, in a tuple in a list."""

    def construct(self, x: Any, caches: Any) -> Any:
        first, second = caches[0]
        return x * 2, [(ms.ops.concat((first, x), 0), ms.ops.concat((x, second), 0))]


def test_calls_of_open_lengths_are_recalled(looked_up: list[Any]) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Growing(), Tensor(array(1, 3) + 1)
    caches: Any = [(Tensor(array(1, 3)), Tensor(array(1, 3) + 5))]
    for length in range(1, 30):
        doubled, caches = net(x, caches)
        (pair,) = caches
        assert type(caches) is list and type(pair) is tuple
        assert [t.shape for t in pair] == [(length + 1, 3)] * 2
        np.testing.assert_array_equal(doubled.asnumpy(), (array(1, 3) + 1) * 2)
        np.testing.assert_array_equal(pair[0].asnumpy(), np.concatenate([array(1, 3), *[array(1, 3) + 1] * length]))
        np.testing.assert_array_equal(pair[1].asnumpy(), np.concatenate([*[array(1, 3) + 1] * length, array(1, 3) + 5]))
    calls = len(looked_up)
    assert calls < 12
    for length in (40, 31):                                   # any order of lengths
        net(x, [(Tensor(np.ones((length, 3), np.float32)), Tensor(np.ones((length, 3), np.float32)))])
    assert len(looked_up) == calls


@pytest.mark.parametrize("change", ["dtype", "strides", "one row", "one Tensor twice", "a tuple", "width"])
def test_other_forms_of_open_arguments_are_noticed(change: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Growing(), Tensor(array(1, 3))
    caches: Any = [(Tensor(array(1, 3)), Tensor(array(1, 3)))]
    for _ in range(12):
        _, caches = net(x, caches)
    first, second = array(9, 3), array(9, 3) * 2
    made: Any = {
        "dtype": lambda: [(Tensor(first.astype(np.float16)), Tensor(second.astype(np.float16)))],
        "strides": lambda: [(Tensor(np.ascontiguousarray(first.T)).T, Tensor(second))],
        "one row": lambda: [(Tensor(first[:1]), Tensor(second))],
        "one Tensor twice": lambda: [(Tensor(first),) * 2],
        "a tuple": lambda: ((Tensor(first), Tensor(second)),),
        "width": lambda: [(Tensor(array(9, 3)), Tensor(array(9, 3)))],
    }[change]()
    for _ in range(2):
        _, ((one, two),) = net(x, made)
        expected = [value.asnumpy() for value in made[0]]
        np.testing.assert_array_equal(one.asnumpy(), np.concatenate([expected[0], array(1, 3)]))
        np.testing.assert_array_equal(two.asnumpy(), np.concatenate([array(1, 3), expected[1]]))
