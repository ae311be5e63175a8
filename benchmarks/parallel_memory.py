#!/usr/bin/env python3
"""One rank of parallel.py's `memory`: how much the memory of this process grows in the first steps of a wide net with Adam.

Arguments: `adam`, and DDP, FSDP2, or a mode and a level of the optimizer, such as graph.level2. The answer is in MiB.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAYERS, WIDTH, ROWS, STEPS = 8, 1024, 32, 3
"""Eight weights of 4 MiB, and little else."""


def read_memory(field: str) -> float:
    """Return the memory of this process in MiB: `VmRSS` is the present one, `VmHWM` the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def steps_by_torchspore(how: str) -> Callable[[int], Callable[[], Any]]:
    """Return a function that makes a step of a net of some width by torchspore."""
    import torchspore

    torchspore.install()
    import mindspore as ms
    import numpy as np
    from mindspore import nn
    from mindspore.communication import init

    mode, _, level = how.partition(".")
    ms.set_context(mode=0 if mode == "graph" else 1)
    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    if level:
        config = {"optimizer_level": level, "parallel_optimizer_threshold": 0}
        ms.set_auto_parallel_context(enable_parallel_optimizer=True, parallel_optimizer_config=config)

    def make(width: int) -> Callable[[], Any]:
        net = nn.SequentialCell([nn.SequentialCell([nn.Dense(width, width, has_bias=False), nn.ReLU()]) for _ in range(LAYERS)])
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3)).set_train()
        x = ms.Tensor(np.ones((ROWS, width), np.float32))
        return lambda: float(step(x, x).asnumpy())

    return make


def torch_step(layers: int, width: int, rows: int, how: str) -> Callable[[], float]:
    """Return a step of torch's: FSDP2 (ZeRO 3), FSDP2.keep (gathered weights stay: ZeRO 2), DDP.zero (ZeRO 1), DDP."""
    import torch
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer

    parts = [torch.nn.Sequential(torch.nn.Linear(width, width, bias=False), torch.nn.ReLU()) for _ in range(layers)]
    model: Any = torch.nn.Sequential(*parts)
    if how.startswith("FSDP2"):
        for part in (*parts, model):
            fully_shard(part, reshard_after_forward=how == "FSDP2")
    else:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=how == "DDP.zero")
    optimizer: Any
    if how == "DDP.zero":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    x = torch.ones(rows, width)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def steps_by_torch(how: str) -> Callable[[int], Callable[[], Any]]:
    """Return a function that makes a step of a net of some width by torch."""
    import torch

    torch.distributed.init_process_group("gloo")
    return lambda width: torch_step(LAYERS, width, ROWS, how)


def main() -> None:
    """Train a small net, which loads all modules, then a wide one; print the growth of the peak."""
    make = (steps_by_torch if sys.argv[2] in ("DDP", "FSDP2") else steps_by_torchspore)(sys.argv[2])
    small = make(16)
    for _ in range(STEPS):
        small()
    Path("/proc/self/clear_refs").write_text("5")                 # resets the peak
    before = read_memory("VmRSS")
    step = make(WIDTH)
    for _ in range(STEPS):
        step()
    print(f"answer {read_memory('VmHWM') - before}", flush=True)


if __name__ == "__main__":
    main()
