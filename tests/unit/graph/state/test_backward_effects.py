"""What a program does in a gradient (`bprop`, hooks) happens once a call, and what it reads there is part of the state."""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

GRADIENTS: list[float] = []
RATE = types.SimpleNamespace(k=2.0)


class CustomBprop(nn.Cell):
    """A Cell whose gradient does what `step` says."""

    def __init__(self, step: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.calls, self.seen, self.weight, self.step = 0, Tensor([0.0]), Parameter(Tensor([2.0]), name="weight"), step

    def construct(self, a: Tensor) -> Tensor:
        return a * self.weight

    def bprop(self, a: Tensor, out: Tensor, gradient: Tensor) -> Any:
        return (self.step(self, gradient),)


def appends(net: Any, gradient: Tensor) -> Tensor:
    GRADIENTS.append(1.0)
    return gradient * len(GRADIENTS)


def writes_a_number(net: Any, gradient: Tensor) -> Tensor:
    net.calls += 1
    return gradient * net.calls


def writes_a_tensor(net: Any, gradient: Tensor) -> Tensor:
    net.seen = gradient
    return gradient * 3


def reads_an_object(net: Any, gradient: Tensor) -> Tensor:
    return gradient * RATE.k


def reads_a_parameter(net: Any, gradient: Tensor) -> Tensor:
    return gradient * net.weight * Tensor([3.0]) + ops.ones_like(gradient)


def prints(net: Any, gradient: Tensor) -> Tensor:
    print("back")
    return gradient * 5


def draws(net: Any, gradient: Tensor) -> Tensor:
    return gradient * float(np.random.rand())


STEPS = [appends, writes_a_number, writes_a_tensor, reads_an_object, reads_a_parameter, prints, draws]


def _straight(net: Any, a: Tensor) -> Tensor:
    return (net(a) * 2).sum()


def _branch(net: Any, a: Tensor) -> Tensor:
    if a.sum() > 0:
        return (net(a) * 2).sum()
    return net(a * 3).sum()


def _seen(step: Callable[..., Tensor], around: Callable[..., Tensor], compiled: bool, capsys: Any) -> list[Any]:
    GRADIENTS.clear()
    RATE.k = 2.0
    np.random.seed(1)
    net, result = CustomBprop(step), list[Any]()
    forward = ms.jit(lambda a: around(net, a)) if compiled else lambda a: around(net, a)
    for value in (1.0, -1.0, 2.0):
        result += [ms.grad(forward)(Tensor([value])).asnumpy().tolist(), len(GRADIENTS),
                   net.calls, net.seen.asnumpy().tolist(), np.random.rand()]
        RATE.k += 1
        net.weight.set_data(net.weight + 1)
    CustomBprop.bprop, before = lambda self, a, out, gradient: (gradient * 50,), CustomBprop.bprop
    try:
        result.append(ms.grad(forward)(Tensor([1.0])).asnumpy().tolist())
    finally:
        CustomBprop.bprop = before
    return [*result, capsys.readouterr().out]


@pytest.mark.parametrize("around", [_straight, _branch])
@pytest.mark.parametrize("step", STEPS)
def test_a_gradient_acts_once_a_call(step: Callable[..., Tensor], around: Callable[..., Tensor], capsys: Any) -> None:
    assert _seen(step, around, True, capsys) == _seen(step, around, False, capsys)


def test_a_hook_of_a_primitive_runs_at_each_call() -> None:
    hooked = ops.HookBackward(lambda gradients: (GRADIENTS.append(1.0), gradients[0] * len(GRADIENTS))[1])
    GRADIENTS.clear()
    change = ms.grad(ms.jit(lambda a: hooked(a * 3).sum()))
    assert [change(Tensor([1.0])).asnumpy().tolist() for _ in range(3)] == [[3.0], [6.0], [9.0]]
