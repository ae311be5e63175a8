# A small ResNet with batch norm and shortcuts, from a seed alone.
from mindspore import nn
from mindspore.common.initializer import HeNormal
from seeded import batches, images, start, train


class Block(nn.Cell):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, weight_init=HeNormal(mode="fan_out", nonlinearity="relu"))
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, weight_init=HeNormal(mode="fan_out", nonlinearity="relu"))
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def construct(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        shortcut = x if self.shortcut is None else self.shortcut(x)
        return self.relu(y + shortcut)


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.head = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.SequentialCell(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(32, 10)

    def construct(self, x):
        return self.dense(self.flatten(self.pool(self.blocks(self.head(x)))))


start(2)
net = ResNet()
train(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.SGD(net.trainable_params(), 0.02),
      batches((3, 16, 16), 10, images))
