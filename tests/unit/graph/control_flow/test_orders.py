"""Gradients of third and higher order through branches and loops on Tensors: PyNative's, or an error that names the order."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.errors import CompileError


def branch(x):
    if x.sum() > 0:
        return (x ** 4).sum()
    return (x ** 5).sum()


def nested(x):
    y = x ** 4
    if x.sum() > 0:
        if x.max() > 1:
            y = y * y
        else:
            y = y * x
    return (y * x).sum()


def loop(x):
    count, y = Tensor(0), x
    while count < 2:
        count = count + 1
        y = y * y
    return y.sum()


def gradient(function):
    return lambda x: ms.grad(function)(x).sum()


def operation(function):
    return lambda x: (ops.GradOperation()(function)(x) * x).sum()


def pair(function):
    def both(x):
        value, result = ms.value_and_grad(function)(x)
        if result.sum() > 1:
            return value + (result * result).sum()
        return (result * x).sum()

    return both


NESTS = {
    "3 grad": (gradient, gradient, gradient), "4 grad": (gradient,) * 4, "3 mixed": (gradient, operation, pair),
    "3 mixed otherwise": (pair, gradient, operation), "4 mixed": (operation, pair, gradient, gradient),
}
INPUTS = [Tensor(np.array(values)) for values in ([1.5, 0.5], [-1.0, 0.25], [0.5, 0.25])]


def nest(function, transforms):
    for transform in transforms:
        function = transform(function)
    return function


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name.startswith("4") else []) for name in NESTS])
@pytest.mark.parametrize("function", [branch, nested, loop])
def test_gradients_of_third_order_are_pynatives(function, name: str) -> None:
    nested_function = nest(function, NESTS[name])
    result = ms.jit(lambda x: nested_function(x))
    for x in INPUTS:
        expected = nested_function(x).asnumpy()
        assert expected != 0
        np.testing.assert_allclose(result(x).asnumpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [branch, nested])
def test_a_graph_holds_any_order_of_a_branch(function) -> None:
    nested_function = nest(function, (gradient,) * 4)
    result = ms.jit(lambda x: nested_function(x), fullgraph=True)
    np.testing.assert_allclose(result(INPUTS[0]).asnumpy(), nested_function(INPUTS[0]).asnumpy(), rtol=1e-12)


def test_strict_names_the_order_that_a_loop_has_not() -> None:
    nested_function = nest(loop, (gradient,) * 3)
    with pytest.raises(CompileError) as caught:
        ms.jit(lambda x: nested_function(x), fullgraph=True)(INPUTS[0])
    line = loop.__code__.co_firstlineno + 2
    assert str(caught.value).startswith(
        f"{__file__}:{line}: test_strict_names_the_order_that_a_loop_has_not.<locals>.<lambda> takes a gradient of third order through "
        "a loop on a Tensor; graphs support two orders, which jit_syntax_level STRICT does not allow."
    )


class Scaled(nn.Cell):
    """Has a gradient of its own: of x * x it is not that of the square."""

    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * x * 5.0,)


def hooked(x):
    y = x * x
    y.register_hook(lambda g: g * g)
    return y


scaled = Scaled()
CUSTOM = {
    "bprop": lambda x: scaled(scaled(x) * x), "a hook": lambda x: hooked(x) * x,
    "stopped": lambda x: x * ops.stop_gradient(x * x) + ops.stop_gradient(x) ** 2 * x,
}


@pytest.mark.parametrize("custom", CUSTOM)
@pytest.mark.parametrize("kind", ["branch", "loop"])
def test_a_custom_gradient_has_pynatives_second_order(kind: str, custom: str) -> None:
    inner = CUSTOM[custom]

    def function(x):
        if kind == "branch" and x.sum() > 0:
            x = inner(x)
        while kind == "loop" and x.max() < 2:
            x = inner(x + 1)
        return (x * x).sum()

    for order in (1, 2):
        nested_function = nest(function, (gradient,) * order)
        result = ms.jit(lambda x, nested=nested_function: nested(x))
        for x in INPUTS[:2]:
            np.testing.assert_allclose(result(x).asnumpy(), nested_function(x).asnumpy(), rtol=1e-12)


def test_strict_names_what_has_a_custom_gradient() -> None:
    def function(x):
        if x.sum() > 0:
            x = scaled(x)
        return x.sum()

    nested_function = nest(function, (gradient,) * 2)
    with pytest.raises(CompileError, match="of second order, through a branch or loop on a Tensor, of a value that has its") as caught:
        ms.jit(lambda x: nested_function(x), fullgraph=True)(INPUTS[0])
    assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno + 2}: ")
