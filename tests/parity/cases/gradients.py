"""Gradient transforms: what they return, in which shape, for whatever they are asked."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

X = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
Y = np.array([[0.5, -2.0], [1.0, 4.0]], np.float32)


def flat(result):
    """Nested tuples of Tensors as nested lists, and None where there is nothing."""
    if isinstance(result, (tuple, list)):
        return [flat(output) for output in result]
    return None if result is None else result.asnumpy().tolist()


def product(x, y):
    return (x * y * x).sum()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(Y), name="weight")
        self.unused = ms.Parameter(ms.Tensor(X), name="unused")

    def construct(self, x):
        return ops.matmul(x, self.weight) * 2


FUNCTIONS = {
    "first": lambda: ms.grad(product)(ms.Tensor(X), ms.Tensor(Y)),
    "second": lambda: ms.grad(product, 1)(ms.Tensor(X), ms.Tensor(Y)),
    "both": lambda: ms.grad(product, (0, 1))(ms.Tensor(X), ms.Tensor(Y)),
    "value": lambda: ms.value_and_grad(product, (0, 1))(ms.Tensor(X), ms.Tensor(Y)),
    "aux": lambda: ms.grad(lambda x, y: (product(x, y), x + y), 0, None, has_aux=True)(ms.Tensor(X), ms.Tensor(Y)),
    "value_aux": lambda: ms.value_and_grad(lambda x, y: (product(x, y), x + y), 0, None, True)(ms.Tensor(X), ms.Tensor(Y)),
    "not_scalar": lambda: ms.grad(lambda x: x * x)(ms.Tensor(X)),
    "unused": lambda: ms.grad(lambda x, y: x.sum(), (0, 1))(ms.Tensor(X), ms.Tensor(Y)),
    "stopped": lambda: ms.grad(lambda x: (ops.stop_gradient(x) * x).sum())(ms.Tensor(X)),
    "twice": lambda: ms.grad(lambda x: ms.grad(lambda y: (y * y * y).sum())(x).sum())(ms.Tensor(X)),
    "get_all": lambda: ops.GradOperation(get_all=True)(product)(ms.Tensor(X), ms.Tensor(Y)),
    "sens": lambda: ops.GradOperation(sens_param=True)(lambda x: x * x)(ms.Tensor(X), ms.Tensor(Y)),
    "through_index": lambda: ms.grad(lambda x: x[0].sum() * x[1, 1])(ms.Tensor(X)),
    "through_where": lambda: ms.grad(lambda x: ops.where(x > 0, x * 2, x * 3).sum())(ms.Tensor(X)),
}


@case(over=FUNCTIONS)
def function(call):
    return {"output": flat(call())}


@case()
def weights():
    net = Net()
    weights_to_derive = net.trainable_params()
    x = ms.Tensor(X)
    both = ops.GradOperation(get_all=True, get_by_list=True)(net, ms.ParameterTuple(weights_to_derive))(x)
    return {
        "grad": flat(ms.grad(net, None, ms.ParameterTuple(weights_to_derive))(x)),
        "input_and_weights": flat(ms.grad(net, 0, weights_to_derive)(x)),
        "value": flat(ms.value_and_grad(net, None, weights_to_derive)(x)),
        "by_list": flat(ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple(weights_to_derive))(x)),
        "all_by_list": flat(both),
    }


class CustomBprop(nn.Cell):
    """A Cell that says its own gradient."""

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return dout * 10, dout * 100


@case(graph=True)
def own_gradient():
    net = CustomBprop()
    return {"output": flat(ms.grad(net, (0, 1))(ms.Tensor(X), ms.Tensor(Y)))}


@case()
def mapped():
    double = ops.MultitypeFuncGraph("double")

    @double.register("Tensor")
    def _double_tensor(x):
        return x * 2

    @double.register("Number")
    def _double_number(x):
        return x + 1

    x, y = ms.Tensor(X), ms.Tensor(Y)
    return {
        "HyperMap": flat(ops.HyperMap()(double, (x, (y, x)))),
        "Map": flat(ops.Map()(double, (x, y))),
        "number": ops.HyperMap()(double, (1, 2)),
        "partial": flat(ops.partial(lambda a, b: a - b, x)(y)),
        "Partial": flat(ops.Partial()(lambda a, b: a - b, x)(y)),
        "depend": flat(ops.depend(x, y)),
        "Depend": flat(ops.Depend()(x, y)),
    }


class Assigning(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(ms.Tensor(np.zeros(2, np.float32)), name="total")
        self.add, self.sub, self.put = ops.AssignAdd(), ops.AssignSub(), ops.Assign()

    def construct(self, x):
        self.add(self.total, x)
        self.sub(self.total, x * 0.5)
        ops.assign_add(self.total, x)
        ops.assign_sub(self.total, x * 0.25)
        return self.total * 2


@case(graph=True)
def assignments():
    net = Assigning()
    outputs = [net(ms.Tensor(np.array([1.0, 2.0], np.float32))).asnumpy() for _ in range(3)]
    ops.assign(net.total, ms.Tensor(np.array([7.0, 8.0], np.float32)))
    after = net.total.asnumpy().copy()
    net.put(net.total, ms.Tensor(np.array([1.0, 1.0], np.float32)))
    return {"outputs": np.stack(outputs), "after": after, "last": net.total.asnumpy()}
