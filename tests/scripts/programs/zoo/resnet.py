"""A small ResNet (1.x zoo spelling): BatchNorm with moving statistics, label smoothing, warm-up, decay groups, Model.eval."""
import sys

import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore import dtype as mstype
from mindspore.dataset import NumpySlicesDataset
from mindspore.nn.loss.loss import _Loss
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.train.callback import LossMonitor
from mindspore.train.model import Model

context.set_context(mode=context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE)


def _conv(in_channel, out_channel, kernel, stride=1):
    return nn.Conv2d(in_channel, out_channel, kernel_size=kernel, stride=stride, padding=0, pad_mode="same")


def _bn(channel, last=False):
    return nn.BatchNorm2d(channel, eps=1e-4, momentum=0.9, gamma_init=0 if last else 1, beta_init=0, moving_mean_init=0, moving_var_init=1)


class ResidualBlock(nn.Cell):
    expansion = 2

    def __init__(self, in_channel, out_channel, stride=1):
        super(ResidualBlock, self).__init__()
        channel = out_channel // self.expansion
        self.conv1, self.bn1 = _conv(in_channel, channel, 1), _bn(channel)
        self.conv2, self.bn2 = _conv(channel, channel, 3, stride), _bn(channel)
        self.conv3, self.bn3 = _conv(channel, out_channel, 1), _bn(out_channel, last=False)
        self.relu = nn.ReLU()
        self.down_sample = stride != 1 or in_channel != out_channel
        self.down_sample_layer = None
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell([_conv(in_channel, out_channel, 1, stride), _bn(out_channel)])
        self.add = P.TensorAdd()

    def construct(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.down_sample:
            identity = self.down_sample_layer(identity)
        out = self.add(out, identity)
        return self.relu(out)


class ResNet(nn.Cell):
    def __init__(self, block, layer_nums, channels, num_classes):
        super(ResNet, self).__init__()
        self.conv1, self.bn1, self.relu = _conv(3, channels[0], 3), _bn(channels[0]), P.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        layers = []
        for index, number in enumerate(layer_nums):
            stride = 1 if index == 0 else 2
            stage = [block(channels[index], channels[index + 1], stride)]
            stage += [block(channels[index + 1], channels[index + 1]) for _ in range(1, number)]
            layers.append(nn.SequentialCell(stage))
        self.layers = nn.CellList(layers)
        self.mean = P.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(p=0.0)
        self.end_point = nn.Dense(channels[-1], num_classes, has_bias=True, bias_init=0)

    def construct(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for layer in self.layers:
            x = layer(x)
        out = self.mean(x, (2, 3))
        out = self.flatten(out)
        return self.end_point(self.dropout(out))


class CrossEntropySmooth(_Loss):
    def __init__(self, sparse=True, reduction="mean", smooth_factor=0.0, num_classes=10):
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


def get_lr(lr_init, lr_max, warmup, total):
    steps = np.arange(total)
    rising = lr_init + (lr_max - lr_init) / warmup * steps
    falling = lr_max * (1 - (steps - warmup) / (total - warmup)) ** 2
    return np.where(steps < warmup, rising, falling).astype(np.float32)


rng = np.random.RandomState(5)
net = ResNet(ResidualBlock, [1, 2], [8, 8, 16], 5)
for _, cell in net.cells_and_names():
    if isinstance(cell, nn.Conv2d):
        fan = np.prod(cell.weight.shape[1:])
        cell.weight.set_data(Tensor(rng.normal(0, np.sqrt(2 / fan), cell.weight.shape), cell.weight.dtype))
    elif isinstance(cell, nn.Dense):
        cell.weight.set_data(Tensor(rng.normal(0, 0.1, cell.weight.shape).astype(np.float32)))
decayed = [p for p in net.trainable_params() if "beta" not in p.name and "gamma" not in p.name and "bias" not in p.name]
others = [p for p in net.trainable_params() if all(p is not d for d in decayed)]
group_params = [{"params": decayed, "weight_decay": 1e-3}, {"params": others}, {"order_params": net.trainable_params()}]
opt = nn.Momentum(group_params, Tensor(get_lr(0.01, 0.05, 4, 12)), momentum=0.9)
print(len(decayed), len(others), [p.name for p in opt.parameters][:4], int(sum(np.prod(p.shape) for p in net.get_parameters())))
centres = rng.normal(0, 1, (5, 3, 16, 16))
labels = rng.randint(0, 5, 96).astype(np.int32)
images = (centres[labels] + rng.normal(0, 0.5, (96, 3, 16, 16))).astype(np.float32)
dataset = NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(16, drop_remainder=True)
loss = CrossEntropySmooth(smooth_factor=0.1, num_classes=5)
model = Model(net, loss_fn=loss, optimizer=opt, metrics={"top_1_accuracy", "loss"}, amp_level="O0")
model.train(2, dataset, callbacks=[LossMonitor(3)], dataset_sink_mode=False)
result = model.eval(dataset, dataset_sink_mode=False)
print({key: round(float(value), 4) for key, value in sorted(result.items())})
print(np.round(net.bn1.moving_mean.asnumpy()[:4], 4).tolist(), np.round(net.bn1.moving_variance.asnumpy()[:4], 4).tolist())
print(int(opt.global_step.asnumpy()[0]), len(opt.parameters))
