#!/usr/bin/env python3
"""Seconds of a plan for 8, 512 and 4,096 devices: a training step of a GPT of 4 layers, width 256, split as in Megatron.

    python benchmarks/planning.py [--rounds 3] [--shares]
"""
from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

import torchspore

torchspore.install()

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore.common.initializer import Normal, initializer  # noqa: E402
from mindspore.ops import operations as P  # noqa: E402
from tensor_parallel_sizes import HEADS, LAYERS, LENGTH, WIDTH, WORDS  # noqa: E402

from torchspore.context.plan_request import Machine  # noqa: E402
from torchspore.distributed.shard import execution, plan_text  # noqa: E402

GRIDS = {8: (2, 4), 512: (64, 8), 4096: (512, 8)}
"""Devices along the batch and along the model."""


class Linear(nn.Cell):
    """A product and a sum with strategies."""

    def __init__(self, before: int, after: int, product: Any, summed: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer(Normal(0.02), (before, after)), name="weight")
        self.bias = Parameter(initializer("zeros", (after,)), name="bias")
        self.product, self.sum = P.MatMul().shard(product), P.Add().shard(summed)

    def construct(self, x: Any) -> Any:
        """Return the layer's result."""
        return self.sum(self.product(x, self.weight), self.bias)


class Block(nn.Cell):
    """One layer: heads, then rows."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        columns, rows = ((data, 1), (1, model)), ((data, model), (model, 1))
        wide, narrow, cut = ((data, model), (model,)), ((data, 1), (1,)), (data, model, 1, 1)
        self.first, self.second = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.q, self.k, self.v = (Linear(WIDTH, WIDTH, columns, wide) for _ in range(3))
        self.out = Linear(WIDTH, WIDTH, rows, narrow)
        self.up, self.down = Linear(WIDTH, 4 * WIDTH, columns, wide), Linear(4 * WIDTH, WIDTH, rows, narrow)
        self.scores, self.mix = P.BatchMatMul(transpose_b=True).shard((cut, cut)), P.BatchMatMul().shard((cut, cut))
        self.softmax = P.Softmax().shard((cut,))
        self.mask = Tensor(np.triu(np.full((LENGTH, LENGTH), -1e4, np.float32), 1))

    def construct(self, x: Any) -> Any:
        """Return the layer's result."""
        y, shape = self.first(x), (-1, LENGTH, HEADS, WIDTH // HEADS)
        q, k, v = (ops.transpose(layer(y).reshape(shape), (0, 2, 1, 3)) for layer in (self.q, self.k, self.v))
        y = self.mix(self.softmax(self.scores(q, k) * 0.18 + self.mask), v)
        x = x + self.out(ops.transpose(y, (0, 2, 1, 3)).reshape(x.shape))
        return x + self.down(ops.gelu(self.up(self.second(x))))


class Gpt(nn.Cell):
    """The loss of the next word; the table of words is cut by rows and used again for the scores."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.table = Parameter(initializer(Normal(0.02), (WORDS, WIDTH)), name="table")
        self.positions = Parameter(initializer(Normal(0.02), (LENGTH, WIDTH)), name="positions")
        self.gather = P.Gather().shard(((model, 1), (data, 1)))
        self.blocks = nn.CellList([Block(data, model) for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm((WIDTH,)), P.MatMul(transpose_b=True).shard(((data, 1), (model, 1)))
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, x: Any, y: Any) -> Any:
        """Return the loss."""
        h = (self.gather(self.table, x, 0) + self.positions).reshape(-1, WIDTH)
        for block in self.blocks:
            h = block(h)
        return self.loss(self.head(self.norm(h), self.table), y)


def measure_plan(devices: int, shares: bool) -> dict[str, float]:
    """Return the seconds of a compilation, of the split in it, and of the printed table."""
    os.environ["TORCHSPORE_PLAN"] = str(devices)
    data, model = GRIDS[devices]
    ms.reset_auto_parallel_context()
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", device_num=devices, enable_parallel_optimizer=shares,
    )
    net = Gpt(data, model)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train()
    x, y = Tensor(np.zeros((512, LENGTH), np.int32)), Tensor(np.zeros(512 * LENGTH, np.int32))
    seconds, make = dict[str, float](), execution.Split

    def timed(*arguments: Any) -> Any:
        started = time.perf_counter()
        split = make(*arguments)
        seconds["split"] = time.perf_counter() - started
        return split

    execution.Split = timed  # type: ignore[assignment,misc]
    try:
        started = time.perf_counter()
        step.compile(x, y)
        seconds["all"] = time.perf_counter() - started
    finally:
        execution.Split = make  # type: ignore[misc]
    started = time.perf_counter()
    list(plan_text.text(torchspore.graphs(step)[0].split, Machine()))
    seconds["table"] = time.perf_counter() - started
    return seconds


def main() -> None:
    """Print a line for each number of devices: the median of several compilations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shares", action="store_true", help="with enable_parallel_optimizer")
    options = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE)
    measure_plan(8, options.shares)                                 # loads modules that are loaded lazily
    print(f"a step of a GPT of {LAYERS} layers, width {WIDTH}, with its gradients and Adam: seconds, median of {options.rounds}")
    print(f"{'devices':>8} {'grid':>8} {'compile':>8} {'split':>8} {'table':>8}")
    for devices, grid in GRIDS.items():
        rounds = [measure_plan(devices, options.shares) for _ in range(options.rounds)]
        middle = {key: statistics.median(times[key] for times in rounds) for key in ("all", "split", "table")}
        print(f"{devices:>8} {grid[0]:>4} x{grid[1]:>2} {middle['all']:>8.2f} {middle['split']:>8.2f} {middle['table']:>8.2f}")


if __name__ == "__main__":
    main()
