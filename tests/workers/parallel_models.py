"""Small models with weights of NumPy's, and batches for them: what trainings over several ranks are compared with.

Their activations are smooth. Behind a ReLU one input of 8,192 was 3e-10 with one sum and -4e-11 with another: its slope is 1 or 0, and the
weights of ResNet-18 with Adam on four ranks were 2e-4 from those of one process, whereas in float64 they are equal to 1e-15.
"""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

BATCH = 8


class LeNet(nn.Cell):
    """Two convolutions and three layers, on images (1, 16, 16)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 5, pad_mode="valid"), nn.Conv2d(4, 8, 3, pad_mode="valid")
        self.pool, self.bent, self.flatten = nn.MaxPool2d(2, 2), nn.Tanh(), nn.Flatten()
        self.dense = nn.SequentialCell(nn.Dense(32, 24), nn.Tanh(), nn.Dense(24, 16), nn.Tanh(), nn.Dense(16, 10))
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x: Any, y: Any) -> Any:
        """The loss."""
        x = self.pool(self.bent(self.first(x)))
        return self.loss(self.dense(self.flatten(self.pool(self.bent(self.second(x))))), y)


class Block(nn.Cell):
    """A block of a residual net, whose normalisations use their moving averages: over parts of a batch the others differ by design."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(before, after, 3, stride), nn.Conv2d(after, after, 3)
        self.norms = nn.CellList([nn.BatchNorm2d(after, use_batch_statistics=False) for _ in range(2)])
        self.short = nn.Conv2d(before, after, 1, stride) if before != after else None

    def construct(self, x: Any) -> Any:
        """The block's output."""
        out = self.norms[1](self.second(ops.silu(self.norms[0](self.first(x)))))
        return ops.silu(out * 0.2 + (x if self.short is None else self.short(x)))


class ResNet18(nn.Cell):
    """Eight blocks with few channels, on images (3, 16, 16)."""

    def __init__(self) -> None:
        super().__init__()
        widths, before, blocks = (8, 8, 16, 16), 8, []
        self.stem = nn.Conv2d(3, 8, 3)
        for width in widths:
            blocks += [Block(before, width, 1 if width == before else 2), Block(width, width, 1)]
            before = width
        self.blocks, self.head, self.loss = nn.SequentialCell(*blocks), nn.Dense(16, 10), nn.CrossEntropyLoss()

    def construct(self, x: Any, y: Any) -> Any:
        """The loss."""
        return self.loss(self.head(self.blocks(self.stem(x)).mean((2, 3))), y)


class Gpt(nn.Cell):
    """Two layers of width 32 with two heads, on rows of 12 words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, 32), ms.Parameter(ops.zeros((12, 32)), name="places")
        self.norms = nn.CellList([nn.LayerNorm((32,)) for _ in range(5)])
        self.into, self.out = (nn.CellList([nn.Dense(32, n * 32) for _ in range(2)]) for n in (3, 1))
        self.up, self.down = nn.CellList([nn.Dense(32, 64) for _ in range(2)]), nn.CellList([nn.Dense(64, 32) for _ in range(2)])
        self.mask, self.loss = ms.Tensor(np.triu(np.full((12, 12), -1e4, np.float32), 1)), nn.CrossEntropyLoss()

    def construct(self, x: Any, y: Any) -> Any:
        """The loss."""
        h = self.words(x) + self.places
        for i in range(2):
            h = h + self.attention(self.norms[2 * i](h), i)
            h = h + self.down[i](ops.gelu(self.up[i](self.norms[2 * i + 1](h))))
        logits = ops.matmul(self.norms[4](h), self.words.embedding_table.T)
        return self.loss(logits.reshape(-1, 40), y.reshape(-1))

    def attention(self, h: Any, i: int) -> Any:
        """Attention to the words before."""
        b, s, _ = h.shape
        q, k, v = (part.reshape(b, s, 2, 16).swapaxes(1, 2) for part in ops.split(self.into[i](h), 32, axis=-1))
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * 0.25 + self.mask, axis=-1)
        return self.out[i](ops.matmul(weights, v).swapaxes(1, 2).reshape(b, s, 32))


class Recommender(nn.Cell):
    """Two towers, each with a table and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(64, 16), nn.Embedding(32, 16)
        self.left, self.right, self.loss = nn.Dense(16, 8), nn.Dense(16, 8), nn.MSELoss()

    def construct(self, x: Any, y: Any) -> Any:
        """The loss."""
        return self.loss((self.left(self.users(x[:, 0])) * self.right(self.items(x[:, 1]))).sum(1), y)


MODELS = {"lenet": LeNet, "resnet18": ResNet18, "gpt": Gpt, "recommender": Recommender}


def build_model(name: str) -> Any:
    """A model with weights that are the same in every process."""
    net, random = MODELS[name](), np.random.RandomState(3)
    for parameter in net.trainable_params():
        if parameter.ndim > 1:
            scale = 1.0 / np.sqrt(np.prod(parameter.shape[1:]))
            parameter.set_data(ms.Tensor((random.standard_normal(parameter.shape) * scale).astype(np.float32)))
        elif "bias" in parameter.name:
            parameter.set_data(ms.Tensor((random.rand(*parameter.shape) * 0.1).astype(np.float32)))
    return net


def batch(name: str, step: int, rank: int, ranks: int) -> tuple[Any, Any]:
    """The part of a batch that a rank has."""
    random = np.random.RandomState(100 + step)
    x, y = {
        "lenet": lambda: (random.rand(BATCH, 1, 16, 16).astype(np.float32), random.randint(0, 10, BATCH).astype(np.int32)),
        "resnet18": lambda: (random.rand(BATCH, 3, 16, 16).astype(np.float32), random.randint(0, 10, BATCH).astype(np.int32)),
        "gpt": lambda: (random.randint(0, 40, (BATCH, 12)).astype(np.int32), random.randint(0, 40, (BATCH, 12)).astype(np.int32)),
        "recommender": lambda: (random.randint(0, 32, (BATCH, 2)).astype(np.int32), random.rand(BATCH).astype(np.float32)),
    }[name]()
    rows = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    return ms.Tensor(x[rows]), ms.Tensor(y[rows])
