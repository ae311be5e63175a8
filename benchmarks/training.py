"""What the training benchmarks share: torchspore in both modes, torch as people write it, torch.compile, real MindSpore."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import turns

import torchspore


def torch_step(model: torch.nn.Module, loss: Callable[..., torch.Tensor], optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    """One training step as people write it by hand."""

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss(model(batch[0]), batch[1])
        value.backward()
        optimizer.step()
        return value

    return step


def compiled_step(model: torch.nn.Module, loss: Callable[..., torch.Tensor], optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    """The same with the forward and backward pass compiled by torch.compile."""
    forward = torch.compile(lambda x, y: loss(model(x), y))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = forward(*batch)
        value.backward()
        optimizer.step()
        return value

    return step


def spore_step(program: str, mode: int) -> Callable[[], Any]:
    """One training step of `programs/PROGRAM.py` by torchspore, in one mode."""
    torchspore.install()
    import mindspore

    make = importlib.import_module(f"programs.{program}").step
    mindspore.set_context(mode=mode)
    own = make()

    def step() -> Any:
        mindspore.set_context(mode=mode)
        return own()

    return step


def run(program: str, title: str, make: Callable[..., tuple[Any, ...]]) -> None:
    """Measures all contenders. `make(fused)` gives torch's (model, loss, optimizer, batch)."""
    options = turns.arguments(title)
    device = {"CPU": "cpu", "GPU": "cuda", "Ascend": "npu"}[options.device]
    torch.manual_seed(0)

    def on_device(fused: bool) -> tuple[Any, ...]:
        with torch.device(device):
            return make(fused)

    def timed(step: Callable[[], Any]) -> Callable[[int], float]:
        def waiting() -> Any:
            step()
            torch.accelerator.synchronize()

        return turns.here(waiting if device != "cpu" else step)

    contenders = {"torch eager": timed(torch_step(*on_device(False)))}
    if options.device != "CPU":
        torchspore.install()
        import mindspore

        mindspore.set_context(device_target=options.device)
    contenders["torch eager, fused optimizer"] = timed(torch_step(*on_device(True)))
    if not options.no_compile:
        contenders["torch.compile"] = timed(compiled_step(*on_device(False)))
    contenders["torchspore PyNative"] = timed(spore_step(program, 1))
    contenders["torchspore Graph O0"] = timed(spore_step(program, 0))
    away = []
    if options.oracle:
        for mode in ("pynative", "graph"):
            away.append(turns.Elsewhere(options.oracle, program, mode))
            contenders[f"MindSpore 2.10 {mode}"] = away[-1].seconds
    turns.compare(title, contenders, "torch eager", options.seconds, options.rounds)
    for process in away:
        process.close()
