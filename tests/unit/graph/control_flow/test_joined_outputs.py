"""Results of a graph under a PyNative gradient that one Tensor holds in the end: views that show all of their memory, equal results."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import ops

from tests.unit.graph.control_flow.running import INPUTS
from tests.unit.graph.control_flow.test_writes_in_place import tensor

SAME_ELEMENTS = {
    "reversed": lambda b: b[::-1],
    "all elements": lambda b: b[:],
    "ellipsis": lambda b: b[...],
    "reshaped": lambda b: (b * 3).reshape(3),
    "viewed": lambda b: (b * 3).view(3),
    "transposed twice": lambda b: ops.stack([b, b * b]).T.T,
    "new axis and back": lambda b: (b * 3).unsqueeze(0).squeeze(0),
    "expanded to its shape": lambda b: (b * 3).expand_as(b),
    "swapped axis": lambda b: (b * 3).swapaxes(0, 0),
    "flattened": lambda b: (b * 3).flatten(),
    "one piece": lambda b: (b * 3).split(3)[0],
    "narrowed to all": lambda b: (b * 3).narrow(0, 0, 3),
}
PAIRS = {
    "equal products": lambda b: (b * 2, b * 2),
    "a value and its view": lambda b: (c := b * 2, c[:]),
    "a view and its value": lambda b: ((c := b * 2)[:], c),
    "two views": lambda b: ((c := b * 2)[:], c.reshape(3)),
    "equal reversals": lambda b: (b[::-1], b[::-1]),
    "a constant and a result": lambda b: (ops.stop_gradient(b * 2), b * 2),
    "a detached result first": lambda b: (ops.stop_gradient(c := b * 2), c),
}


def reads_a_file() -> None:
    """Ends a part of a call: no graph holds it."""
    open("/dev/null").close()


def expect_equal_gradients(function: Callable[[Any], Any]) -> None:
    weights = tensor(np.array([1, -2, 3], np.float32))

    def loss(x: Any, call: Callable[[Any], Any]) -> Any:
        results = call(x)
        return sum((result * weights).sum() * (at + 2) for at, result in enumerate(results if isinstance(results, tuple) else (results,)))

    call = ms.jit(function)
    for x in (*INPUTS, *INPUTS):
        expected = ms.value_and_grad(loss)(tensor(x), function)
        for ours, theirs in zip(ms.value_and_grad(loss)(tensor(x), call), expected):
            np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("view", SAME_ELEMENTS.values(), ids=SAME_ELEMENTS)
def test_a_view_of_all_elements_carries_the_gradient_of_its_memory(view: Callable[[Any], Any]) -> None:
    """A pass makes such a view and its memory one Tensor. It lost its gradient without a message."""
    def function(x: Any) -> Any:
        b = x * 0.5 + 1
        reads_a_file()
        return view(b)

    expect_equal_gradients(function)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_results_that_a_pass_joins_carry_their_gradients(pair: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        b = x * 0.5 + 1
        reads_a_file()
        return pair(b)

    expect_equal_gradients(function)


def test_an_exception_between_two_parts_keeps_the_gradient() -> None:
    """Found by a generated program: the branch that raises reverses a value of the part before it."""
    def function(x: Any) -> Any:
        a, b = x, x * 0.5 + 1
        try:
            reads_a_file()
            if a.max() < 1:
                raise ValueError
        except ValueError:
            a = b[::-1]
        return a + b

    expect_equal_gradients(function)
