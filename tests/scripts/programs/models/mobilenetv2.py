"""MobileNetV2: depthwise convolutions, ReLU6, a frozen backbone of which only the head trains, then the whole (2.x functional)."""
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from measured import MODE, begin, train

ms.set_context(mode=MODE, device_target="CPU")


def _make_divisible(v, divisor, min_value=None):
    if min_value is None:
        min_value = divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    return new_v + divisor if new_v < 0.9 * v else new_v


class ConvBNReLU(nn.Cell):
    def __init__(self, in_planes, out_planes, kernel_size=3, stride=1, groups=1):
        super().__init__()
        padding = (kernel_size - 1) // 2
        conv = nn.Conv2d(in_planes, out_planes, kernel_size, stride, pad_mode="pad", padding=padding, group=groups)
        self.features = nn.SequentialCell([conv, nn.BatchNorm2d(out_planes), nn.ReLU6()])

    def construct(self, x):
        return self.features(x)


class InvertedResidual(nn.Cell):
    def __init__(self, inp, oup, stride, expand_ratio):
        super().__init__()
        assert stride in [1, 2]
        hidden_dim = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers = []
        if expand_ratio != 1:
            layers.append(ConvBNReLU(inp, hidden_dim, kernel_size=1))
        layers.extend([
            ConvBNReLU(hidden_dim, hidden_dim, stride=stride, groups=hidden_dim),
            nn.Conv2d(hidden_dim, oup, kernel_size=1, stride=1, has_bias=False),
            nn.BatchNorm2d(oup),
        ])
        self.conv = nn.SequentialCell(layers)

    def construct(self, x):
        identity = x
        x = self.conv(x)
        if self.use_res_connect:
            return ops.add(identity, x)
        return x


class MobileNetV2(nn.Cell):
    def __init__(self, num_classes=10, width_mult=0.25):
        super().__init__()
        input_channel = _make_divisible(32 * width_mult, 4)
        features = [ConvBNReLU(3, input_channel, stride=2)]
        for t, c, n, s in [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2], [6, 64, 2, 1]]:
            output_channel = _make_divisible(c * width_mult, 4)
            for i in range(n):
                features.append(InvertedResidual(input_channel, output_channel, s if i == 0 else 1, expand_ratio=t))
                input_channel = output_channel
        features.append(ConvBNReLU(input_channel, 64, kernel_size=1))
        self.backbone = nn.SequentialCell(features)
        self.head = nn.SequentialCell([nn.Dropout(p=0.0), nn.Dense(64, num_classes)])

    def construct(self, x):
        x = self.backbone(x)
        x = ops.mean(x, (2, 3))
        return self.head(x)


random = np.random.RandomState(2)
images = ms.Tensor(random.standard_normal((4, 3, 32, 32)).astype(np.float32))
labels = ms.Tensor(random.randint(0, 10, 4).astype(np.int32))
net = begin(MobileNetV2(), 2)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)


def forward(x, y):
    logits = net(x)
    return loss_fn(logits, y), logits


def step_of(parameters):
    optimizer = nn.SGD(parameters, learning_rate=0.02, momentum=0.9, weight_decay=4e-5, nesterov=True)
    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    def step():
        (loss, logits), grads = grad_fn(images, labels)
        optimizer(grads)
        return loss, logits.sum()
    return step


for parameter in net.backbone.get_parameters():
    parameter.requires_grad = False
net.set_train()
net.backbone.set_train(False)
train(step_of(net.trainable_params()), net)
for parameter in net.get_parameters():
    parameter.requires_grad = "moving" not in parameter.name
net.set_train(True)
train(step_of(net.trainable_params()), net)
