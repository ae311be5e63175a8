"""LeNet-5: 6,400 images of 1 x 32 x 32 from NumPy arrays, batch 32, Momentum, `Model.train`."""
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from execution import EPOCHS
from mindspore import nn


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


rows = np.random.default_rng(0)
labels = rows.integers(0, 10, 6400).astype(np.int32)
images = (rows.standard_normal((6400, 1, 32, 32)) + labels[:, None, None, None] / 5).astype(np.float32)

ms.set_seed(1)
dataset = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True)
dataset = dataset.map(lambda image: image * np.float32(0.5), "image").batch(32)
net = LeNet()
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
model = ms.Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer, metrics={"accuracy"})
model.train(EPOCHS, dataset, callbacks=[ms.LossMonitor(200)], dataset_sink_mode=False)
print("accuracy", model.eval(dataset, dataset_sink_mode=False)["accuracy"])
