"""@jit on functions and methods, ms_function, attributes that change, branches on Tensors, loops with a Tensor condition, containers."""
import sys

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, context, jit, ops
from mindspore.ops import functional as F

context.set_context(mode=context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE)
FACTOR = 2.0


@jit
def fused(x, y):
    return ops.relu(x) * y + FACTOR


@jit
def collatz(n):
    steps = Tensor(0, ms.int32)
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = n * 3 + 1
        steps = steps + 1
    return steps


@jit
def containers(x, scale=3, *rest, flag=True):
    values = [x * i for i in range(1, scale)]
    table = {"sum": sum(values), "max": ops.maximum(values[0], values[-1])}
    if flag:
        table["rest"] = len(rest)
    first, *others = values
    return table["sum"], table["max"], (first, tuple(others))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor([1.0, 2.0]), name="weight")
        self.scale = 1.0
        self.history = Tensor([0.0, 0.0])
        self.calls = 0

    @jit
    def helper(self, x):
        return x * self.weight * self.scale

    def construct(self, x):
        self.history = self.history * 0.5 + self.helper(x)
        self.calls = self.calls + 1
        if x.sum() > 3:
            return self.history
        return -self.history


class Memory(nn.Cell):
    """A leaky state, kept between calls in an attribute, reset by a method."""

    def __init__(self):
        super().__init__()
        self.state = Tensor(np.zeros(2), ms.float32)
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")

    def reset(self):
        self.state = Tensor(np.zeros(2), ms.float32)

    def construct(self, x):
        self.state = ops.tanh(self.dense((x + self.state).expand_dims(0))[0])
        return self.state


x = Tensor([-1.0, 2.0])
print(fused(x, Tensor([3.0, 4.0])).asnumpy().tolist())
FACTOR = 5.0
print([int(collatz(Tensor(n, ms.int32)).asnumpy()) for n in (1, 6, 7)])
total, most, (first, others) = containers(x, 4, 1, 2)
print(total.asnumpy().tolist(), most.asnumpy().tolist(), first.asnumpy().tolist(), [o.asnumpy().tolist() for o in others])
net = Net()
print([net(Tensor([v, 1.0])).asnumpy().tolist() for v in (1.0, 2.0, 3.0)], net.calls)
memory = Memory()
print([np.round(memory(Tensor([0.1, 0.2])).asnumpy(), 4).tolist() for _ in range(3)])
memory.reset()
print(np.round(memory(Tensor([0.1, 0.2])).asnumpy(), 4).tolist())


@jit
def newton(x):
    guess = x / 2
    for _ in range(6):
        guess = (guess + x / guess) / 2
    return guess


print("%.5f" % float(newton(Tensor(2.0)).asnumpy()), "%.5f" % float(ops.grad(newton)(Tensor(2.0)).asnumpy()))


@jit
def branches(x):
    if x > 0:
        y = x * x
    elif x < -5:
        y = x + 5
    else:
        y = -x
    return y if y < 100 else Tensor(100.0)


print([float(branches(Tensor(v)).asnumpy()) for v in (3.0, -7.0, -2.0, 20.0)], [float(ops.grad(branches)(Tensor(v)).asnumpy()) for v in (3.0, -7.0, -2.0)])


class Loop(nn.Cell):
    def __init__(self):
        super().__init__()
        self.rate = Parameter(Tensor(0.5, ms.float32), name="rate")

    def construct(self, x, limit):
        i = Tensor(0, ms.int32)
        while i < limit:
            x = x * self.rate + 1
            i += 1
        return x


loop = Loop()
print([float(loop(Tensor(4.0), Tensor(n, ms.int32)).asnumpy()) for n in (0, 1, 5)])
value, grads = ms.value_and_grad(loop, 0, loop.trainable_params())(Tensor(4.0), Tensor(3, ms.int32))
print(float(value.asnumpy()), [float(g.asnumpy()) for g in grads[1]] if isinstance(grads[1], tuple) else float(grads[1].asnumpy()), float(grads[0].asnumpy()))
print(F.shape(x), F.rank(x), F.dtype(x), F.size(x) if hasattr(F, "size") else None)


@jit
def lens(*tensors):
    return [t.sum() for t in tensors]


print([float(v.asnumpy()) for v in lens(x, x * 2)])


@jit
def early(x, words):
    for word in words:
        if word == "stop":
            return x
        x = x + len(word)
    return x * 10


print(early(Tensor(1.0), ("ab", "stop", "c")).asnumpy().tolist(), early(Tensor(1.0), ("ab", "c")).asnumpy().tolist())
