"""Contenders of the training benchmarks: torchspore in both modes, plain torch, torch.compile, real MindSpore."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import turns
from handwritten import compiled_step, torch_step

import torchspore


def spore_step(program: str, mode: int) -> Callable[[], Any]:
    """Return a training step of `programs/PROGRAM.py` by torchspore, in one mode."""
    torchspore.install()
    import mindspore

    make = importlib.import_module(f"programs.{program}").step
    mindspore.set_context(mode=mode)
    run_step = make()

    def step() -> Any:
        mindspore.set_context(mode=mode)
        return run_step()

    return step


def run(program: str, title: str, make: Callable[..., tuple[Any, ...]]) -> None:
    """Measure all contenders. `make(fused)` returns torch's (model, loss, optimizer, batch)."""
    options = turns.arguments(title)
    device = {"CPU": "cpu", "GPU": "cuda", "Ascend": "npu"}[options.device]
    torch.manual_seed(0)
    importlib.import_module("torchspore.engine")

    def on_device(fused: bool) -> tuple[Any, ...]:
        with torch.device(device):
            return make(fused)

    def timed(step: Callable[[], Any]) -> Callable[[int], float]:
        def waiting() -> Any:
            step()
            torch.accelerator.synchronize()

        return turns.timer(waiting if device != "cpu" else step)

    # The denominator runs in a separate process, because torchspore's engine makes this process retain freed memory.
    workers = [turns.Worker(sys.executable, "torch_worker.py", Path(sys.argv[0]).stem, device)]
    contenders = {"torch eager": workers[0].seconds}
    if options.device != "CPU":
        torchspore.install()
        import mindspore

        mindspore.set_context(device_target=options.device)
    contenders["torch eager, same malloc thresholds"] = timed(torch_step(*on_device(False)))
    contenders["torch eager, same, fused optimizer"] = timed(torch_step(*on_device(True)))
    if not options.no_compile:
        contenders["torch.compile"] = timed(compiled_step(*on_device(False)))
    contenders["torchspore PyNative"] = timed(spore_step(program, 1))
    contenders["torchspore Graph O0"] = timed(spore_step(program, 0))
    if options.oracle:
        for mode in ("pynative", "graph"):
            workers.append(turns.Worker(options.oracle, "oracle_worker.py", program, mode))
            contenders[f"MindSpore 2.10 {mode}"] = workers[-1].seconds
    turns.compare(title, contenders, "torch eager", options.seconds, options.rounds)
    for process in workers:
        process.close()
