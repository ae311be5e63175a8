# An encoder with attention written out, layer norm, embeddings and dropout in every place, from a seed alone.
import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import Normal, initializer
from seeded import batches, start, train


class Attention(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.out = nn.Dense(width, width)
        self.softmax = nn.Softmax(-1)
        self.dropout = nn.Dropout(p=0.1)

    def split(self, x):
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)

    def construct(self, x):
        batch, length, width = x.shape
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = ops.matmul(query, key.transpose(0, 1, 3, 2)) / math.sqrt(self.size)
        weights = self.dropout(self.softmax(scores))
        return self.out(ops.matmul(weights, value).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Layer(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.first, self.second = nn.Dense(width, 2 * width), nn.Dense(2 * width, width)
        self.relu = nn.ReLU()
        self.dropout1, self.dropout2, self.dropout3 = nn.Dropout(p=0.1), nn.Dropout(p=0.2), nn.Dropout(p=0.1)

    def construct(self, x):
        x = self.norm1(x + self.dropout1(self.attention(x)))
        return self.norm2(x + self.dropout3(self.second(self.dropout2(self.relu(self.first(x))))))


class Encoder(nn.Cell):
    def __init__(self, words=50, width=32, heads=4, length=6, classes=5):
        super().__init__()
        self.words = nn.Embedding(words, width, embedding_table="uniform")
        self.places = Parameter(initializer(Normal(0.02), (1, length, width), ms.float32), name="places")
        self.dropout = nn.Dropout(p=0.1)
        self.layers = nn.CellList([Layer(width, heads) for _ in range(2)])
        self.dense = nn.Dense(width, classes)

    def construct(self, tokens):
        x = self.dropout(self.words(tokens) + self.places)
        for layer in self.layers:
            x = layer(x)
        return self.dense(x.mean(1))


start(3)
net = Encoder()
train(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-3),
      batches((6,), 5, lambda shape: np.random.randint(0, 50, shape).astype(np.int32)))
