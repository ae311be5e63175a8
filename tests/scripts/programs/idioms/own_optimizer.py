"""Optimizers of one's own: subclasses of nn.Optimizer with state by ParameterTuple.clone, decay and groups, map_ and HyperMap over functions."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, context, ops
from mindspore.common.initializer import initializer
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, finish, train

context.set_context(mode=MODE)


class Momentum(nn.Optimizer):
    """As the guide on optimizers has it."""

    def __init__(self, params, learning_rate, momentum=0.9):
        super(Momentum, self).__init__(learning_rate, params)
        self.momentum = Parameter(Tensor(momentum, ms.float32), name="momentum")
        self.moments = self.parameters.clone(prefix="moments", init="zeros")

    def construct(self, grads):
        lr = self.get_lr()
        params = self.parameters
        for i in range(len(params)):
            ops.assign(self.moments[i], self.moments[i] * self.momentum + grads[i])
            update = params[i] - self.moments[i] * lr
            ops.assign(params[i], update)
        return params


_lion_opt = C.MultitypeFuncGraph("lion_opt")


@_lion_opt.register("Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Bool")
def _update_run_op(beta1, beta2, lr, weight_decay, param, m, gradient, decay_flag):
    update = F.tanh(50 * (m * beta1 + gradient * (1 - beta1)))
    if decay_flag:
        update = update + weight_decay * param
    next_m = m * beta2 + gradient * (1 - beta2)
    next_param = param - lr * update
    next_param = F.depend(next_param, F.assign(param, next_param))
    next_param = F.depend(next_param, F.assign(m, next_m))
    return next_param


class Lion(nn.Optimizer):
    """As the zoo writes AdamWeightDecay: one registered function over all Parameters."""

    def __init__(self, params, learning_rate=1e-2, beta1=0.9, beta2=0.99, weight_decay=0.0):
        super(Lion, self).__init__(learning_rate, params, weight_decay)
        self.beta1 = Tensor(np.array([beta1]).astype(np.float32))
        self.beta2 = Tensor(np.array([beta2]).astype(np.float32))
        self.decay_value = Tensor(np.array([weight_decay]).astype(np.float32))
        self.m = self.parameters.clone(prefix="lion_m", init="zeros")
        self.hyper_map = C.HyperMap()

    def construct(self, gradients):
        lr = self.get_lr()
        return self.hyper_map(F.partial(_lion_opt, self.beta1, self.beta2, lr, self.decay_value), self.parameters, self.m, gradients,
                              self.decay_flags)


_adam = C.MultitypeFuncGraph("own_adam")


@_adam.register("Function", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor")
def _run_adam(opt, lr, gradient, param, m, v):
    next_m = 0.9 * m + 0.1 * gradient
    next_v = 0.99 * v + 0.01 * opt(gradient)
    success = F.depend(True, F.assign(m, next_m))
    success = F.depend(success, F.assign(v, next_v))
    return F.depend(success, F.assign(param, param - lr * next_m / (F.sqrt(next_v) + 1e-2)))


class PlainAdam(nn.Optimizer):
    def __init__(self, params, learning_rate, weight_decay):
        super().__init__(learning_rate, params, weight_decay=weight_decay, loss_scale=2.0)
        self.m = self.parameters.clone(prefix="m", init="zeros")
        self.v = ms.ParameterTuple([Parameter(initializer("zeros", p.shape, p.dtype), name="v." + p.name) for p in self.parameters])
        self.square = P.Square()
        self.map_ = C.Map()

    def construct(self, gradients):
        gradients = self.flatten_gradients(gradients)
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        return self.map_(F.partial(_adam, self.square, lr), gradients, self.parameters, self.m, self.v)


random = np.random.RandomState(8)
x, y = Tensor(random.randn(8, 6).astype(np.float32)), Tensor(random.randn(8, 2).astype(np.float32))
for make in (
    lambda net: Momentum(net.trainable_params(), 0.05),
    lambda net: Lion(net.trainable_params(), nn.exponential_decay_lr(0.01, 0.9, 10, 1, 1), weight_decay=0.1),
    lambda net: PlainAdam([{"params": [p for p in net.trainable_params() if "bias" not in p.name], "weight_decay": 0.05},
                           {"params": [p for p in net.trainable_params() if "bias" in p.name], "weight_decay": 0.0}], 0.01, 0.1),
):
    net = begin(nn.SequentialCell([nn.Dense(6, 5, activation="relu"), nn.Dense(5, 2)]), 6)
    optimizer = make(net)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.set_train()
    train(lambda: step(x, y), net)
    finish(optimizer)
