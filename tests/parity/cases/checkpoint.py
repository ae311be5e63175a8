"""Checkpoints: every key of the files that training writes, and the very bytes of a file."""
from __future__ import annotations

import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.train import CheckpointConfig, Model, ModelCheckpoint
from parity.case import case
from parity.checkpoint_bytes import without_head


class LeNet5(nn.Cell):
    """As in examples/quickstart."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class Block(nn.Cell):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride=stride), nn.BatchNorm2d(outputs))

    def construct(self, x):
        shortcut = x if self.down is None else self.down(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet18(nn.Cell):
    """ResNet-18 with an eighth of the channels: the same names, a small file."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        widths, layers = [8, 16, 32, 64], []
        for index, width in enumerate(widths):
            before = widths[max(index - 1, 0)]
            layers.append(nn.SequentialCell(Block(before, width, 1 if index == 0 else 2), Block(width, width, 1)))
        self.layers = nn.CellList(layers)
        self.fc = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        for layer in self.layers:
            x = layer(x)
        return self.fc(x.mean((2, 3)))


def adam(net):
    return nn.Adam(net.trainable_params(), learning_rate=0.001)


def momentum(net):
    return nn.Momentum(net.trainable_params(), learning_rate=nn.cosine_decay_lr(0.0, 0.1, 4, 2, 2), momentum=0.9, weight_decay=1e-4)


@case(over={"lenet_adam": (LeNet5, adam), "resnet18_momentum": (ResNet18, momentum)})
def keys(made_of):
    network, optimizer = made_of
    net = network()
    rows = [(np.full((1, 32, 32), index, np.float32), np.int32(index)) for index in range(4)]
    data = ms.dataset.GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(2)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ModelCheckpoint("net", folder, CheckpointConfig(2, 1))
        Model(net, loss, optimizer(net)).train(1, data, callbacks=[checkpoint], dataset_sink_mode=False)
        files = sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))
        loaded = ms.load_checkpoint(os.path.join(folder, files[0]))
    return {"files": files, "keys": [[name, str(value.dtype), list(value.shape)] for name, value in loaded.items()]}


ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "half": np.array([1.5, -2.25], np.float16),
    "step": np.array(3, np.int32),
    "count": np.array([2**40], np.int64),
    "flag": np.array([True, False]),
    "byte": np.array([[255]], np.uint8),
    "wide": np.array([1 / 3], np.float64),
}


@case()
def file_bytes():
    """What save_checkpoint writes for given arrays: equal bytes mean that each side reads the other's files."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays.ckpt")
        ms.save_checkpoint([{"name": name, "data": ms.Tensor(value)} for name, value in ARRAYS.items()], path, crc_check=True)
        with open(path, "rb") as file:
            content = np.frombuffer(without_head(file.read()), np.uint8)
        loaded = {name: parameter.asnumpy() for name, parameter in ms.load_checkpoint(path).items()}
    return {"bytes": content, **loaded}
