"""Runs a function or Cell of the corpus in both modes and compares values and gradients."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

import torchspore

INPUTS = ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.1, 0.2, -0.1], [9.0, 9.0, 9.0], [-9.0, 0.0, -9.0])
WEIGHT = Tensor(np.array([1.0, -2.0, 0.5], np.float32))
LEVELS = {"STRICT": 0, "COMPATIBLE": 1, "LAX": 2}


def flat(result: Any) -> list[Any]:
    """The Tensors (as arrays) and numbers in a nested result."""
    if isinstance(result, Tensor):
        return [result.asnumpy()]
    if isinstance(result, (tuple, list)):
        return [item for part in result for item in flat(part)]
    return [result]


def transform(function: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
    """(values, gradient of the first value)."""

    def forward(x):
        result = function(x)
        return result if isinstance(result, tuple) else (result,)

    return ops.value_and_grad(forward, 0, weights, has_aux=True)


def values(function: Callable[..., Any], inputs: Sequence[Any], gradient: bool, weights: Any = None) -> list[list[Any]]:
    """What `function`, and its gradient, give for each input."""
    call = transform(function, weights) if gradient else function
    return [flat(call(Tensor(np.array(x, np.float32)))) for x in inputs]


def graph_values(function: Callable[..., Any], inputs: Sequence[Any], gradient: bool, level: str) -> tuple[list[list[Any]], Any]:
    """The same as one `@jit` function at a syntax level, and the function."""
    ms.set_context(jit_syntax_level=LEVELS[level])
    try:
        changed = transform(function) if gradient else function
        call = ms.jit(lambda x: changed(x))
        return [flat(call(Tensor(np.array(x, np.float32)))) for x in inputs], call
    finally:
        ms.set_context(jit_syntax_level=2)


def changed(function: Callable[..., Any], order: int) -> Callable[..., Any]:
    """(value, its gradients up to `order`) of a function of one Tensor; of order 2 the gradient of the sum of both."""
    def first(x):
        return ops.value_and_grad(lambda y: function(y))(x)

    def second(x):
        def both(y):
            value, gradient = first(y)
            return value.sum() + (gradient * WEIGHT).sum(), value, gradient

        return ops.value_and_grad(both, 0, None, has_aux=True)(x)

    return first if order == 1 else second


def expected(program: Callable[..., Any], order: int) -> list[list[Any]]:
    """What a generated function comes to in PyNative, for each input, with its state after each call."""
    return run_for_inputs(program, changed(program, order))


def compiled(program: Callable[..., Any], order: int, level: str) -> tuple[list[list[Any]], Any]:
    """The same as one `@jit` function at a syntax level, and the function."""
    inner = changed(program, order)
    call = ms.jit(lambda x: inner(x))
    ms.set_context(jit_syntax_level=LEVELS[level])
    try:
        return run_for_inputs(program, call), call
    finally:
        ms.set_context(jit_syntax_level=2)


def run_for_inputs(program: Any, call: Callable[..., Any]) -> list[list[Any]]:
    """What a call gives for each input, with the state of its program afterwards."""
    state = program.state
    return [
        [*flat(call(Tensor(np.array(x, np.float32)))), state.last.asnumpy().copy(), state.kept.asnumpy().copy()] for x in INPUTS
    ]


def expect_equal(results: list[list[Any]], expected: list[list[Any]], exact: bool = False) -> None:
    """Values of one run against another's: shapes, dtypes, Python types and numbers."""
    assert len(results) == len(expected)
    for ours, its in zip(results, expected):
        assert [type(v) for v in ours] == [type(v) for v in its]
        for a, b in zip(ours, its):
            if not isinstance(b, np.ndarray):
                assert a == b
            else:
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                if exact:
                    np.testing.assert_array_equal(a, b)
                else:
                    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def cell_values(kind: type[nn.Cell], inputs: Sequence[Any], mode: int, gradient: bool) -> tuple[list[list[Any]], nn.Cell, Any]:
    """What a Cell gives, with gradients by input and weights, its attribute `kept` after each call."""
    ms.set_context(mode=mode)
    try:
        net = kind()
        call: Any = net
        if gradient:
            call = Step(net)
        results = []
        for x in inputs:
            results.append([*flat(call(Tensor(np.array(x, np.float32)))), net.kept.asnumpy().copy()])
        return results, net, call
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


class Step(nn.Cell):
    """Value and gradients by input and by the weights."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net
        self.change = ops.value_and_grad(net, 0, net.trainable_params())

    def construct(self, x):
        value, (by_input, by_weights) = self.change(x)
        return value, by_input, by_weights


def is_single_graph(call: Any) -> bool:
    """Whether one graph served every call."""
    return len(torchspore.graphs(call)) == 1 and torchspore.graphs(call)[0].runs == len(INPUTS)
