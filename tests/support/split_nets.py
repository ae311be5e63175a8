"""Nets with strategies, trained for a few steps on one device, by ranks simulated in one process, or as one of several processes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.ops import operations as P


class LeNet(nn.Cell):
    """Without strategies: all operators share out the batch."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool, self.relu, self.flatten = nn.MaxPool2d(2, 2), nn.ReLU(), nn.Flatten()
        self.dense = nn.SequentialCell([nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)])

    def construct(self, x: Any) -> Any:
        x = self.pool(self.relu(self.first(x)))
        return self.dense(self.flatten(self.pool(self.relu(self.second(x)))))


class Residual(nn.Cell):
    """Convolutions with batch norm and a shortcut, as in ResNet: statistics are those of the whole batch."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, 8, 3, 2), nn.BatchNorm2d(8)
        self.one, self.other = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)
        self.norms = nn.CellList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.head = nn.Dense(8, 10)

    def construct(self, x: Any) -> Any:
        x = ops.relu(self.norm(self.stem(x)))
        y = self.norms[1](self.other(ops.relu(self.norms[0](self.one(x)))))
        return self.head(ops.mean(ops.relu(x + y), (2, 3)))


class Towers(nn.Cell):
    """Two towers over tables that are cut by rows."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.users = Parameter(initializer(Normal(0.1), (64, 16)), name="users")
        self.items = Parameter(initializer(Normal(0.1), (64, 16)), name="items")
        self.gather = P.Gather().shard(((model, 1), (data,)))
        self.one, self.other = nn.Dense(16, 16), nn.Dense(16, 16)

    def construct(self, x: Any) -> Any:
        users, items = self.gather(self.users, x[:, 0], 0), self.gather(self.items, x[:, 1], 0)
        users, items = ops.relu(self.one(users)), ops.relu(self.other(items))
        return ops.concat((users * items, users + items), 1)


class Linear(nn.Cell):
    """A product and a sum with strategies."""

    def __init__(self, before: int, after: int, product: Any, summed: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer(Normal(0.05), (before, after)), name="weight")
        self.bias = Parameter(initializer("zeros", (after,)), name="bias")
        self.product, self.sum = P.MatMul().shard(product), P.Add().shard(summed)

    def construct(self, x: Any) -> Any:
        return self.sum(self.product(x, self.weight), self.bias)


class Block(nn.Cell):
    """One layer of a transformer as Megatron cuts it: heads, then rows."""

    def __init__(self, data: int, model: int, width: int = 32, heads: int = 4, length: int = 8) -> None:
        super().__init__()
        self.shape = (-1, length, heads, width // heads)
        columns, rows = ((data, 1), (1, model)), ((data, model), (model, 1))
        wide, narrow = ((data, model), (model,)), ((data, 1), (1,))
        self.first, self.second = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.q, self.k, self.v = (Linear(width, width, columns, wide) for _ in range(3))
        self.out = Linear(width, width, rows, narrow)
        self.up, self.down = Linear(width, 4 * width, columns, wide), Linear(4 * width, width, rows, narrow)
        cut = (data, model, 1, 1)
        self.scores, self.mix = P.BatchMatMul(transpose_b=True).shard((cut, cut)), P.BatchMatMul().shard((cut, cut))
        self.softmax, self.dropout = P.Softmax().shard((cut,)), nn.Dropout(p=0.1)
        self.mask = Tensor(np.triu(np.full((length, length), -1e4, np.float32), 1))

    def construct(self, x: Any) -> Any:
        y = self.first(x)
        q, k, v = (ops.transpose(projection(y).reshape(self.shape), (0, 2, 1, 3)) for projection in (self.q, self.k, self.v))
        y = self.mix(self.softmax(self.scores(q, k) * 0.35 + self.mask), v)
        x = x + self.dropout(self.out(ops.transpose(y, (0, 2, 1, 3)).reshape(x.shape)))
        return x + self.down(ops.gelu(self.up(self.second(x))))


class Gpt(nn.Cell):
    """Two blocks, a table of words that is cut by rows and used again for the scores."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.table = Parameter(initializer(Normal(0.05), (64, 32)), name="table")
        self.places = Parameter(initializer(Normal(0.05), (8, 32)), name="places")
        self.gather = P.Gather().shard(((model, 1), (data, 1)))
        self.blocks = nn.CellList([Block(data, model), Block(data, model)])
        self.norm, self.head = nn.LayerNorm((32,)), P.MatMul(transpose_b=True).shard(((data, 1), (model, 1)))

    def construct(self, x: Any) -> Any:
        y = (self.gather(self.table, x, 0) + self.places).reshape(-1, 32)
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y), self.table)


NETS: dict[str, tuple[Any, Callable[[Any], Any], int]] = {
    "lenet": (LeNet, lambda source: source.standard_normal((16, 1, 32, 32)).astype(np.float32), 16),
    "residual": (Residual, lambda source: source.standard_normal((16, 1, 8, 8)).astype(np.float32), 16),
    "towers": (Towers, lambda source: source.integers(0, 64, (16, 2)).astype(np.int32), 16),
    "gpt": (Gpt, lambda source: source.integers(0, 64, (8, 8)).astype(np.int32), 64),
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: nn.SGD(p, 0.05), "momentum": lambda p: nn.Momentum(p, 0.05, 0.9), "adam": lambda p: nn.Adam(p, 1e-3),
    "adamw": lambda p: nn.AdamWeightDecay(p, 1e-3), "lamb": lambda p: nn.Lamb(p, 1e-3),
}


STAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "lenet": (("first", "second"), ("dense",)), "residual": (("stem", "norm", "one"), ("other", "norms", "head")),
    "towers": (("one",), ("other",)), "gpt": (("blocks.0",), ("blocks.1", "norm")),
}
"""The Cells of each net that belong to the first and to the second stage of a pipeline; the rest follows."""


def staged(net: Any, name: str) -> Any:
    """The net with Cells in two stages."""
    cells = dict(net.cells_and_names())
    for stage, names in enumerate(STAGES[name]):
        for key in names:
            cells[key].pipeline_stage = stage
    return net


def trained(
    name: str, data: int = 1, model: int = 1, optimizer: str = "momentum", steps: int = 5, parts: int = 1, ways: int = 1,
) -> tuple[list[float], Any]:
    """The losses of a few steps, and the training Cell; with several `parts` those of a pipeline of two stages.

    One device beside `ways` simulated ones that have rows of their own is given rows in an order in which its parts hold what theirs do.
    """
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    make, inputs, rows = NETS[name]
    net = make(data, model)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    network: Any = nn.WithLossCell(net, loss)
    if parts > 1:
        staged(net, name)
        network = nn.PipelineCell(network, parts)
    if optimizer == "scaled":
        scaled = nn.DynamicLossScaleUpdateCell(2.0 ** 10, 2, 2)
        step: Any = nn.TrainOneStepWithLossScaleCell(network, OPTIMIZERS["adam"](net.trainable_params()), scaled)
    else:
        step = nn.TrainOneStepCell(network, OPTIMIZERS[optimizer](net.trainable_params()))
    step.set_train()
    source = np.random.default_rng(0)
    results = []
    for _ in range(steps):
        batch = inputs(source), source.integers(0, 10, rows).astype(np.int32)
        order = np.arange(len(batch[0])).reshape(ways, parts, -1).swapaxes(0, 1).ravel() if ways > 1 else slice(None)
        results.append(step(*(Tensor(each[order]) for each in batch)))
    return [float((result[0] if isinstance(result, tuple) else result).asnumpy()) for result in results], step
