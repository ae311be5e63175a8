"""Gradients of a Cell's own, checked and not, and gradients of what is no Tensor."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

X, Y = ms.Tensor(np.ones((2, 3), np.float32)), ms.Tensor(np.full((2, 3), 2, np.float32))


class CustomBprop(nn.Cell):
    def __init__(self, gradients):
        super().__init__()
        self.gradients = gradients

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return self.gradients(dout)


GRADIENTS = {
    "right": lambda d: (d * 2, d),
    "shape": lambda d: (d, d[0]),
    "cut": lambda d: (d[:, :2], d),
    "dtype": lambda d: (d.astype(ms.float16), d),
    "few": lambda d: (d,),
    "alone": lambda d: d,
    "many": lambda d: (d, d, d),
    "none": lambda d: (d, None),
}


def outcome(gradients):
    """The dtypes and numbers of the gradients, or the kind of error."""
    try:
        result = ops.GradOperation(get_all=True)(CustomBprop(gradients))(X, Y)
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error).__name__, str(error).startswith("For user defined method 'bprop' of net ")
    return [(str(g.dtype), g.asnumpy().tolist()) for g in result]


@case(over=GRADIENTS)
def checked(gradients):
    ms.set_context(check_bprop=True)
    try:
        return {"output": outcome(gradients)}
    finally:
        ms.set_context(check_bprop=False)


@case(over=GRADIENTS)
def unchecked(gradients):
    result = outcome(gradients)
    return {"output": result[0] if isinstance(result, tuple) else result}


def shown(result):
    return [shown(output) for output in result] if isinstance(result, tuple) else result.asnumpy().tolist()


def product(x, y):
    return x * y * y + x


TWO, FIVE, W = ms.Tensor(2.0), ms.Tensor(5.0), ms.Parameter(ms.Tensor(1.5), name="w")
NUMBERS = {
    "left out": lambda: ms.grad(product, (0, 1))(TWO, 3.0),
    "an int": lambda: ms.grad(product, (0, 1))(TWO, 3),
    "nothing left": lambda: ms.grad(product, 1)(TWO, 3.0),
    "the first": lambda: ms.grad(product)(3.0, TWO),
    "a tuple of one": lambda: ms.grad(product, (0,))(TWO, FIVE),
    "between": lambda: ms.grad(lambda x, n, y: x * n * y, (0, 1, 2))(TWO, 3.0, FIVE),
    "none": lambda: ms.grad(lambda x, n: x * 2, (0, 1))(TWO, None),
    "weights": lambda: ms.grad(lambda x, n: x * n * W, (0, 1), [W])(TWO, 3.0),
    "weights only": lambda: ms.grad(lambda x, n: x * n * W, 1, [W])(TWO, 3.0),
    "value": lambda: ms.value_and_grad(product, 1)(TWO, 3.0),
    "get_all": lambda: ops.GradOperation(get_all=True)(product)(TWO, 3.0),
    "first of all": lambda: ops.GradOperation()(product)(3.0, TWO),
}


@case(over=NUMBERS, graph=True)
def number(call):
    return {"output": shown(call())}
