#!/usr/bin/env python3
"""Searches of `auto_parallel` for large networks: their CPU seconds, and the predicted times of steps.

    python benchmarks/searching.py [--only "GPT, 12 layers"]

Each search runs in a separate process that compiles a training step with Adam and runs nothing. "data parallel" is the predicted step of
the program's strategies. "search" is the CPU time of building the model and solving all grids; "plan" is the CPU time of the
compilation: capture, search, and the split of the candidates. "memory" is the growth of the peak during the search.
"""
from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

DYNAMIC, RECURSIVE = "dynamic_programming", "recursive_programming"
RUNS = [
    ("GPT, 12 layers", 8, RECURSIVE), ("GPT, 12 layers", 8, DYNAMIC), ("GPT, 12 layers", 512, RECURSIVE), ("GPT, 12 layers", 512, DYNAMIC),
    ("GPT, 12 layers", 4096, RECURSIVE), ("GPT, 96 layers", 8, RECURSIVE), ("ResNet-50", 8, RECURSIVE), ("T5, 6 + 6 layers", 8, RECURSIVE),
]
WIDTH, HEADS, LENGTH, WORDS = 1024, 16, 128, 32768


def networks() -> dict[str, Any]:
    """Return functions from the number of devices to a network with its loss and its inputs."""
    import mindspore as ms
    import numpy as np
    from mindspore import Parameter, Tensor, nn, ops
    from programs.resnet50 import ResNet50

    class Attention(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Dense(WIDTH, WIDTH) for _ in range(4))

        def construct(self, x: Any, memory: Any) -> Any:
            q, k, v = (ops.transpose(layer(y).reshape(-1, LENGTH, HEADS, WIDTH // HEADS), (0, 2, 1, 3))
                       for layer, y in ((self.q, x), (self.k, memory), (self.v, memory)))
            mixed = ops.matmul(ops.softmax(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * 0.125, -1), v)
            return self.out(ops.transpose(mixed, (0, 2, 1, 3)).reshape(x.shape))

    class Block(nn.Cell):
        def __init__(self, has_cross: bool = False) -> None:
            super().__init__()
            self.has_cross = has_cross
            self.attention, self.first, self.last = Attention(), nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
            if has_cross:
                self.cross, self.middle = Attention(), nn.LayerNorm((WIDTH,))
            self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

        def construct(self, x: Any, memory: Any = None) -> Any:
            y = self.first(x)
            x = x + self.attention(y, y)
            if self.has_cross:
                x = x + self.cross(self.middle(x), memory)
            return x + self.down(ops.gelu(self.up(self.last(x))))

    class Language(nn.Cell):
        """A decoder, or an encoder and a decoder."""

        def __init__(self, layers: int, encoder_layers: int = 0) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.positions = Parameter(Tensor(np.zeros((LENGTH, WIDTH), np.float32)), name="positions")
            self.encoder = nn.CellList([Block() for _ in range(encoder_layers)])
            self.decoder = nn.CellList([Block(encoder_layers > 0) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm((WIDTH,)), nn.Dense(WIDTH, WORDS, has_bias=False)

        def construct(self, x: Any, y: Any) -> Any:
            h = self.words(x) + self.positions
            memory = h
            for block in self.encoder:
                memory = block(memory)
            for block in self.decoder:
                h = block(h, memory)
            return ops.cross_entropy(self.head(self.norm(h)).reshape(-1, WORDS), y.reshape(-1))

    def ids(batch: int) -> tuple[Any, Any]:
        return Tensor(np.zeros((batch, LENGTH), np.int32)), Tensor(np.zeros((batch, LENGTH), np.int32))

    def images(batch: int) -> tuple[Any, Any]:
        return Tensor(np.zeros((batch, 3, 224, 224), np.float32)), Tensor(np.zeros(batch, np.int32))

    ms.set_context(mode=ms.GRAPH_MODE)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return {
        "GPT, 12 layers": lambda devices: (Language(12), ids(max(64, devices))),
        "GPT, 96 layers": lambda devices: (Language(96), ids(max(64, devices))),
        "T5, 6 + 6 layers": lambda devices: (Language(6, 6), ids(max(64, devices))),
        "ResNet-50": lambda devices: (nn.WithLossCell(ResNet50(), loss), images(max(64, devices))),
    }


def work(name: str, devices: int, mode: str) -> None:
    """Compile one network, and print the times and the result of the search."""
    os.environ["TORCHSPORE_PLAN"] = str(devices)
    import torchspore

    torchspore.install()
    import mindspore as ms
    from mindspore import nn

    from torchspore.distributed.shard.search import strategy_search

    spent = {"search": 0.0, "memory": 0.0}

    def timed(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            memory, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
            result = function(*arguments)
            spent["search"] += time.process_time() - started
            spent["memory"] += (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
            return result

        return call

    search: Any = strategy_search.Search
    search.__init__, search.candidates = timed(search.__init__), timed(search.candidates)
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode=mode, device_num=devices, dataset_strategy="full_batch",
                                 init_param_in_compile=True)
    net, inputs = networks()[name](devices)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train()
    started = time.process_time()
    step.compile(*inputs)
    plan = time.process_time() - started
    searched = torchspore.graphs(step)[0].split.sharded_capture.searched
    mesh = torchspore.graphs(step)[0].split.local.mesh.sizes
    print(json.dumps({**spent, "plan": plan, "grid": " x ".join(map(str, mesh)), "ms": searched.search_cost.seconds * 1e3,
                      "data": searched.plain.seconds * 1e3, "guessed": searched.tally.guessed}))


def main() -> None:
    """Print a row for each search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the name of a network")
    options = parser.parse_args()
    heads = ("network", "devices", "search_mode", "grid", "data parallel", "found", "search", "plan")
    print("{:<17} {:>7} {:<22} {:<12} {:>13} {:>9} {:>8} {:>8} memory".format(*heads))
    for name, devices, mode in RUNS:
        if options.only not in (None, name):
            continue
        command = [sys.executable, __file__, "--worker", name, str(devices), mode]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SystemExit(process.stderr[-2000:])
        row = json.loads(process.stdout.splitlines()[-1])
        guessed = f"  ({row['guessed']} guessed)" if row["guessed"] else ""
        print(f"{name:<17} {devices:>7} {mode:<22} {row['grid']:<12} {row['data']:>10.2f} ms {row['ms']:>6.2f} ms {row['search']:>6.2f} s "
              f"{row['plan']:>6.2f} s {row['memory']:.0f} MB{guessed}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
