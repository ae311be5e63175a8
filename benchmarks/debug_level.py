#!/usr/bin/env python3
"""The cost of `debug_level`: captures of a training step with RELEASE and DEBUG in turns.

    python benchmarks/debug_level.py
"""
from __future__ import annotations

import statistics
import time

import torchspore

torchspore.install()

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn, ops  # noqa: E402

BLOCKS, ROUNDS = 12, 9


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Dense(16, 64), nn.Dense(64, 16), nn.LayerNorm((16,))

    def construct(self, x):  # type: ignore[no-untyped-def]
        return x + self.second(ops.gelu(self.first(self.norm(x))))


def capture(level: int) -> float:
    """Return the seconds of the capture of a new training step."""
    ms.set_context(mode=ms.GRAPH_MODE, debug_level=level)
    body = nn.SequentialCell(*[Block() for _ in range(BLOCKS)])
    net = nn.WithLossCell(body, nn.MSELoss())
    step = nn.TrainOneStepCell(net, nn.Adam(body.trainable_params())).set_train()
    x = ms.Tensor(np.ones((4, 16), np.float32))
    started = time.perf_counter()
    step.compile(x, x)
    return time.perf_counter() - started


def main() -> None:
    capture(ms.RELEASE)
    taken: dict[int, list[float]] = {ms.RELEASE: [], ms.DEBUG: []}
    for _ in range(ROUNDS):
        for level, seconds in taken.items():
            seconds.append(capture(level))
    release, debug = taken[ms.RELEASE], taken[ms.DEBUG]
    print(f"a training step of {BLOCKS} blocks, median of {ROUNDS} captures (least .. most)")
    for name, seconds in (("RELEASE", release), ("DEBUG", debug)):
        print(f"{name:8} {statistics.median(seconds):.3f} s ({min(seconds):.3f} .. {max(seconds):.3f})")
    ratios = [d / r for r, d in zip(release, debug)]
    print(f"DEBUG takes {statistics.median(ratios):.2f}x of RELEASE ({min(ratios):.2f} .. {max(ratios):.2f})")


if __name__ == "__main__":
    main()
