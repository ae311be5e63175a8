"""Volumes and odd convolutions: 3-d U-Net with transposed convolutions, deformable offsets, depthwise and dilated ones, pixel shuffle, unfold and fold."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, ops

from measured import MODE, begin, train

ms.set_context(mode=MODE)


class UNet3d(nn.Cell):
    def __init__(self):
        super().__init__()
        self.down = nn.SequentialCell(nn.Conv3d(1, 3, 3, pad_mode="same", has_bias=True), nn.BatchNorm3d(3), nn.LeakyReLU(0.1))
        self.pool = nn.MaxPool3d(2, 2)
        self.middle = nn.SequentialCell(nn.Conv3d(3, 6, (1, 3, 3), pad_mode="pad", padding=(0, 0, 1, 1, 1, 1)), nn.ReLU())
        self.up = nn.Conv3dTranspose(6, 3, 2, stride=2, pad_mode="valid", has_bias=True)
        self.out = nn.Conv3d(6, 2, 1, pad_mode="valid")

    def construct(self, x):
        skip = self.down(x)
        h = self.up(self.middle(self.pool(skip)))
        return self.out(ops.cat((h, skip), 1))


class Odd(nn.Cell):
    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d(4, 4, 3, pad_mode="pad", padding=2, dilation=2, group=4)
        self.point = nn.Conv2d(4, 8, 1, has_bias=True)
        self.shuffle = nn.PixelShuffle(2)
        self.offset = nn.Conv2d(2, 18, 3, pad_mode="pad", padding=1)
        self.mask = nn.Conv2d(2, 9, 3, pad_mode="pad", padding=1, has_bias=True)
        self.weight = ms.Parameter(Tensor(np.zeros((3, 2, 3, 3)), ms.float32), name="weight")
        self.deconv = nn.Conv2dTranspose(3, 2, 4, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.norm = nn.GroupNorm(1, 2)

    def construct(self, x):
        h = self.shuffle(self.point(ops.hardswish(self.depthwise(x))))
        offsets = ops.concat((self.offset(h), ops.sigmoid(self.mask(h))), 1)
        h = ops.deformable_conv2d(h, self.weight, offsets, (3, 3), (1, 1, 1, 1), (1, 1, 1, 1))
        h = self.norm(self.deconv(ops.gelu(h)))
        patches = ops.unfold(h, 4, stride=4)
        return ops.adaptive_avg_pool2d(h, 2).reshape(x.shape[0], -1) + patches.mean((1, 2)).expand_dims(1)


random = np.random.RandomState(2)
volume, labels = Tensor(random.randn(2, 1, 4, 6, 6), ms.float32), Tensor(random.randint(0, 2, (2, 4, 6, 6)), ms.int32)
net = begin(UNet3d(), 1)


class Loss(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x, y):
        logits = self.net(x).transpose((0, 2, 3, 4, 1)).reshape((-1, 2))
        return ops.cross_entropy(logits, y.reshape(-1), weight=Tensor([1.0, 3.0], ms.float32))


step = nn.TrainOneStepCell(Loss(), nn.Adam(net.trainable_params(), 0.01, eps=1e-4))
step.set_train()
train(lambda: step(volume, labels), net)
odd = begin(Odd(), 3)
x, y = Tensor(random.randn(2, 4, 4, 4), ms.float32), Tensor(random.randn(2, 8), ms.float32)
step2 = nn.TrainOneStepCell(nn.WithLossCell(odd, nn.L1Loss()), nn.SGD(odd.trainable_params(), 0.05, 0.9, dampening=0.1))
step2.set_train()
train(lambda: step2(x, y), odd)
