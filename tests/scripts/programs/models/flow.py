# tolerance 1e-4: the printed places of points near 0 are differences of larger numbers, and tanh and exp differ in the last bits.
"""RealNVP, a normalizing flow: masked affine couplings, log-determinants, the inverse; the likelihood of two moons (2.x)."""
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class Coupling(nn.Cell):
    def __init__(self, mask, hidden=16):
        super().__init__()
        self.mask = Parameter(Tensor(mask, ms.float32), name="mask", requires_grad=False)
        self.scale_net = nn.SequentialCell(nn.Dense(2, hidden), nn.Tanh(), nn.Dense(hidden, 2), nn.Tanh())
        self.shift_net = nn.SequentialCell(nn.Dense(2, hidden), nn.Tanh(), nn.Dense(hidden, 2))

    def construct(self, x):
        masked = x * self.mask
        s, t = self.scale_net(masked) * (1 - self.mask), self.shift_net(masked) * (1 - self.mask)
        return masked + (1 - self.mask) * (x * ops.exp(s) + t), s.sum(1)

    def inverse(self, y):
        masked = y * self.mask
        s, t = self.scale_net(masked) * (1 - self.mask), self.shift_net(masked) * (1 - self.mask)
        return masked + (1 - self.mask) * (y - t) * ops.exp(-s)


class RealNVP(nn.Cell):
    def __init__(self, layers=4):
        super().__init__()
        self.layers = nn.CellList([Coupling([index % 2, 1 - index % 2]) for index in range(layers)])

    def construct(self, x):
        total = ops.zeros(x.shape[0], ms.float32)
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return x, total

    def sample(self, z):
        for layer in list(self.layers)[::-1]:
            z = layer.inverse(z)
        return z


class Likelihood(nn.Cell):
    def __init__(self, flow):
        super().__init__()
        self.flow = flow

    def construct(self, x):
        z, log_det = self.flow(x)
        log_prior = -0.5 * (z ** 2 + np.log(2 * np.pi)).sum(axis=1)
        return -(log_prior + log_det).mean()


random = np.random.RandomState(261)
angle = random.uniform(0, np.pi, 32)
moons = np.where(np.arange(32)[:, None] % 2, np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1))
data = Tensor(moons + random.normal(0, 0.05, (32, 2)), ms.float32)
flow = begin(RealNVP(), 2, 0.6)
for index, layer in enumerate(flow.layers):
    layer.mask.set_data(Tensor([index % 2, 1 - index % 2], ms.float32))
optimizer = nn.Adam(flow.trainable_params(), 0.005, eps=1e-5)
step = nn.TrainOneStepCell(Likelihood(flow), optimizer)
step.set_train()
train(lambda: step(data), flow)
z, _ = flow(data)
report(ops.abs(flow.sample(z) - data).max() < 1e-4, z[:2])
