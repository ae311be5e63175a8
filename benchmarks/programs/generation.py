"""A GPT of four layers, width 256, that generates one token a call; its cache of keys and values grows by one row each time."""
from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import nn, ops

WIDTH, HEADS, LAYERS, WORDS, TOKENS = 256, 4, 4, 1000, 64
INNER = WIDTH // HEADS


class Block(nn.Cell):
    """A layer with attention to the cache."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.joined, self.out = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
        self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

    def construct(self, x, keys, values):
        batch, length, _ = x.shape
        query, key, value = (
            part.reshape(batch, length, HEADS, INNER).transpose(0, 2, 1, 3) for part in ops.split(self.joined(self.norm1(x)), WIDTH, 2))
        keys, values = ops.concat((keys, key), 2), ops.concat((values, value), 2)
        scores = ops.softmax(ops.matmul(query, keys.swapaxes(2, 3)) * INNER ** -0.5, -1)
        x = x + self.out(ops.matmul(scores, values).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH))
        return x + self.down(ops.gelu(self.up(self.norm2(x)))), keys, values


class Gpt(nn.Cell):
    """Returns the logits of the next token and the longer cache."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(512, WIDTH)
        self.blocks = nn.CellList([Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm((WIDTH,)), nn.Dense(WIDTH, WORDS, has_bias=False)

    def construct(self, token, position, cache):
        x = self.words(token) + self.positions(position)
        longer = ()
        for block, (keys, values) in zip(self.blocks, cache):
            x, keys, values = block(x, keys, values)
            longer += ((keys, values),)
        return self.head(self.norm(x))[:, -1], longer


def step() -> Callable[[], None]:
    """Return a function that generates TOKENS tokens from an empty prompt."""
    net = Gpt().set_train(False)
    first = np.zeros((1, HEADS, 1, INNER), np.float32)

    def generate() -> None:
        token, cache = ms.Tensor([[1]], ms.int32), tuple((ms.Tensor(first), ms.Tensor(first)) for _ in range(LAYERS))
        for position in range(TOKENS):
            logits, cache = net(token, ms.Tensor([[position]], ms.int32), cache)
            token = ms.Tensor([[int(logits.asnumpy().argmax())]], ms.int32)

    return generate
