"""EfficientNet blocks: squeeze and excitation, swish, depthwise 5x5; RMSProp and an exponential moving average of the weights."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor

from measured import MODE, begin, train

ms.set_context(mode=MODE)


class Swish(nn.Cell):
    def __init__(self):
        super().__init__()
        self.sigmoid = nn.Sigmoid()

    def construct(self, x):
        return x * self.sigmoid(x)


class SqueezeExcite(nn.Cell):
    def __init__(self, in_channels, reduced):
        super().__init__()
        self.reduce = nn.Conv2d(in_channels, reduced, 1, has_bias=True, pad_mode="pad")
        self.expand = nn.Conv2d(reduced, in_channels, 1, has_bias=True, pad_mode="pad")
        self.act = Swish()

    def construct(self, x):
        s = ops.adaptive_avg_pool2d(x, 1)
        s = self.expand(self.act(self.reduce(s)))
        return ops.sigmoid(s) * x


class MBConv(nn.Cell):
    def __init__(self, inp, out, kernel, stride, expand):
        super().__init__()
        mid = inp * expand
        self.shortcut = stride == 1 and inp == out
        self.body = nn.SequentialCell(
            nn.Conv2d(inp, mid, 1, weight_init="normal"), nn.BatchNorm2d(mid, eps=1e-3, momentum=0.99), Swish(),
            nn.Conv2d(mid, mid, kernel, stride, "pad", kernel // 2, group=mid), nn.BatchNorm2d(mid, eps=1e-3), Swish(),
            SqueezeExcite(mid, max(1, inp // 4)), nn.Conv2d(mid, out, 1), nn.BatchNorm2d(out),
        )

    def construct(self, x):
        y = self.body(x)
        if self.shortcut:
            y = y + x
        return y


class EfficientNet(nn.Cell):
    def __init__(self, num_classes=7):
        super().__init__()
        self.stem = nn.SequentialCell([nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.SiLU()])
        rows = [(1, 8, 1, 3, 1), (4, 12, 2, 3, 2), (4, 16, 2, 5, 2)]
        blocks, inp = [], 8
        for expand, out, repeats, kernel, stride in rows:
            for index in range(repeats):
                blocks.append(MBConv(inp, out, kernel, stride if index == 0 else 1, expand))
                inp = out
        self.blocks = nn.CellList(blocks)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Dense(inp, num_classes)

    def construct(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.fc(self.pool(x).view(x.shape[0], -1))


class EMA(nn.Cell):
    def __init__(self, weights, decay):
        super().__init__()
        self.weights = ParameterTuple(weights)
        self.shadow = self.weights.clone(prefix="ema", init="same")
        self.decay = decay
        self.updates = Parameter(Tensor(0, ms.float32), name="ema_updates", requires_grad=False)
        self.hyper_map = ops.HyperMap()

    def ema_update(self, shadow, weight):
        return ops.assign(shadow, shadow * self.decay + weight * (1 - self.decay))

    def construct(self):
        self.updates += 1
        return self.hyper_map(self.ema_update, self.shadow, self.weights)


random = np.random.RandomState(8)
images, labels = Tensor(random.rand(3, 3, 32, 32), ms.float32), Tensor([1, 5, 0], ms.int32)
net = begin(EfficientNet(), 4)
ema = EMA(net.trainable_params(), 0.9)
optimizer = nn.RMSProp(net.trainable_params(), learning_rate=0.003, decay=0.9, momentum=0.9, epsilon=1e-8)


def forward(x, y):
    return ops.cross_entropy(net(x), y)


grad_fn = ops.value_and_grad(forward, None, optimizer.parameters)
net.set_train()


def train_step():
    loss, grads = grad_fn(images, labels)
    optimizer(grads)
    ema()
    return loss, ema.updates


train(train_step, net, ema.shadow)
