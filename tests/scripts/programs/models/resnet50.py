# tolerance 1e-4: fifty-three batch norms amplify the last bits; weights times 1 + 1e-7 move the third loss by as much.
"""ResNet-50 with an eighth of the width: bottlenecks, label smoothing by one-hot, cosine rates, weights by cells_and_names (1.x)."""
import math

import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common import dtype as mstype
from mindspore.nn.loss.loss import LossBase
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU", save_graphs=False)


def _conv3x3(in_channel, out_channel, stride=1):
    return nn.Conv2d(in_channel, out_channel, kernel_size=3, stride=stride, padding=0, pad_mode="same")


def _conv1x1(in_channel, out_channel, stride=1):
    return nn.Conv2d(in_channel, out_channel, kernel_size=1, stride=stride, padding=0, pad_mode="same")


def _bn(channel):
    return nn.BatchNorm2d(channel, eps=1e-4, momentum=0.9, gamma_init=1, beta_init=0, moving_mean_init=0, moving_var_init=1)


class ResidualBlock(nn.Cell):
    expansion = 4

    def __init__(self, in_channel, out_channel, stride=1):
        super(ResidualBlock, self).__init__()
        channel = out_channel // self.expansion
        self.conv1 = _conv1x1(in_channel, channel)
        self.bn1 = _bn(channel)
        self.conv2 = _conv3x3(channel, channel, stride=stride)
        self.bn2 = _bn(channel)
        self.conv3 = _conv1x1(channel, out_channel)
        self.bn3 = _bn(out_channel)
        self.relu = nn.ReLU()
        self.down_sample = stride != 1 or in_channel != out_channel
        self.down_sample_layer = None
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell([_conv1x1(in_channel, out_channel, stride), _bn(out_channel)])
        self.add = P.Add()

    def construct(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.down_sample:
            identity = self.down_sample_layer(identity)
        return self.relu(self.add(out, identity))


class ResNet(nn.Cell):
    def __init__(self, block, layer_nums, in_channels, out_channels, strides, num_classes):
        super(ResNet, self).__init__()
        if not len(layer_nums) == len(in_channels) == len(out_channels) == 4:
            raise ValueError("the length of layer_nums, in_channels, out_channels must be 4")
        self.conv1 = nn.Conv2d(3, in_channels[0], 7, stride=2, pad_mode="same")
        self.bn1 = _bn(in_channels[0])
        self.relu = P.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.layer1 = self._make_layer(block, layer_nums[0], in_channels[0], out_channels[0], strides[0])
        self.layer2 = self._make_layer(block, layer_nums[1], in_channels[1], out_channels[1], strides[1])
        self.layer3 = self._make_layer(block, layer_nums[2], in_channels[2], out_channels[2], strides[2])
        self.layer4 = self._make_layer(block, layer_nums[3], in_channels[3], out_channels[3], strides[3])
        self.mean = P.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(out_channels[3], num_classes, has_bias=True)

    def _make_layer(self, block, layer_num, in_channel, out_channel, stride):
        layers = [block(in_channel, out_channel, stride=stride)]
        for _ in range(1, layer_num):
            layers.append(block(out_channel, out_channel, stride=1))
        return nn.SequentialCell(layers)

    def construct(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        out = self.mean(x, (2, 3))
        return self.end_point(self.flatten(out))


class CrossEntropySmooth(LossBase):
    def __init__(self, sparse=True, reduction="mean", smooth_factor=0.1, num_classes=10):
        super(CrossEntropySmooth, self).__init__()
        self.onehot = P.OneHot()
        self.sparse = sparse
        self.on_value = Tensor(1.0 - smooth_factor, mstype.float32)
        self.off_value = Tensor(1.0 * smooth_factor / (num_classes - 1), mstype.float32)
        self.ce = nn.SoftmaxCrossEntropyWithLogits(reduction=reduction)

    def construct(self, logit, label):
        if self.sparse:
            label = self.onehot(label, F.shape(logit)[1], self.on_value, self.off_value)
        return self.ce(logit, label)


random = np.random.RandomState(50)
x, y = Tensor(random.randn(8, 3, 64, 64), mstype.float32), Tensor(random.randint(0, 10, (8,)), mstype.int32)
net = begin(ResNet(ResidualBlock, [3, 4, 6, 3], [8, 32, 64, 128], [32, 64, 128, 256], [1, 2, 2, 2], 10), 50, 0.7)
for name, cell in net.cells_and_names():
    if isinstance(cell, ResidualBlock):
        cell.bn3.gamma.set_data(cell.bn3.gamma * 0.1)
lr = [0.5 * 0.001 * (1 + math.cos(math.pi * step / 30)) for step in range(30)]
decayed = [p for p in net.trainable_params() if "beta" not in p.name and "gamma" not in p.name and "bias" not in p.name]
others = [p for p in net.trainable_params() if "beta" in p.name or "gamma" in p.name or "bias" in p.name]
groups = [{"params": decayed, "weight_decay": 1e-4}, {"params": others}, {"order_params": net.trainable_params()}]
opt = nn.Momentum(groups, Tensor(np.array(lr, np.float32)), 0.9)
step = nn.TrainOneStepCell(nn.WithLossCell(net, CrossEntropySmooth()), opt)
step.set_train()
train(lambda: step(x, y), net)
