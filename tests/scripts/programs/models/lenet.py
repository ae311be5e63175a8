"""LeNet-5 on made digits, as the first tutorial of 1.x wrote it: WithLossCell, TrainOneStepCell, Momentum."""
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common.initializer import TruncatedNormal
from mindspore.ops import operations as P

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")


def weight_variable():
    return TruncatedNormal(0.02)


def conv(in_channels, out_channels, kernel_size, stride=1, padding=0):
    weight = weight_variable()
    return nn.Conv2d(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                     weight_init=weight, has_bias=False, pad_mode="valid")


def fc_with_initialize(input_channels, out_channels):
    return nn.Dense(input_channels, out_channels, weight_variable(), weight_variable())


class LeNet5(nn.Cell):
    def __init__(self, num_class=10):
        super(LeNet5, self).__init__()
        self.num_class = num_class
        self.conv1 = conv(1, 6, 5)
        self.conv2 = conv(6, 16, 5)
        self.fc1 = fc_with_initialize(16 * 5 * 5, 120)
        self.fc2 = fc_with_initialize(120, 84)
        self.fc3 = fc_with_initialize(84, self.num_class)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.reshape = P.Reshape()

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.reshape(x, (-1, 16 * 5 * 5))
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


random = np.random.RandomState(0)
images = Tensor(random.uniform(0, 1, (16, 1, 32, 32)).astype(np.float32))
labels = Tensor(random.randint(0, 10, 16).astype(np.int32))
network = begin(LeNet5())
criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9)
train_network = nn.TrainOneStepCell(nn.WithLossCell(network, criterion), optimizer)
train_network.set_train()
train(lambda: train_network(images, labels), network)
