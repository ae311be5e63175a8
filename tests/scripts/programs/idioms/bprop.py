"""Cells with a bprop of their own, custom_vjp-like functions, own Primitives with prim_attr_register, infer_* and vm_impl, hooks."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, ops


from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class RoundSTE(nn.Cell):
    """Rounds; its gradient is that of a clipped identity."""

    def __init__(self):
        super(RoundSTE, self).__init__()
        self.round = ops.Round()
        self.used_bprop_inputs = [0]

    def construct(self, x):
        return self.round(x * 4) / 4

    def bprop(self, x, out, dout):
        return (ops.select(ops.abs(x) < 1, dout, ops.zeros_like(dout)),)


class GradientReversal(nn.Cell):
    def __init__(self, factor):
        super(GradientReversal, self).__init__()
        self.factor = factor

    def construct(self, x):
        return x

    def bprop(self, x, out, dout):
        return (-self.factor * dout,)


class Net(nn.Cell):
    def __init__(self):
        super(Net, self).__init__()
        self.body, self.quantize, self.reverse = nn.Dense(5, 4), RoundSTE(), GradientReversal(0.5)
        self.head, self.domain = nn.Dense(4, 2), nn.Dense(4, 1)

    def construct(self, x):
        hidden = self.quantize(ops.tanh(self.body(x)))
        return self.head(hidden), self.domain(self.reverse(hidden))


class Loss(nn.Cell):
    def __init__(self, net):
        super(Loss, self).__init__(auto_prefix=False)
        self.net = net

    def construct(self, x, y, kind):
        classes, domain = self.net(x)
        return ops.cross_entropy(classes, y) + ops.binary_cross_entropy_with_logits(
            domain, kind, ops.ones_like(kind), ops.ones_like(kind))


random = np.random.RandomState(10)
x, y = Tensor(random.randn(6, 5).astype(np.float32)), Tensor(random.randint(0, 2, 6).astype(np.int32))
kind = Tensor(random.randint(0, 2, (6, 1)).astype(np.float32))
net = begin(Net(), 2)
step = nn.TrainOneStepCell(Loss(net), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
train(lambda: step(x, y, kind), net)


class MulAdd(nn.Cell):
    def construct(self, x, y):
        return x * x + y

    def bprop(self, x, y, out, dout):
        return 3 * x * dout, 2 * dout + out * 0


report(ops.GradOperation(get_all=True)(MulAdd())(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])))


class Count(nn.Cell):
    def __init__(self):
        super(Count, self).__init__()
        self.weight = ms.Parameter(Tensor([2.0, 3.0]), name="weight")

    def construct(self, x):
        return (self.weight * x).sum()


def triple(dout):
    return dout * 3


class Inserted(nn.Cell):
    def __init__(self):
        super(Inserted, self).__init__()
        self.insert = ops.InsertGradientOf(triple)

    def construct(self, x):
        return self.insert(x * x)


report(ops.GradOperation()(Inserted())(Tensor([1.0, -2.0])))
counted = Count()
hooked = counted.weight.register_hook(lambda gradient: gradient * 10)
report(ops.GradOperation(get_by_list=True)(counted, ms.ParameterTuple([counted.weight]))(Tensor([1.0, 1.0])))
hooked.remove()
report(ops.GradOperation(get_by_list=True)(counted, ms.ParameterTuple([counted.weight]))(Tensor([1.0, 1.0])))
