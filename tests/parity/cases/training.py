"""Whole training steps from given weights on given data: losses and what becomes of the Parameters."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case


def fill_weights(net) -> None:
    """Weights from NumPy, by the order of the Parameters."""
    rng = np.random.RandomState(5)
    for parameter in net.get_parameters():
        if parameter.requires_grad and parameter.ndim > 1:
            parameter.set_data(ms.Tensor((rng.randn(*parameter.shape) / np.sqrt(np.prod(parameter.shape[1:]))).astype(np.float32)))


def lenet():
    net = nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(
            6, 16, 5, pad_mode="valid",
        ), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(256, 32, bias_init="zeros"), nn.ReLU(), nn.Dense(32, 10, bias_init="zeros"),
    )
    return net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), (8, 1, 28, 28)


class Block(nn.Cell):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.down = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + self.down(x))


class Residual(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.SequentialCell([Block(3, 8, 2), Block(8, 16, 2)])
        self.fc = nn.Dense(16, 10, bias_init="zeros")
        self.mean = ops.ReduceMean()

    def construct(self, x):
        return self.fc(self.mean(self.blocks(x), (2, 3)))


class Attention(nn.Cell):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.qkv, self.out = nn.Dense(width, 3 * width, bias_init="zeros"), nn.Dense(width, width, bias_init="zeros")
        self.mask = ms.Tensor(np.triu(np.full((length, length), -1e4, np.float32), 1))
        self.softmax, self.norm = nn.Softmax(), nn.LayerNorm((width,))

    def construct(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).reshape(batch, length, 3 * self.heads, self.each).transpose(0, 2, 1, 3)
        q, k, v = ops.Split(1, 3)(parts)
        scores = ops.BatchMatMul(transpose_b=True)(q, k) / self.each**0.5 + self.mask
        return x + self.out(ops.BatchMatMul()(self.softmax(scores), v).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Words(nn.Cell):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(20, 16)
        self.layers = nn.SequentialCell([Attention(16, 2, 6), nn.Dense(16, 16, bias_init="zeros"), nn.GELU(), Attention(16, 2, 6)])
        self.head = nn.Dense(16, 10, has_bias=False)

    def construct(self, ids):
        return self.head(self.layers(self.token(ids))).mean(1)


NETS = {
    "lenet_momentum": (lenet, lambda p: nn.Momentum(p, 0.05, 0.9)),
    "lenet_adam": (lenet, lambda p: nn.Adam(p, 0.01)),
    "residual_momentum": (
        lambda: (Residual(), nn.CrossEntropyLoss(), (8, 3, 16, 16)), lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=1e-3),
    ),
    "words_adamw": (lambda: (Words(), nn.CrossEntropyLoss(), None), lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1)),
}


@case(over=NETS, rtol=2e-3, atol=2e-4, graph=True)
def steps(made):
    make, optimizer = made
    net, loss, shape = make()
    fill_weights(net)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer(net.trainable_params()))
    cell.set_train()
    rng = np.random.RandomState(9)
    losses = []
    for _ in range(4):
        x = rng.randn(*shape).astype(np.float32) if shape else rng.randint(0, 20, (8, 6)).astype(np.int32)
        losses.append(float(cell(ms.Tensor(x), ms.Tensor(rng.randint(0, 10, 8).astype(np.int32))).asnumpy()))
    lengths = [[p.name, float(np.abs(p.asnumpy()).sum())] for p in net.get_parameters()]
    return {
        "losses": np.array(losses, np.float32), "names": [n for n, _ in lengths], "lengths": np.array([v for _, v in lengths], np.float32),
    }
