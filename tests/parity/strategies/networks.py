"""Networks for searches of strategies, and splits of them by hand. The weight of a product names its strategy."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.ops import operations as P


class Product(nn.Cell):
    """The product with a weight of shape (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.zeros((inputs, outputs), np.float32)), name="weight")
        self.primitive = P.MatMul()

    def construct(self, x: Any) -> Any:
        return self.primitive(x, self.weight)


class Perceptron(nn.Cell):
    """Products of widths that differ, with ReLU between them; an input has shape (rows, WIDTHS[0])."""

    WIDTHS = (1024, 4096, 1024, 8192, 512)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third, self.fourth = map(Product, self.WIDTHS, self.WIDTHS[1:])
        self.relu, self.mean = P.ReLU(), P.ReduceMean()

    def construct(self, x: Any) -> Any:
        x = self.relu(self.first(x))
        x = self.relu(self.second(x))
        x = self.relu(self.third(x))
        return self.mean(self.fourth(x), (0, 1))


class Transformer(nn.Cell):
    """One layer of attention and two products; an input has shape (batch * LENGTH, WIDTH)."""

    WIDTH, HEADS, LENGTH = 1024, 16, 128

    def __init__(self) -> None:
        super().__init__()
        width = self.WIDTH
        self.q, self.k, self.v, self.out = (Product(width, width) for _ in range(4))
        self.scores, self.mixed = P.BatchMatMul(transpose_b=True), P.BatchMatMul()
        self.up, self.down = Product(width, 4 * width), Product(4 * width, width)
        self.reshape, self.transpose, self.softmax, self.add = P.Reshape(), P.Transpose(), P.Softmax(), P.Add()
        self.relu, self.mean = P.ReLU(), P.ReduceMean()

    def _heads(self, x: Any) -> Any:
        return self.transpose(self.reshape(x, (-1, self.LENGTH, self.HEADS, self.WIDTH // self.HEADS)), (0, 2, 1, 3))

    def construct(self, x: Any) -> Any:
        q, k, v = self._heads(self.q(x)), self._heads(self.k(x)), self._heads(self.v(x))
        mixed = self.mixed(self.softmax(self.scores(q, k)), v)
        x = self.add(x, self.out(self.reshape(self.transpose(mixed, (0, 2, 1, 3)), (-1, self.WIDTH))))
        return self.mean(self.add(x, self.down(self.relu(self.up(x)))), (0, 1))


NETWORKS = {"perceptron": (Perceptron, (64, 1024)), "transformer": (Transformer, (1024, 1024))}
"""By name a class, and the shape of its input."""
MODES = ("dynamic_programming", "recursive_programming", "sharding_propagation")
DEVICES = 8


ROWS, COLUMNS = ((1, DEVICES), (DEVICES, 1)), ((1, 1), (1, DEVICES))
MEGATRON = {
    "perceptron": {"first": COLUMNS, "second": ROWS, "third": COLUMNS, "fourth": ROWS},
    "transformer": {"q": COLUMNS, "k": COLUMNS, "v": COLUMNS, "out": ROWS, "up": COLUMNS, "down": ROWS},
}
"""By network the strategies of Megatron-LM (Shoeybi et al., 2019): pairs of products are cut by columns, then by rows."""
PROPAGATED = {"perceptron": "first", "transformer": "q"}
"""The product that has a strategy in `sharding_propagation`, which spreads it."""
PROPAGATED_STRATEGY = ((DEVICES // 2, 1), (1, 2))


def products(network: nn.Cell) -> dict[str, Any]:
    """Return the primitives of the products by the names of their Cells."""
    return {name: cell.primitive for name, cell in network.cells_and_names() if isinstance(cell, Product)}


def training_step(name: str, strategies: dict[str, Any]) -> tuple[nn.Cell, Tensor]:
    """Return a training step of a network, whose products have these strategies, and its input."""
    network_class, shape = NETWORKS[name]
    network = network_class()
    for product, primitive in products(network).items():
        if product in strategies:
            primitive.shard(tuple(map(tuple, strategies[product])))
    return nn.TrainOneStepCell(network, nn.Momentum(network.trainable_params(), 0.1, 0.9)).set_train(), Tensor(np.zeros(shape, np.float32))
