# LeNet with its default initial weights and dropout before the last layer, from a seed alone.
from mindspore import nn
from seeded import batches, images, start, train


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", weight_init="normal")
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init="xavier_uniform")
        self.fc2 = nn.Dense(120, 84, weight_init="truncatedNormal")
        self.fc3 = nn.Dense(84, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(p=0.3)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.dropout(self.relu(self.fc2(x))))


start(1)
net = LeNet()
train(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Momentum(net.trainable_params(), 0.01, 0.9),
      batches((1, 32, 32), 10, images))
