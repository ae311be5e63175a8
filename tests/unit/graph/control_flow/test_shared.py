"""A Parameter that is one way of a branch or loop stays itself: who writes into what came out of it, writes into the Parameter, or not."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

INPUTS = ([1.0, 2.0], [-1.0, -2.0], [3.0, -1.0], [-2.0, -2.0], [0.5, 0.5])


class Net(nn.Cell):
    """Two Parameters and an attribute; what it computes is given to it."""

    def __init__(self, compute: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.compute = compute
        self.a = Parameter(Tensor(np.array([1.0, 2.0], np.float32)), name="a")
        self.b = Parameter(Tensor(np.array([3.0, 4.0], np.float32)), name="b")
        self.last = Tensor(np.zeros(2, np.float32))

    def construct(self, x):
        return self.compute(self, x)


def assigned_through_a_name(s, x):
    t = s.a if x.sum() > 0 else s.b
    ops.assign(t, x)
    return s.a + s.b


def changed_in_place(s, x):
    if x.sum() > 0:
        t = s.a
    else:
        t = s.b
    t += 1.0
    return s.a + s.b


def stored_after_the_branch(s, x):
    s.last = x * 2
    s.last = x if x.sum() > 0 else s.a
    return s.last * s.a


def stored_in_the_branch(s, x):
    if x.sum() > 0:
        s.last = s.a
    else:
        s.last = s.b
    y = s.last * 2
    s.last = x
    return y + s.a


def stored_on_one_way(s, x):
    if x.sum() > 0:
        s.last = s.a
    y = s.last * 2
    s.last = x
    return y


def stored_after_a_loop(s, x):
    t = s.a
    while t.sum() < x.sum():
        t = t + 3
    s.last = t
    return t + 1


def stored_after_a_loop_that_takes_it(s, x):
    t, i = x, x * 0
    while i.sum() < 3:
        i = i + 1
        t = s.b
    s.last = t
    return t + s.b


def stored_in_a_loop_a_round_later(s, x):
    i, c = Tensor(0), x * 2
    while i < 2 and x.sum() < 50:
        i = i + 1
        if c[0] > c[1]:
            s.last = c if x.max() > -5 else x
        c = c if x.max() < -1 else s.a
    return c + s.last * s.a


def stored_without_a_branch(s, x):
    s.last = s.a
    return s.last + x


def element_written(s, x):
    t = s.a if x.sum() > 0 else s.b
    t[0] = 7.0
    return s.a * s.b


def loop_that_writes(s, x):
    t = s.a
    while t.sum() < 10:
        ops.assign_add(t, x * x + 1)
    return t + s.b


def swapped_in_a_loop(s, x):
    t, u = s.a, s.b
    for _ in range(3):
        if x.sum() > 0:
            t, u = u, t
        ops.assign_add(t, x)
    return s.a - s.b


def written_while_a_name_has_it(s, x):
    t = x if x.sum() > 0 else s.a
    ops.assign(s.a, x * 2)
    return t + s.a


def written_while_a_tuple_has_it(s, x):
    pair = (s.a, x) if x.sum() > 0 else (x, s.b)
    ops.assign_add(s.a, x)
    ops.assign_add(s.b, x)
    return pair[0] + pair[1]


FUNCTIONS = [
    assigned_through_a_name, changed_in_place, stored_after_the_branch, stored_in_the_branch, stored_on_one_way, stored_after_a_loop,
    stored_after_a_loop_that_takes_it, stored_in_a_loop_a_round_later,
    stored_without_a_branch, element_written, loop_that_writes, swapped_in_a_loop,
    written_while_a_name_has_it, written_while_a_tuple_has_it,
]


def results(compute: Callable[[Any, Any], Any], mode: int) -> list[list[list[float]]]:
    ms.set_context(mode=mode)
    try:
        net = Net(compute)
        return [[t.asnumpy().tolist() for t in (net(Tensor(np.array(x, np.float32))), net.a, net.b, net.last)] for x in INPUTS]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("compute", FUNCTIONS, ids=lambda function: function.__name__)
def test_both_modes_share_and_write_alike(compute: Callable[[Any, Any], Any]) -> None:
    assert results(compute, ms.GRAPH_MODE) == results(compute, ms.PYNATIVE_MODE)


class Tied(nn.Cell):
    """Names of one Tensor, which are later given another one."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Parameter(Tensor([1.0, 2.0]), name="a"), Parameter(Tensor([3.0, 4.0]), name="b")
        self.last, self.kept = self.a, Tensor([5.0, 6.0])
        self.again = self.kept

    def construct(self, x):
        return self.last * x + self.a, self.kept * x + self.again


def test_names_of_one_tensor_may_part_and_meet(mode: int) -> None:
    net, x = Tied(), Tensor([2.0, 2.0])

    def values() -> list[list[float]]:
        return [t.asnumpy().tolist() for t in net(x)]

    assert values() == [[3.0, 6.0], [15.0, 18.0]]
    net.last, net.again = net.b, Tensor([0.0, 1.0])
    assert values() == [[7.0, 10.0], [10.0, 13.0]]
    net.last, net.again = net.a, net.kept
    assert values() == [[3.0, 6.0], [15.0, 18.0]]
