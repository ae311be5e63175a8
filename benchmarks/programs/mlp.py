"""An MLP 784-512-512-10, batch 128, Momentum."""
import mindspore as ms
import numpy as np
from mindspore import nn

from programs.common import training


def step():
    """Return a training step."""
    net = nn.SequentialCell(nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))
    x = ms.Tensor(np.random.rand(128, 784).astype(np.float32))
    y = ms.Tensor(np.random.randint(0, 10, 128).astype(np.int32))
    return training(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), x, y)
