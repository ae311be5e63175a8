#!/usr/bin/env python3
"""Sparse gradients: time and memory of a training step against the size of the table, with gradients of rows and of the complete table.

    python benchmarks/sparse.py [--rows 1000,10000,100000,1000000]

A batch of 256 x 8 indexes selects rows of 16 numbers; a dense layer and a loss follow. Contenders of one line take turns. Memory is the
peak of the tensors that a step creates, as torch's profiler counts it.
"""
from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import recompute
import turns

WIDTH, BATCH, FIELDS = 16, 256, 8
OPTIMIZERS = ("LazyAdam", "FTRL", "ProximalAdagrad", "Adam")


def step(rows: int, optimizer: str, mode: str, is_sparse: bool) -> Callable[[], Any]:
    """Return a training step on a table of `rows` rows."""
    import mindspore as ms
    import numpy as np
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            table = ms.Tensor(np.random.RandomState(0).rand(rows, WIDTH).astype(np.float32))
            embedding = not is_sparse and nn.Embedding(rows, WIDTH, embedding_table=table)
            self.table = embedding or nn.EmbeddingLookup(rows, WIDTH, param_init=table)
            self.head = nn.Dense(FIELDS * WIDTH, 1)

        def construct(self, ids):  # type: ignore[no-untyped-def]
            return (self.head(self.table(ids).reshape(BATCH, -1)) ** 2).mean()

    net = Net()
    cell = nn.TrainOneStepCell(net, getattr(nn, optimizer)(net.trainable_params(), learning_rate=0.01)).set_train()
    ids = ms.Tensor(np.random.RandomState(1).randint(0, rows, (BATCH, FIELDS)).astype(np.int32))

    def run() -> Any:
        ms.set_context(mode=getattr(ms, mode))
        return cell(ids)

    run()
    return run


def main() -> None:
    """Print the tables."""
    import torchspore

    torchspore.install()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="how long one turn takes")
    options = parser.parse_args()
    for mode in ("GRAPH_MODE", "PYNATIVE_MODE"):
        print(f"\n### Sparse gradients, {mode}\n\n| optimizer | rows | rows' ms | whole ms | rows / whole | rows' MiB | whole MiB |")
        print("|---|---:|---:|---:|---|---:|---:|", flush=True)
        for optimizer in OPTIMIZERS:
            for rows in map(int, options.rows.split(",")):
                steps = {name: step(rows, optimizer, mode, name == "rows") for name in ("rows", "whole")}
                times = turns.measure({name: turns.timer(run) for name, run in steps.items()}, options.seconds, options.rounds)
                memory = {name: recompute.peak(run) for name, run in steps.items()}
                ms = {name: statistics.median(times_of_kind) * 1000 for name, times_of_kind in times.items()}
                print(f"| {optimizer} | {rows:,} | {ms['rows']:.2f} | {ms['whole']:.2f} | {turns.ratio(times['rows'], times['whole'])} "
                      f"| {memory['rows']:.2f} | {memory['whole']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
