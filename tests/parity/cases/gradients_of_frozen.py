"""PyNative gradients of Parameters whose `requires_grad` is False, or changes while a gradient is computed."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case


class Net(nn.Cell):
    """Its construct runs `statements`: each multiplies the weight ("x", a factor) or sets its flag (True, False)."""

    def __init__(self, statements):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.array([1.0, 2.0], np.float32)), name="w")
        self.b = ms.Parameter(ms.Tensor(np.array([3.0, 5.0], np.float32)), name="b")
        self.statements = statements

    def construct(self, x):
        total = x * self.b
        for statement in self.statements:
            if isinstance(statement, bool):
                self.w.requires_grad = statement
            elif statement == "view":
                total = total + self.w.reshape(1, 2).sum(0)
            elif statement == "flag":
                total = total * (2.0 if self.w.requires_grad else 3.0)
            else:
                total = total + self.w * x * statement
        return total.sum()


STATEMENTS = {
    "off first": (False, 1.0), "off last": (1.0, False), "between": (1.0, False, 10.0), "on again": (1.0, False, 10.0, True, 100.0),
    "on last": (1.0, False, 10.0, True), "off on": (1.0, False, True), "off on off": (False, 1.0, True, 2.0, False),
    "view": ("view", False), "view of frozen": (False, "view", True, 2.0),
    "reads the flag": (False, 1.0, "flag"), "twice": (1.0, False, False, 2.0, True, True, 3.0),
}


def results(net, of_weights):
    x = ms.Tensor(np.array([7.0, 11.0], np.float32))
    rounds = [of_weights(net, x) for _ in range(2)]
    return {f"{name}{turn}": value.asnumpy() for turn, values in enumerate(rounds) for name, value in zip("abc", values)}


@case(over=STATEMENTS)
def changed_inside(statements):
    gradient = ops.GradOperation(get_all=True, get_by_list=True)
    return results(Net(statements), lambda net, x: gradient(net, ms.ParameterTuple([net.w, net.b]))(x)[1])


@case(over=STATEMENTS)
def changed_inside_by_value_and_grad(statements):
    return results(Net(statements), lambda net, x: ms.value_and_grad(net, None, [net.w, net.b])(x)[1])


@case(over=STATEMENTS)
def changed_in_a_training_step(statements):
    net = Net(statements)
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.5)).set_train()
    return results(net, lambda net, x: (step(x), net.w.value(), net.b.value()))


@case(over={"from the start": False, "between calls": True})
def frozen_and_listed(is_late):
    net = Net((1.0,))
    gradient = ms.grad(net, None, [net.w, net.b])
    if is_late:
        gradient(ms.Tensor(np.array([7.0, 11.0], np.float32)))
    net.w.requires_grad = False
    return results(net, lambda net, x: gradient(x))


@case()
def frozen_after_the_forward_pass():
    net = Net((1.0,)).set_grad()
    x = ms.Tensor(np.array([7.0, 11.0], np.float32))
    net(x)
    net.w.requires_grad = False
    return {"a": ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple([net.w]))(x)[0].asnumpy()}


@case(over={"first": True, "not first": False})
def argument(is_set_inside):
    def square(p):
        if is_set_inside:
            p.requires_grad = False
        return (p * p).sum()

    p = ms.Parameter(ms.Tensor(np.array([1.0, 2.0], np.float32)), name="p", requires_grad=is_set_inside)
    return results(p, lambda p, x: (ms.grad(square)(p),))
