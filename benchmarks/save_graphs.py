#!/usr/bin/env python3
"""The cost of `save_graphs`: a new training step is captured and compiled at each level, and the levels take turns.

    python benchmarks/save_graphs.py [--blocks 24] [--rounds 7]
"""
from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import timeit
from dataclasses import dataclass, field
from pathlib import Path

import debug_level

import torchspore

torchspore.install()

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn  # noqa: E402

from torchspore.graph.report import stages  # noqa: E402

LEVELS: tuple[int | bool, ...] = (0, 1, 2, True, 3)


@dataclass
class Price:
    """The cost of one level: seconds of each compilation, and files and bytes of the last one."""

    seconds: list[float] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    operators: int = 0


def compile_step(level: int | bool, blocks: int, price: Price) -> None:
    """Compile a new training step and add its cost to `price`."""
    with tempfile.TemporaryDirectory() as folder:
        ms.set_context(mode=ms.GRAPH_MODE, save_graphs=level, save_graphs_path=folder)
        body = nn.SequentialCell(*[debug_level.Block() for _ in range(blocks)])
        step = nn.TrainOneStepCell(nn.WithLossCell(body, nn.MSELoss()), nn.Adam(body.trainable_params())).set_train()
        x = ms.Tensor(np.ones((4, 16), np.float32))
        started = time.perf_counter()
        step.compile(x, x)
        price.seconds.append(time.perf_counter() - started)
        paths = [path for path in Path(folder).rglob("*") if path.is_file()]
        price.files, price.bytes = len(paths), sum(path.stat().st_size for path in paths)
        price.operators = torchspore.graphs(step)[0].operators


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=7)
    options, _ = parser.parse_known_args()
    prices = {str(level): (level, Price()) for level in LEVELS}
    compile_step(0, options.blocks, Price())
    for _ in range(options.rounds):
        for level, price in prices.values():
            compile_step(level, options.blocks, price)
    seconds_without = prices["0"][1].seconds
    each = min(timeit.repeat(lambda: stages.keep("optimize", None), number=100_000, repeat=5)) / 100_000  # type: ignore[arg-type]
    print(f"### What saved graphs cost: a training step of {prices['0'][1].operators} operators, {options.rounds} compilations each\n")
    print("| save_graphs | compile s | of 0 (median, min .. max) | files | MB |\n|---|---:|---|---:|---:|")
    for name, (_, price) in prices.items():
        ratios = [took / base for took, base in zip(price.seconds, seconds_without)]
        ratio_text = f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} .. {max(ratios):.2f})"
        print(f"| {name} | {statistics.median(price.seconds):.3f} | {ratio_text} | {price.files} | {price.bytes / 1e6:.1f} |")
    print(f"\nOff, each of the 14 or so places that hand a stage in takes {each * 1e9:.0f} ns.")


if __name__ == "__main__":
    main()
