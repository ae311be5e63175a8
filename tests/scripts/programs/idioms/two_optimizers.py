# tolerance 3e-5: the critic's loss is a difference of means, and a penalty on a second derivative ten times as strong.
"""Two optimizers in one program: WGAN with weight clipping and a penalty on the gradient, n critic steps to one of the generator (2.x)."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor

from measured import MODE, begin, train

ms.set_context(mode=MODE)
random = np.random.RandomState(14)
real = [Tensor(random.normal(2, 0.5, (8, 2)).astype(np.float32)) for _ in range(2)]
noise = Tensor(random.randn(8, 3).astype(np.float32))
mix = Tensor(random.rand(8, 1).astype(np.float32))


def mlp(size, out):
    return nn.SequentialCell(nn.Dense(size, 12), nn.LeakyReLU(0.2), nn.Dense(12, out))


generator, critic = begin(mlp(3, 2), 1, 0.7), begin(mlp(2, 1), 2, 0.7)
generator.update_parameters_name("g_"), critic.update_parameters_name("d_")
g_opt = nn.RMSProp(generator.trainable_params(), 0.01, epsilon=1e-8)
d_opt = nn.Adam(critic.trainable_params(), 0.01, beta1=0.5, beta2=0.9, eps=1e-5)
slope = ops.grad(critic)


def critic_loss(x, z):
    fake = ops.stop_gradient(generator(z))
    between = mix * x + (1 - mix) * fake
    length = ops.sqrt((slope(between) ** 2).sum(1) + 1e-12)
    return critic(fake).mean() - critic(x).mean() + 10 * ((length - 1) ** 2).mean()


def generator_loss(z):
    return -critic(generator(z)).mean()


grad_d = ms.value_and_grad(critic_loss, None, d_opt.parameters)
grad_g = ms.value_and_grad(generator_loss, None, g_opt.parameters)
weights = ms.ParameterTuple(critic.trainable_params())


def step():
    losses = []
    for batch in real:
        loss, grads = grad_d(batch, noise)
        d_opt(grads)
        losses.append(loss)
    for weight in weights:
        ops.assign(weight, ops.clip_by_value(weight, Tensor(-2.0), Tensor(2.0)))
    loss, grads = grad_g(noise)
    g_opt(grads)
    return losses + [loss]


train(step, generator, critic)
