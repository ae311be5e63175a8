#!/usr/bin/env python3
"""One rank of a contender of tensor_parallel.py: `mlp` or `gpt`, by `torch` (written by hand) or by `semi-auto`."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import turns
from tensor_parallel_sizes import LENGTH, MLP_BATCH, MLP_DEPTH, MLP_WIDTH, WORDS


def batch(what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the data of a step, equal on all ranks."""
    random = np.random.default_rng(0)
    if what == "gpt":
        return random.integers(0, WORDS, (8, LENGTH)).astype(np.int32), random.integers(0, WORDS, 8 * LENGTH).astype(np.int32)
    x, y = random.standard_normal((2, MLP_BATCH, MLP_WIDTH)).astype(np.float32)
    return x, y


def step_by_torch(what: str) -> Callable[[], Any]:
    """Return the step written by hand in torch."""
    import torch

    torch.distributed.init_process_group("gloo")
    import tensor_parallel_torch as nets

    torch.manual_seed(0)
    x, y = map(torch.from_numpy, batch(what))
    return nets.step(nets.Gpt() if what == "gpt" else nets.Mlp(), x, y.long() if what == "gpt" else y)


def step_by_semi_auto(what: str) -> Callable[[], Any]:
    """Return the step of one device with strategies, split over the ranks."""
    import planning
    from mindspore.communication import get_group_size, init
    from planning import ms, nn, ops

    init()
    ranks = get_group_size()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    ms.set_seed(0)

    class Mlp(nn.Cell):
        """Pairs of layers: columns, then rows."""

        def __init__(self) -> None:
            super().__init__()
            columns, rows = (((1, 1), (1, ranks)), ((1, ranks), (ranks,))), (((1, ranks), (ranks, 1)), ((1, 1), (1,)))
            self.ups = nn.CellList([planning.Linear(MLP_WIDTH, 4 * MLP_WIDTH, *columns) for _ in range(MLP_DEPTH)])
            self.downs = nn.CellList([planning.Linear(4 * MLP_WIDTH, MLP_WIDTH, *rows) for _ in range(MLP_DEPTH)])
            self.loss = nn.MSELoss()

        def construct(self, x: Any, y: Any) -> Any:
            """Return the loss."""
            for up, down in zip(self.ups, self.downs):
                x = down(ops.relu(up(x)))
            return self.loss(x, y)

    net = planning.Gpt(1, ranks) if what == "gpt" else Mlp()
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train()
    x, y = map(ms.Tensor, batch(what))
    return lambda: step(x, y)


if __name__ == "__main__":
    what, how = sys.argv[1:]
    turns.serve(step_by_torch(what) if how == "torch" else step_by_semi_auto(what), lambda out: out)
