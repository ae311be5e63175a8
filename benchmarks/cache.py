#!/usr/bin/env python3
"""The compile cache: time to the first step at level O1 in a first process and in a second one, for three programs.

    python benchmarks/cache.py            all three
    python benchmarks/cache.py branches   one of resnet50, gpt, branches

Each process is fresh; the time goes from the built net to the end of its first step. `kernels` are those that a C++ compiler built.
"""
from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

PROGRAMS = ("resnet50", "gpt", "branches")


def branches() -> Callable[[], Any]:
    """Return a training step of a net with branches and loops that depend on Tensors."""
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops
    from programs.common import training

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = nn.Dense(256, 256), nn.Dense(256, 256), nn.Dense(256, 10)
            self.norm = nn.LayerNorm((256,))

        def construct(self, x):  # type: ignore[no-untyped-def]
            x = ops.gelu(self.norm(self.first(x)))
            if x.mean() > 0:
                x = x + ops.tanh(self.second(x)) * ops.sigmoid(x)
            else:
                x = ops.softmax(x - self.second(x), -1)
            turns = ms.Tensor(0)
            while turns < 3:
                x = ops.gelu(self.norm(x + ops.sin(x)))
                turns = turns + 1
            return self.last(x)

    net, rows = Net(), np.random.RandomState(0)
    x, y = ms.Tensor(rows.randn(512, 256).astype(np.float32)), ms.Tensor(rows.randn(512, 10).astype(np.float32))
    return training(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), x, y)


def first_step(name: str, folder: str) -> None:
    """Print the seconds of the first step."""
    import torchspore

    torchspore.install()
    import mindspore as ms

    ms.set_context(
        mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"}, enable_compile_cache=True, compile_cache_path=folder,
    )
    ms.set_seed(1)
    step = branches() if name == "branches" else importlib.import_module(f"programs.{name}").step()
    started = time.perf_counter()
    loss = step()
    print(time.perf_counter() - started, float(loss.asnumpy().sum()))


def run(name: str, folder: str) -> tuple[float, float, int]:
    """Run a process; return the seconds to the first step, its loss, and the number of kernels that it compiled."""
    import os

    process = subprocess.run(
        [sys.executable, __file__, "--child", name, folder], capture_output=True, text=True, check=True,
        env={**os.environ, "TORCHSPORE_LOG": "graph", "TORCHSPORE_WAIT": "1", "GLOG_v": "3"},
    )
    seconds, loss = process.stdout.split()
    return float(seconds), float(loss), process.stderr.count("] compile: a kernel")


def main() -> None:
    if "--child" in sys.argv:
        first_step(*sys.argv[2:])
        return
    print(f"{'':9} first process        second process       times faster")
    for name in sys.argv[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            cold, loss, cold_kernels = run(name, folder)
            warm, warm_loss, warm_kernels = run(name, folder)
        verdict = "equal losses" if abs(loss - warm_loss) <= 1e-5 * abs(loss) else f"LOSSES DIFFER: {loss} {warm_loss}"
        kernels = f"{cold_kernels:3} kernels  {warm:6.1f} s, {warm_kernels:3} kernels"
        print(f"{name:9} {cold:6.1f} s, {kernels}  {cold / warm:5.1f}x  {verdict}", flush=True)


if __name__ == "__main__":
    main()
