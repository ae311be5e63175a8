"""Elementwise operators, a softmax and a layer norm on one large matrix: like a hand-written activation or loss."""
import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Elementwise(nn.Cell):
    """A gate, a soft clip, a normalisation and a penalty."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm((width,))

    def construct(self, x, y):
        """Return one number for each row."""
        gate = ops.sigmoid(x * 1.702) * x + 0.5 * ops.tanh(y)
        clipped = ops.minimum(ops.maximum(gate, -3.0), 3.0) / 2
        normed = self.norm(clipped + x * 1) * (y + 1) + (y + 1)
        return (ops.softmax(normed) * ops.abs(x - y)).sum(1) + (gate ** 2).mean(1)


def step(rows=1024, width=1024):
    """Return a function that calls the Cell, without a gradient."""
    values = np.random.RandomState(0)
    net, x, y = Elementwise(width), *[ms.Tensor(values.randn(rows, width).astype(np.float32)) for _ in range(2)]
    return lambda: net(x, y)
