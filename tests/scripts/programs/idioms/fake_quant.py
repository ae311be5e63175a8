"""Quantization while training by hand: fake quantized weights and activations with a straight-through gradient, observers in Parameters, folded norms."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class Rounded(nn.Cell):
    """Rounds; the gradient goes straight through."""

    def construct(self, x):
        return ops.round(x)

    def bprop(self, x, out, dout):
        return (dout,)


class FakeQuant(nn.Cell):
    def __init__(self, bits=8, channels=None, ema=0.9):
        super().__init__()
        shape = (1,) if channels is None else (channels,)
        self.low = Parameter(Tensor(np.zeros(shape), ms.float32), name="low", requires_grad=False)
        self.high = Parameter(Tensor(np.ones(shape), ms.float32), name="high", requires_grad=False)
        self.levels, self.ema, self.channels = 2 ** bits - 1, ema, channels
        self.rounded = Rounded()

    def construct(self, x):
        if self.training:
            flat = x.reshape((1 if self.channels is None else self.channels, -1))
            low, high = ops.minimum(flat.min(axis=1), 0.0), ops.maximum(flat.max(axis=1), 0.0)
            ops.assign(self.low, self.low * self.ema + ops.stop_gradient(low) * (1 - self.ema))
            ops.assign(self.high, self.high * self.ema + ops.stop_gradient(high) * (1 - self.ema))
        shape = (-1,) + (1,) * (x.ndim - 1) if self.channels is not None else (1,) * x.ndim
        low, high = self.low.reshape(shape), self.high.reshape(shape)
        scale = (high - low) / self.levels
        clipped = ops.clip_by_value(x, low, high)
        return self.rounded((clipped - low) / scale) * scale + low


class QuantConv(nn.Cell):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, pad_mode="same", has_bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.weight_quant, self.out_quant = FakeQuant(4, cout), FakeQuant(6)
        self.conv2d = ops.Conv2D(cout, 3, pad_mode="same")

    def construct(self, x):
        factor = (self.bn.gamma / ops.sqrt(self.bn.moving_variance + 1e-5)).reshape(-1, 1, 1, 1)
        weight = self.weight_quant(self.conv.weight * factor)
        return self.out_quant(ops.relu(self.conv2d(x, weight)))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell([QuantConv(1, 3), nn.MaxPool2d(2, 2), QuantConv(3, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        self.head = nn.Dense(4, 3)

    def construct(self, x):
        return self.head(self.layers(x))


random = np.random.RandomState(1)
x, y = Tensor(random.randn(5, 1, 8, 8), ms.float32), Tensor(random.randint(0, 3, 5), ms.int32)
net = begin(Net(), 1)
for cell in net.cells_and_names():
    if isinstance(cell[1], FakeQuant):
        cell[1].low.set_data(ops.zeros_like(cell[1].low) - 1)
        cell[1].high.set_data(ops.ones_like(cell[1].high))
optimizer = nn.Momentum(net.trainable_params(), nn.cosine_decay_lr(0.001, 0.05, 12, 4, 3), 0.9)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")), optimizer)
step.set_train()
train(lambda: step(x, y), net)
net.set_train(False)
report(net(x))
