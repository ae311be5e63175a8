"""Writes in place on one way of a branch or loop while the other way gives the name another value: value, gradients and state."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from tests.unit.graph.control_flow.running import INPUTS, LEVELS, flat

WEIGHTS = Tensor(np.array([1.0, -2.0, 0.5], np.float32))


def tensor(values: Any) -> Tensor:
    return Tensor(np.array(values, np.float32))


def element(x):
    b = x * 1
    if x.sum() > 1:
        b[0] = 9
    else:
        b = b + 1
    return (b * b).sum()


def mask(x):
    b = x * x
    if x.sum() > 1:
        b = ops.sin(b)
    else:
        b[b > 3] = 0
    return (b * b).sum()


def sum_in_place(x):
    b = x * 1
    if x.sum() > 1:
        b[1] += x[0] * 2
    else:
        b = b * x
    return (b * b).sum()


def method(x):
    b = x * 1
    if x.sum() > 1:
        b.mul_(3)
    else:
        b = ops.tanh(b)
    return (b * b).sum()


def alias(x):
    b = x * 1
    c = b
    if x.sum() > 1:
        c[0] = x[1] * 2
    else:
        b = b * 2
    return (b * b).sum() + c.sum()


def view(x):
    b = x * 1
    v = b[1:]
    if x.sum() > 1:
        v[0] = 9
    else:
        b = b * 2
    return (b * b).sum() + (v * v).sum()


def base_of_a_view(x):
    b = x * 1
    v = b[1:]
    if x.sum() > 1:
        b[1] = x[0] * x[0]
    else:
        v = v * 2
    return (b * b).sum() + (v * v).sum()


def set_first(t, x):
    t[0] = x[1] * x[1]
    return t.sum()


def called(x):
    b, n = x * 1, 0
    if x.sum() > 1:
        n = set_first(b, x)
    else:
        b = b * 2
    return (b * b).sum() + n


def exchanged(x):
    a, b = x * 1, x * 2
    if x.sum() > 1:
        a, b = b, a
        a[0] = 3
    else:
        b.mul_(a)
    return (a * a).sum() + (b * b * b).sum()


def both_ways(x):
    b = x * 1
    if x.sum() > 1:
        b[0] = 9
    else:
        b[1] = b[0] * 2
    return (b * b).sum()


def deep(x):
    b = x * 1
    if x.sum() > -20:
        if x.sum() > -10:
            if x.sum() > 1:
                if x.sum() > 10:
                    b[0] = x[2]
                else:
                    b = b * b
            else:
                b[1] = 3
        else:
            b = b + x
        b.mul_(2)
    return (b * b).sum()


def made_on_the_way(x):
    if x.sum() > 1:
        b = x * 2
        c = b * b
        b.mul_(x)
    else:
        b = c = x * 3
    return b.sum() + c.sum()


def in_a_for(x):
    b = x * 1
    for i in range(3):
        if b.sum() > 1:
            b[i] = 0.5
        else:
            b = b * b + 1
    return (b * b).sum()


def in_a_while(x):
    b, i = x * 1, Tensor(0)
    while i < 3:
        if b.sum() > 1:
            b[0] = b[1] * 0.5
        else:
            b = b * b * 0.5 + 1
        i = i + 1
    return (b * b).sum()


def view_in_nested_parts(x):
    """A view that a loop hands to a branch inside of a branch begins where it did."""
    b, n, i = x * 1, 0, Tensor(0)
    v = b[1:]
    while i < 2:
        i = i + 1
        v.mul_(0.5)
    if b.sum() > 0.5:
        x = x * 1
    elif x.sum() > 3:
        if n < 0:
            return x.sum()
    else:
        b[b > 1] = 0.5
        v[0] = b[0] * b[2]
    return (b * b).sum() + (v * v).sum() + x.sum()


def in_a_counted_loop(x):
    b = x * 1
    for _ in range((x > 0).sum()):
        b[0] = b[1] * b[2]
        b = ops.tanh(b)
        b[1] += 0.5
    return (b * b).sum()


def with_jumps(x):
    b, i = x * 1, Tensor(0)
    while i < 4:
        i = i + 1
        if b.sum() > 20:
            b[0] = 1
            break
        if b[0] > b[1]:
            b = b * 0.5
            continue
        if b[2] < -8:
            b[1] = b[0] * 3
            return (b * b).sum()
        b.mul_(1.5)
    return (b * b * b).sum()


def early(x):
    b = x * 1
    if x.sum() > 10:
        b[1] = 2
        return (b * b).sum()
    if x.sum() < -4:
        b = b * 3
    else:
        b.add_(x * x)
    return (b * b).sum()


FUNCTIONS = [
    element, mask, sum_in_place, method, alias, view, base_of_a_view, called, exchanged, both_ways, deep, made_on_the_way, in_a_for,
    in_a_while, view_in_nested_parts, in_a_counted_loop, with_jumps, early,
]


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


def first(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ms.value_and_grad(lambda x: function(x))


def second(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ms.grad(lambda x: (ms.grad(function)(x) * WEIGHTS).sum())


@pytest.mark.parametrize("change", [first, second], ids=["first", "second"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_in_strict(function: Callable[[Any], Any], change: Callable[..., Any]) -> None:
    expected = [flat(change(function)(tensor(x))) for x in INPUTS]
    ms.set_context(jit_syntax_level=LEVELS["STRICT"])
    inner = change(function)
    call = ms.jit(lambda x: inner(x))
    for x, values in zip(INPUTS, expected):
        for ours, its in zip(flat(call(tensor(x))), values):
            np.testing.assert_allclose(ours, its, rtol=1e-5, atol=1e-5, err_msg=str(x))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_graph_inside_a_gradient_and_without_one(function: Callable[[Any], Any]) -> None:
    call = ms.jit(function)
    for x in INPUTS:
        np.testing.assert_allclose(call(tensor(x)).asnumpy(), function(tensor(x)).asnumpy(), rtol=1e-5)
        value, gradient = ms.value_and_grad(function)(tensor(x))
        assert value.asnumpy() == pytest.approx(function(tensor(x)).asnumpy(), rel=1e-5)     # a gradient changes no value
        for ours, its in zip(flat(ms.value_and_grad(call)(tensor(x))), flat((value, gradient))):
            np.testing.assert_allclose(ours, its, rtol=1e-5, err_msg=str(x))


def test_what_may_be_another_tensor_runs_as_pynative_or_is_refused() -> None:
    def shared(x):
        b = x * 1
        c = b
        if x.sum() > 1:
            b = b * 2
        b[0] = 9
        return (b * b).sum() + (c * c * c).sum()

    def the_argument(x):
        y = x
        if x.sum() > 1:
            y = x * 2
        y[0] = 9
        return (y * y).sum()

    for function in (shared, the_argument):
        for x in INPUTS:
            inputs, its = tensor(x), tensor(x)
            for ours, theirs in zip(flat(ms.jit(first(function))(inputs)), flat(first(function)(its))):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5)
            np.testing.assert_array_equal(inputs.asnumpy(), its.asnumpy())
    ms.set_context(jit_syntax_level=LEVELS["STRICT"])
    inner = first(shared)
    reason = "writes in place into a Tensor that may be one of several, depending on a Tensor, and reads another of them"
    with pytest.raises(RuntimeError, match=reason):
        ms.jit(lambda x: inner(x))(tensor(INPUTS[0]))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(tensor([1, 2, 3]), name="w")
        self.count = Parameter(tensor([0, 0, 0]), name="count", requires_grad=False)

    def construct(self, x):
        b = self.w * x
        if x.sum() > 1.5:
            b = ops.relu(b)
            self.count[0] += 1
        else:
            b[0] = 0.0
            self.w[1] = self.w[1] * 0.5
        i = Tensor(0)
        while i < 2:
            if b[2] > 1:
                b[2] = b[1] * self.w[0]
            else:
                b = b + self.w
                self.count[1:] += 1
            i = i + 1
        return (b * b).sum() * 0.1


def test_a_training_step_learns_what_pynative_learns() -> None:
    def run(mode: int) -> list[Any]:
        ms.set_context(mode=mode)
        net = Net()
        step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
        return [
            [v.copy() for v in flat((step(tensor(x)), net.w, net.count))]
            for x in ([-1, -2, 0.5], [1, 2, 3], [0.1, 0.2, 0.3], [1, 1, 1])
        ]

    for ours, its in zip(run(ms.GRAPH_MODE), run(ms.PYNATIVE_MODE)):
        for a, b in zip(ours, its):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def adds(b, x):
    b.add_(x)


def multiplies(b, x):
    b.mul_(x)
    return b * 1


def copies(b, x):
    b.copy_(x * x)


def adds_to_a_view(b, x):
    v = b[1:]
    v.add_(x[:2])
    return v * 1


def sets_elements(b, x):
    b[:2] = x[1:]
    b[2] += x[0]


@pytest.mark.parametrize("is_viewed", [False, True])
@pytest.mark.parametrize("write", [adds, multiplies, copies, adds_to_a_view, sets_elements], ids=lambda f: f.__name__)
def test_a_graph_writes_into_a_tensor_from_outside_under_a_gradient(write: Callable[..., Any], is_viewed: bool) -> None:
    """`b` needs no gradient before the write; the methods with an underscore lost the gradient of what they wrote."""
    def loss(x, write):
        b = ops.ones_like(x)
        view = b[1:] if is_viewed else b
        result = write(b, x)
        return (b * b).sum() + (view * view * view).sum() + (0 if result is None else result.sum())

    call = ms.jit(write)
    for x in INPUTS:
        ours = ms.value_and_grad(lambda x: loss(x, call))(tensor(x))
        theirs = ms.value_and_grad(lambda x: loss(x, write))(tensor(x))
        for a, b in zip(flat(ours), flat(theirs)):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_writes_between_parts_of_a_call_keep_their_gradient() -> None:
    def function(x):
        b = ops.zeros_like(x)
        open("/dev/null").close()
        b.add_(x)
        open("/dev/null").close()
        b.mul_(x)
        return (b * b).sum()

    call = ms.jit(function)
    for x in INPUTS:
        for ours, theirs in zip(flat(ms.value_and_grad(call)(tensor(x))), flat(ms.value_and_grad(function)(tensor(x)))):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def reads_a_file() -> None:
    """Ends a part of a call: no graph holds it."""
    open("/dev/null").close()


def one_view(x):
    b = ops.stack([x, x * x]).T
    reads_a_file()
    b[1, 0] = x[2] * 2
    return (b * b).sum()


def two_views(x):
    b = ops.stack([x, x * x]).T
    first, last = b[1:], b[:2]
    b = None
    reads_a_file()
    first.mul_(x[0])
    reads_a_file()
    last[1] = x[:2]
    return (last * last).sum() + (first * first * first).sum()


def halves_of_a_result(x):
    first, last = ops.concat([x, x * x]).chunk(2)
    reads_a_file()
    first.mul_(last)
    last[0] = first[1]
    return (last * last).sum() + (first * first * first).sum()


def overlapping_elements(x):
    rows = ops.sin(x).expand((2, 3))
    part = rows[1, 1:]
    reads_a_file()
    part[0] = x[0]
    return (rows * rows).sum() + (part * part * part).sum()


@ms.jit
def views_of_a_graph(x):
    y = x * 2
    return y[:2], y.reshape(3, 1), y.view(1, 3)


def views_out_of_a_graph(x):
    a, b, c = views_of_a_graph(x)
    b.mul_(x[0])
    c[0, 1] = x[2] * x[2]
    a[0] = b[2, 0] * 3
    return (a * a).sum() + (b * b * b).sum() + c.sum() * x[0]


@pytest.mark.parametrize(
    "function", [one_view, two_views, halves_of_a_result, overlapping_elements, views_out_of_a_graph], ids=lambda f: f.__name__,
)
def test_views_that_leave_a_graph_keep_their_gradient_when_they_are_written(function: Callable[[Any], Any]) -> None:
    """The memory of these views is no result of the graph; a write into one of them lost the gradient of all."""
    call = ms.jit(function)
    for x in (*INPUTS, *INPUTS):
        value, gradient = ms.value_and_grad(function)(tensor(x))
        np.testing.assert_allclose(value.asnumpy(), function(tensor(x)).asnumpy(), rtol=1e-5)
        for ours, theirs in zip(flat(ms.value_and_grad(call)(tensor(x))), flat((value, gradient))):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
