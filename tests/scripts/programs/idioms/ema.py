"""An exponential moving average of weights in three forms: a Cell with assign, a HyperMap after the step, a teacher of momentum encoders."""
import copy

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, ops
from mindspore.ops import functional as F

from measured import MODE, begin, finish, report, train

ms.set_context(mode=MODE)
_ema_op = ops.MultitypeFuncGraph("grad_ema_op")


@_ema_op.register("Tensor", "Tensor", "Tensor")
def _ema_weights(factor, ema_weight, weight):
    return F.assign(ema_weight, ema_weight * factor + weight * (1 - factor))


class EMACell(nn.TrainOneStepCell):
    """Steps, then moves the averages; the factor grows with the number of updates."""

    def __init__(self, network, optimizer, decay=0.99):
        super().__init__(network, optimizer)
        self.ema_weight = self.weights.clone("ema", init="same")
        self.swap_cache = self.weights.clone("swap", init="zeros")
        self.updates = Parameter(Tensor(0.0, ms.float32), name="updates", requires_grad=False)
        self.decay = decay
        self.hyper_map = ops.HyperMap()

    def construct(self, *inputs):
        loss = self.network(*inputs)
        sens = F.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        loss = F.depend(loss, self.optimizer(grads))
        self.updates += 1
        factor = self.decay * (1 - ops.exp(-self.updates / 2))
        loss = F.depend(loss, self.hyper_map(F.partial(_ema_op, factor), self.ema_weight, self.weights))
        return loss, factor

    def swap(self):
        for weight, average, cache in zip(self.weights, self.ema_weight, self.swap_cache):
            cache.set_data(weight.value())
            weight.set_data(average.value())


class MoCo(nn.Cell):
    """Two encoders, the second of which follows the first; a queue of keys in a Parameter."""

    def __init__(self, encoder, momentum=0.9):
        super().__init__()
        self.encoder_q = encoder
        self.encoder_k = copy.deepcopy(encoder)
        for index, parameter in enumerate(self.encoder_k.get_parameters()):
            parameter.requires_grad = False
            parameter.name = "key." + parameter.name
        self.momentum = momentum
        self.query_params = ParameterTuple(self.encoder_q.get_parameters())
        self.key_params = ParameterTuple(self.encoder_k.get_parameters())
        self.queue = Parameter(Tensor(np.random.RandomState(3).randn(4, 6), ms.float32), name="queue", requires_grad=False)
        self.pointer = Parameter(Tensor(0, ms.int32), name="pointer", requires_grad=False)

    def construct(self, x):
        q = ops.L2Normalize(1)(self.encoder_q(x))
        k = ops.stop_gradient(ops.L2Normalize(1)(self.encoder_k(x)))
        positive = (q * k).sum(1, keepdims=True)
        negative = ops.matmul(q, ops.stop_gradient(self.queue + 0.0))
        logits = ops.concat((positive, negative), 1) / 0.2
        return ops.cross_entropy(logits, ops.zeros(logits.shape[0], ms.int32)), k

    def follow(self, keys):
        for query, key in zip(self.query_params, self.key_params):
            ops.assign(key, key * self.momentum + query * (1 - self.momentum))
        start = int(self.pointer)
        self.queue[:, start: start + keys.shape[0]] = keys.T
        self.pointer.set_data(Tensor((start + keys.shape[0]) % 6, ms.int32))


random = np.random.RandomState(12)
x, y = Tensor(random.randn(8, 5).astype(np.float32)), Tensor(random.randn(8, 2).astype(np.float32))
net = begin(nn.SequentialCell([nn.Dense(5, 4, activation="tanh"), nn.Dense(4, 2)]), 1)
step = EMACell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
train(lambda: step(x, y), net, step.ema_weight)
step.swap()
finish(net)

moco = MoCo(begin(nn.Dense(5, 4), 2))
optimizer = nn.SGD(moco.encoder_q.trainable_params(), 0.1, 0.9)
grad_fn = ops.value_and_grad(moco, None, optimizer.parameters, has_aux=True)
images = Tensor(random.randn(2, 5).astype(np.float32))


def follow():
    (loss, keys), grads = grad_fn(images)
    optimizer(grads)
    moco.follow(keys)
    return loss


train(follow, moco)
report(moco.queue)
