"""BERT-base (Devlin et al., 2018): 12 layers, width 768, 12 heads; a forward pass of 128 tokens, batch 4."""
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from programs.common import inference, training


class Attention(nn.Cell):
    """Self-attention over all tokens."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.out = nn.Dense(width, width)
        self.softmax = nn.Softmax()

    def construct(self, x):
        """Return for each token the weighted values of all tokens."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, self.head_width)
        q = self.query(x).reshape(shape).transpose(0, 2, 1, 3)
        k = self.key(x).reshape(shape).transpose(0, 2, 3, 1)
        v = self.value(x).reshape(shape).transpose(0, 2, 1, 3)
        scores = self.softmax(ops.matmul(q, k) * (1 / self.head_width**0.5))
        return self.out(ops.matmul(scores, v).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Layer(nn.Cell):
    """Attention and an MLP, each added and normalised after."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm((width,), epsilon=1e-12), nn.LayerNorm((width,), epsilon=1e-12)
        self.mlp = nn.SequentialCell(nn.Dense(width, 4 * width), nn.GELU(approximate=False), nn.Dense(4 * width, width))

    def construct(self, x):
        """Return the layer's result."""
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Bert(nn.Cell):
    """The encoder: token numbers to hidden states."""

    def __init__(self, words=30522, length=128, width=768, heads=12, layers=12):
        super().__init__()
        self.token, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.indices = ms.Tensor(np.arange(length, dtype=np.int32))
        self.norm = nn.LayerNorm((width,), epsilon=1e-12)
        self.layers = nn.SequentialCell([Layer(width, heads) for _ in range(layers)])

    def construct(self, ids):
        """Return hidden states (batch, length, width) for ids (batch, length)."""
        return self.layers(self.norm(self.token(ids) + self.position(self.indices)))


class Classifier(nn.Cell):
    """The encoder and two scores from the first token."""

    def __init__(self, **sizes):
        super().__init__()
        self.encoder = Bert(**sizes)
        self.head = nn.Dense(sizes.get("width", 768), 2)

    def construct(self, ids):
        """Return scores (batch, 2) for ids (batch, length)."""
        return self.head(self.encoder(ids)[:, 0])


def of(net, infers, batch=8, words=30522, length=128):
    """Return a training step or a forward pass of a classifier."""
    x = ms.Tensor(np.random.randint(0, words, (batch, length)).astype(np.int32))
    y = ms.Tensor(np.random.randint(0, 2, batch).astype(np.int32))
    return inference(net, x) if infers else training(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-4), x, y)


def infer(batch=4):
    """Return a forward pass."""
    return inference(Bert(), ms.Tensor(np.random.randint(0, 30522, (batch, 128)).astype(np.int32)))
