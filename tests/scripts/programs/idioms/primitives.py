"""MultitypeFuncGraph with several registrations, Map over nested tuples, constexpr, F.depend and Assign chains, mutable, set_inputs."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, mutable, ops
from mindspore.ops import composite as C
from mindspore.ops import constexpr
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
mixed = C.MultitypeFuncGraph("mixed")
plus = C.MultitypeFuncGraph("plus")


@mixed.register("Tensor", "Tensor")
def _both_tensors(a, b):
    return a * b


@mixed.register("Number", "Number")
def _both_numbers(a, b):
    return a - b


@mixed.register("Tensor", "Number")
def _tensor_number(a, b):
    return a + b * 10


@mixed.register("Tuple", "Number")
def _tuple_number(a, b):
    return a[0] * b


@plus.register("Tensor", "Tensor", "Tensor")
def _plus(a, b, c):
    return a + b + c


@constexpr
def windows(length, size):
    return tuple((begin_, min(begin_ + size, length)) for begin_ in range(0, length, size))


@constexpr
def _band(length):
    return Tensor(np.tril(np.ones((length, length))), ms.float32)


class Chain(nn.Cell):
    """Assignments one after the other, in the order that F.depend asks for."""

    def __init__(self):
        super(Chain, self).__init__()
        self.a = Parameter(Tensor([1.0, 2.0]), name="a")
        self.b = Parameter(Tensor([10.0, 20.0]), name="b")
        self.assign, self.assign_add, self.assign_sub = P.Assign(), P.AssignAdd(), P.AssignSub()
        self.hyper_map, self.map = C.HyperMap(), C.Map()
        self.tail = C.HyperMap(plus)

    def construct(self, x, n):
        out = F.depend(x, self.assign(self.a, x * 2))
        out = out + self.a
        self.assign_add(self.b, self.a)
        out = F.depend(out, self.assign_sub(self.b, out))
        self.a = self.a + self.b
        pairs = (mixed(x, self.b), mixed(7, 2), mixed(self.a, 3), mixed((x, x), 3))
        deep = self.map(F.partial(plus, x), (self.a, self.b), (x, x))
        nested = self.tail((x, (x, x)), (self.a, (self.b, x)), (x, (x, self.a)))
        total = _band(2).sum()
        for begin_, end in windows(2, 1):
            total = total + x[begin_:end].sum() * (begin_ + 1)
        return out, pairs, deep, nested, total


chain = Chain()
train(lambda: chain(Tensor([1.0, 3.0]), 3), chain)


class Sums(nn.Cell):
    def construct(self, values, scale):
        total = values[0]
        for value in values[1:]:
            total = total + value * scale
        return total


sums = Sums()
for count in (2, 3, 4):
    report(sums(mutable([Tensor(float(i)) for i in range(count)]), mutable(float(count))))
report(ops.GradOperation(get_all=True)(sums)(mutable((Tensor(1.0), Tensor(2.0), Tensor(3.0))), Tensor(4.0))[-1])


class Pool(nn.Cell):
    def __init__(self):
        super(Pool, self).__init__()
        self.dense = nn.Dense(3, 2)

    def construct(self, x):
        return self.dense(x).mean(axis=0)


pool = begin(Pool(), 3)
pool.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
for rows in (2, 5, 9):
    report(pool(Tensor(np.arange(rows * 3).reshape(rows, 3).astype(np.float32) / 10)))
