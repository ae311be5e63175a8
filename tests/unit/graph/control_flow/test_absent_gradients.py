"""What only the untaken way of a branch or loop uses has no gradient: zeros of it would meet infinities and become nan."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from tests.unit.graph.control_flow.running import LEVELS, flat


def tensor(values: Any) -> Tensor:
    return Tensor(np.array(values, np.float32))


def safe_norm(x):
    s = ops.sqrt((x * x).sum())
    if s > 0:
        return (x / s).sum()
    return (x * 3).sum()


def unused(x):
    s = ops.sqrt(x)
    if x.sum() > 1:
        y = s * 2
    else:
        y = x * x * 5 + x
    return y.sum()


def only_in_the_test(x):
    z = 1.0 / (x - x)
    if z.sum() > 0:
        x = x * x + 4
    return (x * x).sum()


def in_a_loop(x):
    s = ops.log(x)
    for _ in range(3):
        if x.sum() > 1:
            x = x + s
        else:
            x = x * x + x
    return x.sum()


def zero_rounds(x):
    s = ops.log(x)
    i = Tensor(0)
    while i < (x > 0).sum():
        x = x * s
        i = i + 1
    return (x * x).sum()


def some_rounds(x):
    s, i = ops.log(x), Tensor(0)
    while i < 3:
        if x.sum() > 1:
            x = x * s
        else:
            x = x * x * 0.5 + x
        i = i + 1
    return x.sum()


def rounds_that_lose_it(x):
    s, i = ops.log(x), Tensor(0)
    while i < 2:
        y = x + s
        s = x * 2
        x = s if i < 1 else y
        i = i + 1
    return (s * s).sum()


def expression(x):
    s = ops.sqrt(x)
    return (s if x.sum() > 1 else x * x + x).sum()


def conjunction(x):
    s = ops.sqrt(x)
    if x.sum() > 1 and s.sum() > 1:
        return s.sum()
    return (x * x).sum() or (x * 2).sum()


def early(x):
    if x.sum() <= 1:
        return (x * x * x).sum() + x.sum()
    y = ops.sqrt(x)
    if y.sum() > 9:
        return y.sum()
    return (y * y).sum()


def nested(x):
    s, t = ops.sqrt(x), ops.log(x)
    if x.sum() > -1:
        if x.sum() > 1:
            y = s
        else:
            if x.sum() > 0.5:
                y = t
            else:
                y = x * x * 4 + x
    else:
        y = s * t
    return (y * y).sum() + y.sum()


def one_of_two_results(x):
    if x.sum() < 1:
        a, b = ops.sqrt(x), x * x
    else:
        a, b = x * 2, x * 3
    if x.sum() > 1:
        b = b + a
    return (b * b).sum() + x.sum()


def results_one_after_the_other(x):
    a = ops.sqrt(x) if x.sum() < 1 else x
    b = a * 2 if x.sum() < 1 else x * 5
    c = b if x.sum() > 1 else x * x
    return (c + x).sum()


def several_uses(x):
    s = ops.sqrt(x)
    t = s * 2
    if x.sum() > 1:
        y = t + s
    else:
        y = x
    if x.sum() > 2:
        y = y * t
    return (y * y).sum() + y.sum()


def used_on_both_ways(x):
    s = x * x + 2
    y = ops.sqrt(s) if x.sum() > 1 else s * 3
    return y.sum()


def written(x):
    s, b = ops.sqrt(x), x * 1
    if x.sum() > 1:
        b[0] = s[1]
    else:
        b = b * b + b
    return b.sum()


WEIGHTS = tensor([1.0, 2.0])
FUNCTIONS = [
    safe_norm, unused, only_in_the_test, in_a_loop, zero_rounds, some_rounds, rounds_that_lose_it, expression, conjunction, early, nested,
    one_of_two_results, results_one_after_the_other, several_uses, used_on_both_ways, written,
]
POINTS = ([0.0, 0.0], [1.0, 2.0], [0.25, 0.5], [0.0, 0.25])


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


def gradient_of_gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ms.grad(lambda x: (ms.grad(function)(x) * WEIGHTS).sum())


def compared(function: Callable[[Any], Any], change: Callable[[Any], Any], level: str) -> None:
    expected = [flat(change(function)(tensor(point))) for point in POINTS]
    ms.set_context(jit_syntax_level=LEVELS[level])
    inner = change(function)
    compiled = ms.jit(lambda x: inner(x))
    results = [flat(compiled(tensor(point))) for point in POINTS]
    for point, ours, its in zip(POINTS, results, expected):
        for a, b in zip(ours, its):
            np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=str(point))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_pynative(function: Callable[[Any], Any]) -> None:
    compared(function, lambda f: ms.value_and_grad(lambda x: f(x)), "STRICT")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_gradients_are_those_of_pynative(function: Callable[[Any], Any]) -> None:
    compared(function, gradient_of_gradient, "STRICT")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_graph_inside_a_gradient_of_pynative(function: Callable[[Any], Any]) -> None:
    call = ms.jit(function)
    for point in POINTS:
        for a, b in zip(flat(ms.value_and_grad(call)(tensor(point))), flat(ms.value_and_grad(function)(tensor(point)))):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_graph_gives_no_gradient_to_an_argument_that_it_does_not_use() -> None:
    def pick(s, x):
        return (s * 2).sum() if x.sum() > 1 else (x * 3).sum()

    def first(s, x):
        return s * 2, x * 3

    picked, both = ms.jit(pick), ms.jit(first)
    for point in POINTS[:2]:
        x = tensor(point)
        for result, expected in (
            (ms.grad(lambda x: picked(ops.sqrt(x), x))(x), ms.grad(lambda x: pick(ops.sqrt(x), x))(x)),
            (ms.grad(lambda x: both(ops.sqrt(x), x)[1].sum())(x), ms.grad(lambda x: first(ops.sqrt(x), x)[1].sum())(x)),
        ):
            np.testing.assert_allclose(result.asnumpy(), expected.asnumpy())


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(tensor([0.0, 0.0]), name="w")
        self.v = Parameter(tensor([1.0, 1.0]), name="v")

    def construct(self, x):
        length = ops.sqrt((self.w * self.w).sum())
        if length > 0:
            y = self.w / length * self.v
        else:
            y = self.w * x + x
        return (y * y).sum()


def test_a_training_step() -> None:
    def run(mode: int) -> list[Any]:
        ms.set_context(mode=mode)
        net = Net()
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
        return [flat((step(tensor([1.0, -2.0])), net.w, net.v)) for _ in range(3)]

    for ours, its in zip(run(ms.GRAPH_MODE), run(ms.PYNATIVE_MODE)):
        for a, b in zip(ours, its):
            np.testing.assert_allclose(a, b, rtol=1e-5)
            assert np.isfinite(a).all()
