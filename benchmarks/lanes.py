#!/usr/bin/env python3
"""`inter_op_parallel_num`: nets with independent operators, in sequence and in lanes.

    python benchmarks/lanes.py [--rounds N] [--seconds S]

Each contender has a separate process: threads of kernels that wait for work keep a core busy for a while.
"""
from __future__ import annotations

import sys
from typing import Any

import turns

NETS = {
    "towers": "Four towers of eight Dense(192), LayerNorm and Tanh, batch 64, {}",
    "sums": "Sorts and running sums of four vectors of 100,000, {}",
}


def main() -> None:
    """Print a table for each net, inference and training step."""
    if sys.argv[1:2] == ["--child"]:
        return serve(*sys.argv[2:])
    options = turns.arguments((__doc__ or "").splitlines()[0])
    for name, title in NETS.items():
        for what in ("inference", "training step") if name == "towers" else ("inference",):
            contenders = {
                f"{shown}": turns.Worker(sys.executable, "lanes.py", "--child", name, what, str(count))
                for shown, count in (("one after the other", 0), ("inter_op_parallel_num=2", 2))
            }
            turns.compare(title.format(what), {shown: p.seconds for shown, p in contenders.items()}, "one after the other", options.seconds,
                          options.rounds)
            for process in contenders.values():
                process.close()
    return None


def serve(name: str, what: str, count: str) -> None:
    """Serve steps of a contender."""
    import torchspore

    torchspore.install()
    import mindspore as ms
    from mindspore import nn, ops

    ms.set_context(mode=ms.GRAPH_MODE, inter_op_parallel_num=int(count))
    net, x = towers(nn, ops) if name == "towers" else sums(nn, ops)
    if what == "inference":
        turns.serve(lambda: net(x), lambda out: out.asnumpy())
    else:
        y = ops.zeros(net(x).shape)
        cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.01, 0.9))
        turns.serve(lambda: cell(x, y), lambda out: out.asnumpy())


def towers(nn: Any, ops: Any) -> tuple[Any, Any]:
    """Return products that one thread computes in a tenth of a millisecond."""

    class Towers(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.towers = nn.CellList([
                nn.SequentialCell([layer for _ in range(8) for layer in (nn.Dense(192, 192), nn.LayerNorm((192,)), nn.Tanh())])
                for _ in range(4)
            ])

        def construct(self, x: Any) -> Any:
            return ops.concat([tower(x) for tower in self.towers], 1)

    return Towers(), ops.ones((64, 192))


def sums(nn: Any, ops: Any) -> tuple[Any, Any]:
    """Return running sums and sorts of long vectors, which torch's kernels compute in one thread."""

    class Sums(nn.Cell):  # type: ignore[misc]
        def construct(self, x: Any) -> Any:
            return sum(ops.cumsum(ops.sort(x * weight)[0], 0) for weight in (1.0, 2.0, -1.0, -2.0))

    return Sums(), ops.linspace(-1.0, 1.0, 100_000)


if __name__ == "__main__":
    main()
