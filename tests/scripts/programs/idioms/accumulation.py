"""Gradient accumulation in three spellings: a Cell with sums in Parameters and a flag, value_and_grad with assign_add, a list in Python."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, ops
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, train

ms.set_context(mode=MODE)
_sum_op = ops.MultitypeFuncGraph("grad_sum_op")
_clear_op = ops.MultitypeFuncGraph("clear_op")


@_sum_op.register("Tensor", "Tensor")
def _cumulative_grad(grad_sum, grad):
    add = ops.AssignAdd()
    return add(grad_sum, grad)


@_clear_op.register("Tensor", "Tensor")
def _clear_grad_sum(grad_sum, zero):
    success = True
    success = ops.depend(success, ops.assign(grad_sum, zero))
    return success


class TrainAccumulate(nn.Cell):
    """Adds gradients up; every `count` calls the optimizer is called, as a counter in a Parameter says."""

    def __init__(self, network, optimizer, count):
        super(TrainAccumulate, self).__init__(auto_prefix=False)
        self.network, self.optimizer, self.count = network, optimizer, count
        self.weights = optimizer.parameters
        self.grad_sum = self.weights.clone(prefix="grad_sum", init="zeros")
        self.zeros = self.weights.clone(prefix="zeros", init="zeros")
        self.counter = Parameter(Tensor(0, ms.int32), name="counter", requires_grad=False)
        self.grad = C.GradOperation(get_by_list=True)
        self.hyper_map = C.HyperMap()

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)
        loss = F.depend(loss, self.hyper_map(F.partial(_sum_op), self.grad_sum, grads))
        P.AssignAdd()(self.counter, Tensor(1, ms.int32))
        return loss


class Apply(nn.Cell):
    def __init__(self, accumulate):
        super(Apply, self).__init__(auto_prefix=False)
        self.optimizer, self.grad_sum, self.zeros = accumulate.optimizer, accumulate.grad_sum, accumulate.zeros
        self.hyper_map = C.HyperMap()

    def construct(self):
        success = self.optimizer(self.grad_sum)
        return F.depend(success, self.hyper_map(F.partial(_clear_op), self.grad_sum, self.zeros))


random = np.random.RandomState(2)
batches = [(Tensor(random.randn(4, 6).astype(np.float32)), Tensor(random.randn(4, 2).astype(np.float32))) for _ in range(3)]


def new_net():
    net = begin(nn.SequentialCell([nn.Dense(6, 5, activation="tanh"), nn.Dense(5, 2)]), 3)
    return net, nn.Adam(net.trainable_params(), 0.01, eps=1e-5)


net, optimizer = new_net()
accumulate = TrainAccumulate(nn.WithLossCell(net, nn.MSELoss()), optimizer, 3)
apply = Apply(accumulate)
accumulate.set_train()


def first():
    losses = [accumulate(x, y) for x, y in batches]
    apply()
    return losses


train(first, net, accumulate.grad_sum)


class Accumulator:
    """The class of the 2.x guide."""

    def __init__(self, optimizer, accumulate_step):
        self.optimizer = optimizer
        self.inner_grads = optimizer.parameters.clone(prefix="accumulate_", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zeros_", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), "counter_")
        self.accumulate_step = accumulate_step
        self.map = ops.HyperMap()

    def __call__(self, grads):
        self.map(ops.partial(ops.assign_add), self.inner_grads, grads)
        if self.counter % self.accumulate_step == 0:
            self.optimizer(self.inner_grads)
            self.map(ops.partial(ops.assign), self.inner_grads, self.zeros)
        ops.assign_add(self.counter, Tensor(1, ms.int32))
        return True


net2, optimizer2 = new_net()
accumulator = Accumulator(optimizer2, 3)
loss_fn = nn.MSELoss()


def forward(x, y):
    return loss_fn(net2(x), y) / 3


grad_fn = ms.value_and_grad(forward, None, optimizer2.parameters)


def second():
    losses = []
    for x, y in batches:
        loss, grads = grad_fn(x, y)
        accumulator(grads)
        losses.append(loss)
    return losses


train(second, net2)
net3, optimizer3 = new_net()


def forward3(x, y):
    return loss_fn(net3(x), y)


gradient = ops.GradOperation(get_by_list=True)(forward3, optimizer3.parameters)


def third():
    total = None
    for x, y in batches:
        grads = gradient(x, y)
        total = grads if total is None else tuple(a + b for a, b in zip(total, grads))
    optimizer3(tuple(g / len(batches) for g in total))
    return [forward3(x, y) for x, y in batches]


train(third, net3)
