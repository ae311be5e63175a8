"""CapsNet with routing by a Python loop and ops.einsum-like products, margin + reconstruction loss, amp O2 with DynamicLossScale manual (amp.DynamicLossScaler), Adam with amsgrad, LR by PolynomialDecay + WarmUp."""
import numpy as np
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, Parameter, amp
from mindspore.common.initializer import initializer, Normal
from measured import MODE, begin, train

ms.set_context(mode=MODE)


def squash(x, axis=-1):
    norm = ops.norm(x, dim=axis, keepdim=True)
    return norm ** 2 / (1 + norm ** 2) * x / (norm + 1e-8)


class PrimaryCaps(nn.Cell):
    def __init__(self, channels, capsules, size):
        super().__init__()
        self.size = size
        self.convs = nn.CellList([nn.Conv2d(channels, capsules, 3, 2, pad_mode="valid", has_bias=True) for _ in range(size)])

    def construct(self, x):
        u = [conv(x).view(x.shape[0], -1, 1) for conv in self.convs]
        return squash(ops.cat(u, axis=-1))


class DigitCaps(nn.Cell):
    def __init__(self, routes, capsules, size_in, size_out, iterations=3):
        super().__init__()
        self.W = Parameter(initializer(Normal(0.1), (1, routes, capsules, size_out, size_in), ms.float32), name="W")
        self.iterations, self.routes, self.capsules = iterations, routes, capsules

    def construct(self, x):
        batch = x.shape[0]
        x = ops.stack([x] * self.capsules, axis=2).expand_dims(4)
        u_hat = ops.matmul(self.W, x)
        b = ops.zeros((1, self.routes, self.capsules, 1), ms.float32)
        v = None
        for i in range(self.iterations):
            c = ops.softmax(b, axis=2)
            c = ops.cat([c] * batch, axis=0).unsqueeze(4)
            s = (c * u_hat).sum(axis=1, keepdims=True)
            v = squash(s, axis=-2)
            if i < self.iterations - 1:
                a = ops.matmul(u_hat.swapaxes(3, 4), ops.cat([v] * self.routes, axis=1))
                b = b + a.squeeze(4).mean(axis=0, keep_dims=True)
        return v.squeeze(1)


class CapsNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5, pad_mode="valid", has_bias=True)
        self.primary = PrimaryCaps(8, 4, 4)
        self.digits = DigitCaps(4 * 3 * 3, 5, 4, 6)
        self.decoder = nn.SequentialCell(nn.Dense(6 * 5, 32), nn.ReLU(), nn.Dense(32, 144), nn.Sigmoid())

    def construct(self, data):
        output = self.digits(self.primary(ops.relu(self.conv(data))))
        classes = ops.softmax(ops.sqrt((output ** 2).sum(2)), axis=1)
        index = classes.max(axis=1, return_indices=True)[1].squeeze(1)
        masked = ops.one_hot(index, 5, Tensor(1.0), Tensor(0.0))
        reconstructed = self.decoder((output * masked[:, :, None, None]).view(data.shape[0], -1)).view(-1, 1, 12, 12)
        return output, reconstructed


class Loss(nn.Cell):
    def construct(self, output, reconstructed, data, target):
        batch = output.shape[0]
        v_c = ops.sqrt((output ** 2).sum(axis=2, keepdims=True))
        left = ops.relu(0.9 - v_c).view(batch, -1)
        right = ops.relu(v_c - 0.1).view(batch, -1)
        margin = (target * left + 0.5 * (1.0 - target) * right).sum(axis=1).mean()
        return margin + ops.mse_loss(reconstructed.view(batch, -1), data.view(batch, -1)) * 0.0005


net, loss_fn = begin(CapsNet(), scale=0.7), Loss()
schedule = nn.PolynomialDecayLR(0.01, 1e-4, 20, 0.5)
warm = nn.WarmUpLR(0.01, 2)


class Schedule(nn.learning_rate_schedule.LearningRateSchedule):
    def construct(self, global_step):
        return ops.select(global_step < 2, warm(global_step), schedule(global_step))


optimizer = nn.Adam(net.trainable_params(), learning_rate=Schedule(), use_amsgrad=True, beta2=0.99, weight_decay=1e-3)
scaler = amp.DynamicLossScaler(1024, 2, 2)


def forward(data, target):
    output, reconstructed = net(data)
    loss = loss_fn(output, reconstructed, data, target)
    return scaler.scale(loss), loss


grad_fn = ops.value_and_grad(forward, None, net.trainable_params(), has_aux=True)


@ms.jit
def graph_step(data, target):
    return eager_step(data, target)


def eager_step(data, target):
    (_, loss), grads = grad_fn(data, target)
    grads = scaler.unscale(grads)
    finite = amp.all_finite(grads)
    if finite:
        optimizer(grads)
    scaler.adjust(finite)
    return loss


step = graph_step if MODE == ms.GRAPH_MODE else eager_step
rng = np.random.RandomState(7)
data, target = Tensor(rng.rand(4, 1, 12, 12).astype(np.float32)), Tensor(np.eye(5, dtype=np.float32)[rng.randint(0, 5, 4)])
train(lambda: step(data, target), net)
print(scaler.scale_value.asnumpy())
