"""ResNet-50 (He et al., 2015) on 224x224, Momentum."""
import mindspore as ms
import numpy as np
from mindspore import nn

from programs.common import inference, training


class Bottleneck(nn.Cell):
    """1x1, 3x3 and 1x1 convolutions and a way around them."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * 4
        self.conv1 = nn.Conv2d(inputs, width, 1, pad_mode="valid")
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, pad_mode="valid")
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride, pad_mode="valid"), nn.BatchNorm2d(outputs))

    def construct(self, x):
        """Return the block's result."""
        around = x if self.down is None else self.down(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + around)


class ResNet50(nn.Cell):
    """Four stages of 3, 4, 6 and 3 blocks."""

    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        blocks, inputs = [], 64
        for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if stage and not index else 1))
                inputs = width * 4
        self.blocks = nn.SequentialCell(blocks)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(2048, classes)

    def construct(self, x):
        """Return class scores."""
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(self.flatten(self.mean(self.blocks(x))))


def of(net, infers, size=224, batch=8):
    """Return a training step or a forward pass of a net."""
    x = ms.Tensor(np.random.rand(batch, 3, size, size).astype(np.float32))
    y = ms.Tensor(np.random.randint(0, 1000, batch).astype(np.int32))
    return inference(net, x) if infers else training(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), x, y)


def step(size=224, batch=8, is_recomputed=False):
    """Return a training step; the blocks are recomputed if `is_recomputed`."""
    net = ResNet50()
    for block in net.blocks if is_recomputed else []:
        block.recompute()
    return of(net, False, size, batch)


def infer(size=224, batch=8):
    """Return a forward pass."""
    return of(ResNet50(), True, size, batch)
