"""VGG-11 out of a table of layers, batch norm, learning-rate groups with and without weight decay."""
import math

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore.common import initializer as init

from measured import MODE, begin, train

ms.set_context(mode=MODE, device_target="CPU")
cfg = {"11": [8, "M", 16, "M", 24, 24, "M", 32, 32, "M", 32, 32, "M"]}


def _make_layer(base, batch_norm):
    layers = []
    in_channels = 3
    for v in base:
        if v == "M":
            layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
        else:
            weight = init.initializer(init.XavierUniform(), [v, in_channels, 3, 3])
            conv2d = nn.Conv2d(in_channels=in_channels, out_channels=v, kernel_size=3, padding=1, pad_mode="pad", has_bias=False,
                               weight_init=weight)
            layers += [conv2d, nn.BatchNorm2d(v), nn.ReLU()] if batch_norm else [conv2d, nn.ReLU()]
            in_channels = v
    return nn.SequentialCell(layers)


class Vgg(nn.Cell):
    def __init__(self, base, num_classes=10, batch_norm=True):
        super().__init__()
        self.layers = _make_layer(base, batch_norm)
        self.flatten = nn.Flatten()
        self.classifier = nn.SequentialCell([nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, num_classes)])
        self.custom_init_weight()

    def construct(self, x):
        x = self.layers(x)
        x = self.flatten(x)
        return self.classifier(x)

    def custom_init_weight(self):
        for _, cell in self.cells_and_names():
            if isinstance(cell, nn.Conv2d):
                cell.weight.set_data(init.initializer(init.HeNormal(math.sqrt(5), mode="fan_out", nonlinearity="leaky_relu"),
                                                      cell.weight.shape, cell.weight.dtype))
            elif isinstance(cell, nn.Dense):
                cell.weight.set_data(init.initializer(init.Normal(0.01), cell.weight.shape, cell.weight.dtype))
                cell.bias.set_data(init.initializer("zeros", cell.bias.shape, cell.bias.dtype))


def get_param_groups(network):
    decay_params, no_decay_params = [], []
    for x in network.trainable_params():
        parameter_name = x.name
        if parameter_name.endswith((".bias", ".gamma", ".beta")):
            no_decay_params.append(x)
        else:
            decay_params.append(x)
    return [{"params": no_decay_params, "weight_decay": 0.0}, {"params": decay_params}]


random = np.random.RandomState(11)
data = ms.Tensor(random.uniform(-1, 1, (6, 3, 32, 32)), ms.float32)
label = ms.Tensor(random.randint(0, 10, 6), ms.int32)
net = begin(Vgg(cfg["11"]), 5)
opt = nn.Momentum(params=get_param_groups(net), learning_rate=0.01, momentum=0.9, weight_decay=5e-4, loss_scale=4.0)
criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, criterion), opt, sens=4.0)
step.set_train(True)
train(lambda: step(data, label), net)
