"""`# @jit.cond:` after an `if` fixes its condition in a graph."""
from __future__ import annotations

import mindspore as ms
from mindspore import Tensor


def test_a_comment_fixes_the_branch() -> None:
    @ms.jit
    def taken(x):
        if x == 2:  # @jit.cond: True
            return 1
        return 0

    @ms.jit
    def skipped(x):
        if x == 2:  # @jit.cond: False
            return 1
        return 0

    assert (taken(Tensor(2)), taken(Tensor(3))) == (1, 1)
    assert (skipped(Tensor(2)), skipped(Tensor(3))) == (0, 0)


def test_an_empty_branch_and_an_else() -> None:
    @ms.jit
    def call(x):
        y = x
        if x > 0:  # @jit.cond: False
            y = y + 1
        if x > 1:  # a plain comment
            y = y * 2
        elif x > 0:  # @jit.cond: False
            y = y + 5
        else:
            y = y - 1
        return y

    assert int(call(Tensor(1))) == 0
    assert int(call(Tensor(3))) == 6


def test_a_comment_on_the_line_before() -> None:
    @ms.jit
    def call(x):
        # @jit.cond: True
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        # @jit.cond: False, a reason
        if x.sum() < 0:
            y = y * 10
        return y

    assert call(Tensor([-1.0, -2.0])).asnumpy().tolist() == [-2, -4]


def _by_number(x, n):
    if n > 0:  # @jit.cond: False
        return x * 2
    return x - 1


def test_conditions_of_python_values_are_fixed_in_graphs_alone() -> None:
    """As in 2.10."""
    @ms.jit
    def by_value(x, s):
        if s is None:  # @jit.cond: True
            y = x * 2
        else:
            y = x - 1
        return y

    @ms.jit
    def in_parts(x, n):
        if n > 0:  # @jit.cond: False
            y = x * 2
        else:
            y = x - 1
        return y + float(x.asnumpy().sum())

    @ms.jit
    def calls(x, n):
        return _by_number(x, n)

    x = Tensor([3.0])
    assert float(by_value(x, 5)) == 6
    assert (float(in_parts(x, 1)), float(in_parts(x, -1))) == (5, 5)
    assert (float(calls(x, 1)), float(_by_number(x, 1))) == (2, 6)
    assert float(ms.grad(ms.jit(_by_number))(x, 1)) == 1
    assert float(ms.jit(ms.grad(_by_number))(x, 1)) == 1
