"""LeNet-5 on 28x28, batch 64, Momentum."""
import mindspore as ms
import numpy as np
from mindspore import nn

from programs.common import training


def step():
    """Return a training step."""
    net = nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(256, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
    )
    x = ms.Tensor(np.random.rand(64, 1, 28, 28).astype(np.float32))
    y = ms.Tensor(np.random.randint(0, 10, 64).astype(np.int32))
    return training(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), x, y)
