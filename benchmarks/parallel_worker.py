#!/usr/bin/env python3
"""One rank of a contender of parallel.py: runs the steps that standard input requests; answers with seconds, also of the first step."""
from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import turns

ELEMENTS = 1 << 20
"""Of the sum over processes: 4 MiB."""


def step_by_torchspore(what: str, how: str) -> Callable[[], Any]:
    """Return a step by torchspore: `how` is PyNative, graph, level1 or level2."""
    import torchspore

    torchspore.install()
    import mindspore as ms
    import numpy as np
    from mindspore.communication import init

    ms.set_context(mode=0 if how == "graph" else 1)
    started = time.perf_counter()
    init()
    seconds = time.perf_counter() - started
    if what == "init":
        return lambda: seconds
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    if how.startswith("level"):
        ms.set_auto_parallel_context(enable_parallel_optimizer=True, parallel_optimizer_config={"optimizer_level": how})
    if what == "sum":
        summed, x = ms.ops.AllReduce(), ms.Tensor(np.ones(ELEMENTS, np.float32))
        return lambda: summed(x)
    return importlib.import_module(f"programs.{what}").step()


def step_by_torch(what: str, how: str) -> Callable[[], Any]:
    """Return a step by torch: `how` is gloo, DDP or FSDP2."""
    import torch
    from handwritten import torch_step

    started = time.perf_counter()
    torch.distributed.init_process_group("gloo")
    seconds = time.perf_counter() - started
    if what == "init":
        return lambda: seconds
    torch.manual_seed(0)
    if what == "sum":
        x = torch.ones(ELEMENTS)

        def summed() -> torch.Tensor:
            out = x.clone()
            torch.distributed.all_reduce(out)
            return out

        return summed
    model, loss, optimizer, batch = importlib.import_module(what).make(False)
    if how == "FSDP2":
        from torch.distributed.fsdp import fully_shard

        for part in getattr(model, "layers", []):
            fully_shard(part)
        fully_shard(model)
        group = {key: value for key, value in optimizer.param_groups[0].items() if key in ("lr", "momentum", "betas", "eps", "fused")}
        optimizer = type(optimizer)(model.parameters(), **group)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    return torch_step(model, loss, optimizer, batch)


def main() -> None:
    """Serve steps; arguments: lenet, resnet18, gpt, sum or init, and the contender."""
    what, how = sys.argv[1:]
    step = (step_by_torch if how in ("gloo", "DDP", "FSDP2") else step_by_torchspore)(what, how)
    if what == "init":
        print(f"answer {step()}", flush=True)
        return
    turns.serve(step, lambda out: out)


if __name__ == "__main__":
    main()
