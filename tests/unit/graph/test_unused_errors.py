"""An operator whose result nothing uses raises its error in a graph too, at the same line as in PyNative mode."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.engine.torch_internals.torch_private import graph_of
from torchspore.graph import passes

COMPLEX = Tensor(np.array([[1 + 2j, 3], [1j, 2]], np.complex64))
INTS = Tensor(np.array([[1, -2], [3, 4]], np.int32))
SQUARE = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
EMPTY = Tensor(np.ones((0, 2), np.float32))


def argmax_of_complex_numbers(x: Tensor) -> Tensor:
    ops.argmax(COMPLEX * x)
    return x.sum()


def factors_of_no_positive_matrix(x: Tensor) -> Tensor:
    ops.cholesky(SQUARE * x)
    return x.sum()


def gelu_of_ints(x: Tensor) -> Tensor:
    ops.gelu(INTS)
    return x.sum()


def counts_of_negative_numbers(x: Tensor) -> Tensor:
    ops.bincount(INTS.reshape(-1))
    return x.sum()


def index_beyond(x: Tensor) -> Tensor:
    ops.gather(x.reshape(1), INTS[1], 0)
    return x.sum()


def index_into_an_empty_axis(x: Tensor) -> Tensor:
    (EMPTY * x)[INTS[0]]
    return x.sum()


def in_a_branch(x: Tensor) -> Tensor:
    if x > 0:
        ops.argmax(COMPLEX * x)
    return x.sum()


def in_a_loop(x: Tensor) -> Tensor:
    count = x * 0
    while count < x:
        ops.cholesky(SQUARE * x)
        count = count + 1
    return x.sum()


FUNCTIONS: list[Callable[[Tensor], Tensor]] = [
    argmax_of_complex_numbers, factors_of_no_positive_matrix, gelu_of_ints, counts_of_negative_numbers, index_beyond,
    index_into_an_empty_axis, in_a_branch, in_a_loop,
]


class OnlyItsGradient(nn.Cell):
    """Computes the gradient of a value that nothing reads."""

    def construct(self, x: Any) -> Any:
        return ms.grad(lambda x: (EMPTY * x)[INTS[0]].sum() + x.sum())(x)


def error_of(function: Callable[..., Any], *arguments: Any) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:
        function(*arguments)
    return type(caught.value), str(caught.value).split("\n")[0]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("kind", ["result", "gradient", "gradient of a graph"])
def test_raises_as_in_pynative_mode(function: Callable[[Tensor], Tensor], kind: str) -> None:
    x = Tensor(2.0)
    plain = function if kind == "result" else ms.grad(function)
    jitted = ms.jit(function) if kind == "result" else ms.jit(ms.grad(function)) if kind == "gradient" else ms.grad(ms.jit(function))
    expected = error_of(plain, x)
    assert __file__ in expected[1] or "test_unused_errors.py" in expected[1]
    for _ in range(2):
        assert error_of(jitted, x) == expected


def test_raises_if_only_the_gradient_is_used() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    expected = error_of(OnlyItsGradient(), Tensor(2.0))
    ms.set_context(mode=ms.GRAPH_MODE)
    assert error_of(OnlyItsGradient(), Tensor(2.0)) == expected


def test_other_unused_operators_disappear() -> None:
    def function(x: Any) -> Any:
        unused = x.T.exp(), x.half(), (x > 0), torch.zeros(2) + 1, x.sort(), x @ x
        return [x * 2] if unused else []

    module = passes.run(passes.CLEAN, graph_of(function, [torch.ones(2, 2)]))
    assert [str(node.target) for node in module.graph.nodes if node.op == "call_function"] == ["aten.mul.Tensor"]
