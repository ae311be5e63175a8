# tolerance 1e-4: special functions differ in the last bits.
"""Distributions of nn.probability in a loss: a variational autoencoder with Normal and Bernoulli, a mixture's likelihood, a bijector that is trained."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.nn.probability.bijector as msb
import mindspore.nn.probability.distribution as msd
import numpy as np
from mindspore import Parameter, Tensor, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class VAE(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Dense(8, 10), nn.ReLU())
        self.mean, self.log_sd = nn.Dense(10, 2), nn.Dense(10, 2)
        self.decoder = nn.SequentialCell(nn.Dense(2, 10), nn.Tanh(), nn.Dense(10, 8))
        self.posterior = msd.Normal(dtype=ms.float32)
        self.prior = msd.Normal(0.0, 1.0, dtype=ms.float32)

    def construct(self, x, noise):
        h = self.encoder(x)
        mean, sd = self.mean(h), ops.exp(0.5 * self.log_sd(h))
        z = mean + sd * noise
        kl = self.posterior.kl_loss("Normal", Tensor(0.0, ms.float32), Tensor(1.0, ms.float32), mean, sd).sum(-1)
        logits = self.decoder(z)
        like = -ops.binary_cross_entropy_with_logits(logits, x, ops.ones_like(x), ops.ones_like(x), reduction="none").sum(-1)
        entropy = self.posterior.entropy(mean, sd).mean()
        return (kl - like).mean() - 1e-3 * entropy


class Mixture(nn.Cell):
    def __init__(self):
        super().__init__()
        self.means = Parameter(Tensor([-1.0, 0.5, 2.0], ms.float32), name="means")
        self.scales = Parameter(Tensor([0.1, -0.2, 0.3], ms.float32), name="scales")
        self.mix = Parameter(Tensor([0.0, 0.2, -0.1], ms.float32), name="mix")
        self.normal, self.laplace = msd.Normal(dtype=ms.float32), msd.Cauchy(dtype=ms.float32)
        self.warp = msb.Softplus(sharpness=2.0)

    def construct(self, x):
        x = x.expand_dims(1)
        sd = self.warp.forward(self.scales)
        log_mix = ops.log_softmax(self.mix, -1)
        first = ops.logsumexp(self.normal.log_prob(x, self.means, sd) + log_mix, 1)
        second = ops.logsumexp(self.laplace.log_prob(x, self.means, sd) + log_mix, 1)
        return -(first + 0.1 * second).mean() - 0.01 * self.warp.forward_log_jacobian(self.scales).sum()


random = np.random.RandomState(14)
x = Tensor((random.rand(6, 8) > 0.5).astype(np.float32))
noise = Tensor(random.randn(6, 2), ms.float32)
net = begin(VAE(), 3)
step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.01))
train(lambda: step(x, noise), net)

mixture = Mixture()
points = Tensor(np.concatenate([random.randn(10) - 1, random.randn(10) * 0.3 + 2]), ms.float32)
step2 = nn.TrainOneStepCell(mixture, nn.SGD(mixture.trainable_params(), 0.1, 0.5))
train(lambda: step2(points), mixture)
normal = msd.Normal(Tensor([0.0, 1.0], ms.float32), Tensor([1.0, 2.0], ms.float32), dtype=ms.float32)
report(normal.cdf(Tensor([0.5, 0.5], ms.float32)), normal.mean(), normal.sd(), normal.var(), normal.mode(), normal.survival_function(Tensor([0.1, 3.0], ms.float32)))
report(msd.Exponential(Tensor([0.5, 2.0], ms.float32), dtype=ms.float32).log_prob(Tensor([1.0, 0.2], ms.float32)),
       msd.Geometric([0.3], dtype=ms.float32).prob(Tensor([2.0], ms.float32)),
       msd.Gamma([2.0], [1.5], dtype=ms.float32).log_prob(Tensor([1.0], ms.float32)),
       msd.Beta([2.0], [3.0], dtype=ms.float32).entropy(),
       msd.Poisson([2.0], dtype=ms.float32).prob(Tensor([1.0], ms.float32)),
       msd.Uniform(0.0, 2.0, dtype=ms.float32).kl_loss("Uniform", Tensor(-1.0, ms.float32), Tensor(3.0, ms.float32)),
       msd.Categorical([0.2, 0.3, 0.5], dtype=ms.float32).entropy(),
       msd.Logistic(0.0, 1.0, dtype=ms.float32).cdf(Tensor([0.3], ms.float32)),
       msd.Gumbel(0.0, 1.0, dtype=ms.float32).log_prob(Tensor([0.3], ms.float32)))
