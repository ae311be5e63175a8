"""Gradients that a Cell defines itself, in `bprop`."""
from __future__ import annotations

import copy
import pickle

import mindspore as ms
import pytest
from mindspore import Tensor, nn


class CustomBprop(nn.Cell):
    """x * y, whose gradients are ten and a hundred times the weight."""

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return dout * 10, dout * 100


class Around(nn.Cell):
    def __init__(self):
        super().__init__()
        self.own = CustomBprop()

    def construct(self, x, y):
        return self.own(x * 2, y) * 3


class Outer(nn.Cell):
    """A gradient of its own around a Cell that has one too: only the outer one counts."""

    def __init__(self):
        super().__init__()
        self.own = CustomBprop()

    def construct(self, x, y):
        return self.own(x, y)

    def bprop(self, x, y, out, dout):
        return dout * 7, out


class Several(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y

    def bprop(self, x, y, out, dout):
        return dout[0] * 10, dout[1] * 100


class UsesGrad(nn.Cell):
    def __init__(self):
        super().__init__()
        self.own = CustomBprop()

    def construct(self, x, y):
        return ms.grad(self.own, (0, 1))(x, y)


X, Y = Tensor(2.0), Tensor(5.0)


def gradients(cell):
    return [float(g) for g in ms.grad(cell, (0, 1))(X, Y)]


def test_it_is_used(mode: int) -> None:
    assert gradients(CustomBprop()) == [10, 100] and float(CustomBprop()(X, Y)) == 10


def test_it_is_used_inside_another_cell(mode: int) -> None:
    assert gradients(Around()) == [60, 300]


def test_the_outermost_counts(mode: int) -> None:
    assert gradients(Outer()) == [7, 10]


def test_several_results(mode: int) -> None:
    net = Several()

    def weighed(x, y):
        first, second = net(x, y)
        return first * 2 + second * 3

    assert [float(g) for g in ms.grad(weighed, (0, 1))(X, Y)] == [20, 300]


def test_a_transform_inside_a_cell(mode: int) -> None:
    net = UsesGrad()
    assert [float(g) for g in net(X, Y)] == [10, 100]
    assert [float(g) for g in net(X, Y)] == [10, 100]


def test_one_gradient_too_few_is_refused() -> None:
    class Short(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return dout

    with pytest.raises(RuntimeError, match="expected 2 gradients, one for each argument of construct, got 1"):
        gradients(Short())


@pytest.mark.parametrize(("hook", "kind", "text"), [
    (3, TypeError, "Tensor.register_hook(3): expected a function of a gradient, got int."),
    (lambda gradient: 3, RuntimeError, "register_hook: expected the hook to return a Tensor or None, got int."),
    (lambda gradient: gradient.sum(), RuntimeError, "register_hook: expected the hook to return a gradient of the shape (2,), got ()."),
])
def test_a_hook_on_a_gradient_says_what_is_wrong(hook, kind, text):
    def hooked(x):
        y = x * 3
        y.register_hook(hook)
        return y.sum()

    with pytest.raises(kind) as raised:
        ms.grad(hooked)(Tensor([1.0, 2.0]))
    assert text in str(raised.value)


def test_a_copy_of_a_parameter_has_no_hooks_of_its_original():
    parameter = ms.Parameter(Tensor([1.0, 2.0]), name="weight")
    parameter.register_hook(lambda gradient: gradient * 10)
    for copied in (copy.copy(parameter), copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert ms.grad(lambda x: (x * x).sum())(copied).asnumpy().tolist() == [2.0, 4.0]
    assert ms.grad(lambda x: (x * x).sum())(parameter).asnumpy().tolist() == [20.0, 40.0]
