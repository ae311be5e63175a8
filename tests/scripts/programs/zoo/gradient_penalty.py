"""Second-order gradients: a WGAN critic with gradient penalty, Hessians of small functions, custom bprop, hooks on Cells."""
import sys

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Critic(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(4, 12), nn.Tanh(), nn.Dense(12, 12), nn.Sigmoid(), nn.Dense(12, 1))

    def construct(self, x):
        return self.net(x)


class GradientPenalty(nn.Cell):
    def __init__(self, critic):
        super().__init__()
        self.gradient_op = ops.GradOperation()
        self.critic = critic
        self.reduce_sum = ops.ReduceSum()
        self.sqrt = ops.Sqrt()

    def construct(self, interpolates):
        gradients = self.gradient_op(self.critic)(interpolates)
        gradients = ops.reshape(gradients, (gradients.shape[0], -1))
        norm = self.sqrt(self.reduce_sum(gradients * gradients, 1))
        return ((norm - 1.0) ** 2).mean()


class CriticLoss(nn.Cell):
    def __init__(self, critic):
        super().__init__()
        self.critic = critic
        self.penalty = GradientPenalty(critic)

    def construct(self, real, fake, alpha):
        mixed = alpha * real + (1 - alpha) * fake
        return self.critic(fake).mean() - self.critic(real).mean() + 10.0 * self.penalty(mixed)


class StraightThrough(nn.Cell):
    """Rounds forward, passes the gradient through where it is small."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def construct(self, x):
        return ops.round(x)

    def bprop(self, x, out, dout):
        return (ops.select(ops.abs(x) < 1.5, dout, ops.zeros_like(dout)),)


rng = np.random.RandomState(9)
critic = Critic()
for param in critic.trainable_params():
    param.set_data(Tensor(rng.normal(0, 0.5, param.shape), ms.float32))
loss_net = CriticLoss(critic)
print(len(loss_net.trainable_params()), [name for name, _ in loss_net.parameters_and_names()][0])
optimizer = nn.Adam(critic.trainable_params(), 0.02, beta1=0.5, beta2=0.9)
grad_fn = ms.value_and_grad(loss_net, None, optimizer.parameters)
for step in range(6):
    real = Tensor(rng.normal(1, 1, (16, 4)), ms.float32)
    fake = Tensor(rng.normal(-1, 1, (16, 4)), ms.float32)
    loss, grads = grad_fn(real, fake, Tensor(rng.uniform(0, 1, (16, 1)), ms.float32))
    optimizer(grads)
    print("critic", step, "%.4f" % float(loss.asnumpy()), "%.4f" % float(sum(ops.abs(g).sum() for g in grads).asnumpy()))


def cubic(x, y):
    return (x ** 3 * y).sum()


x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
first = ops.grad(cubic, (0, 1))
print([g.asnumpy().tolist() for g in first(x, y)])
second = ops.grad(lambda a, b: ops.grad(cubic, 0)(a, b).sum(), (0, 1))
print([g.asnumpy().tolist() for g in second(x, y)])
third = ops.grad(ops.grad(ops.grad(lambda a: a ** 4)))
print(float(third(Tensor(2.0)).asnumpy()))
hessian = np.stack([ops.grad(lambda a: ops.grad(cubic)(a, y)[index])(x).asnumpy() for index in range(2)])
print(hessian.tolist())

through = StraightThrough()
values = Tensor([-2.0, -0.4, 0.6, 1.7])
print(through(values).asnumpy().tolist(), ops.grad(lambda v: (through(v) * Tensor([1.0, 2.0, 3.0, 4.0])).sum())(values).asnumpy().tolist())

seen = []
dense = nn.Dense(4, 2, weight_init="ones", bias_init="zeros")


def backward_hook(cell, grad_input, grad_output):
    return (grad_input[0] * 2,) if isinstance(grad_input, tuple) else grad_input * 2


forward_handle = dense.register_forward_hook(lambda cell, inputs, output: output + 1)
print(dense(Tensor(np.ones((1, 4)), ms.float32)).asnumpy().tolist())
forward_handle.remove()
print(dense(Tensor(np.ones((1, 4)), ms.float32)).asnumpy().tolist())
handle = dense.register_backward_hook(backward_hook)
print(ops.grad(lambda a: dense(a).sum())(Tensor(np.ones((1, 4)), ms.float32)).asnumpy().tolist())
handle.remove()
print(ops.grad(lambda a: dense(a).sum())(Tensor(np.ones((1, 4)), ms.float32)).asnumpy().tolist())
weights, = ops.value_and_grad(lambda a: (dense(a) ** 2).sum(), None, dense.trainable_params()[:1])(Tensor([[1.0, 2.0, 3.0, 4.0]]))[1]
print(weights.asnumpy().tolist())
(value, extra), grad = ops.value_and_grad(lambda a: ((a ** 2).sum(), a + 1), 0, has_aux=True)(Tensor([1.0, -2.0]))
print(float(value.asnumpy()), extra.asnumpy().tolist(), grad.asnumpy().tolist())
print(ops.get_grad(ops.grad(cubic, (0, 1), return_ids=True)(x, y), 1).asnumpy().tolist())
