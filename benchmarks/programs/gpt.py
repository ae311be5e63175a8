"""A GPT of four layers, width 256, 4 heads, 128 tokens, batch 8, 1,000 words, Adam."""
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from programs.common import inference, training


class Attention(nn.Cell):
    """Causal self-attention."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.qkv = nn.Dense(width, 3 * width)
        self.out = nn.Dense(width, width)
        self.mask = ms.Tensor(np.triu(np.full((length, length), -1e9, np.float32), 1))
        self.softmax = nn.Softmax()

    def construct(self, x):
        """Return for each token the weighted values of earlier tokens."""
        batch, length, width = x.shape
        q, k, v = ops.split(self.qkv(x).reshape(batch, length, 3 * self.heads, self.head_width).transpose(0, 2, 1, 3), self.heads, 1)
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) * (1 / self.head_width**0.5) + self.mask
        return self.out(ops.matmul(self.softmax(scores), v).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Layer(nn.Cell):
    """Attention and an MLP, each normalised before and added after."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.attention = Attention(width, heads, length)
        self.mlp = nn.SequentialCell(nn.Dense(width, 4 * width), nn.GELU(), nn.Dense(4 * width, width))

    def construct(self, x):
        """Return the layer's result."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Cell):
    """Scores of the next word for each token."""

    def __init__(self, words=1000, length=128, width=256, heads=4, layers=4):
        super().__init__()
        self.words = words
        self.token, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.indices = ms.Tensor(np.arange(length, dtype=np.int32))
        self.layers = nn.SequentialCell([Layer(width, heads, length) for _ in range(layers)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, words, has_bias=False)

    def construct(self, ids):
        """Return scores (batch * length, words) for ids (batch, length)."""
        x = self.token(ids) + self.position(self.indices)
        return self.head(self.norm(self.layers(x))).reshape(-1, self.words)


def of(net, infers, batch=8, words=1000, length=128):
    """Return a training step or a forward pass of a net."""
    ids = np.random.randint(0, words, (batch, length + 1)).astype(np.int32)
    x, y = ms.Tensor(ids[:, :-1].copy()), ms.Tensor(ids[:, 1:].reshape(-1).copy())
    return inference(net, x) if infers else training(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-3), x, y)


def step(words=1000, length=128, width=256, heads=4, layers=4, batch=8, is_recomputed=False):
    """Return a training step; the layers are recomputed if `is_recomputed`."""
    net = GPT(words, length, width, heads, layers)
    for layer in net.layers if is_recomputed else []:
        layer.recompute()
    return of(net, False, batch, words, length)
