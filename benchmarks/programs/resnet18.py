"""ResNet-18 (He et al., 2015) on 64x64, batch 16, Momentum."""
import mindspore as ms
import numpy as np
from mindspore import nn

from programs.common import inference, training


class Block(nn.Cell):
    """Two 3x3 convolutions and a way around them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride, pad_mode="valid"), nn.BatchNorm2d(outputs))

    def construct(self, x):
        """Return the block's result."""
        around = x if self.down is None else self.down(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + around)


class ResNet18(nn.Cell):
    """Four stages of two blocks."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        blocks, inputs = [], 64
        for stage, outputs in enumerate((64, 128, 256, 512)):
            blocks += [Block(inputs, outputs, 2 if stage else 1), Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.SequentialCell(blocks)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(512, classes)

    def construct(self, x):
        """Return class scores."""
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(self.flatten(self.mean(self.blocks(x))))


def step(size=64, batch=16):
    """Return a training step."""
    net = ResNet18()
    x = ms.Tensor(np.random.rand(batch, 3, size, size).astype(np.float32))
    y = ms.Tensor(np.random.randint(0, 10, batch).astype(np.int32))
    return training(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), x, y)


def infer(size=64, batch=16):
    """Return a forward pass."""
    return inference(ResNet18(), ms.Tensor(np.random.rand(batch, 3, size, size).astype(np.float32)))
