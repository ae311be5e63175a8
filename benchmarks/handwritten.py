"""Training steps in torch, as users write them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Loss = Callable[..., torch.Tensor]


def torch_step(model: torch.nn.Module, loss: Loss, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    """Return an eager training step."""

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss(model(batch[0]), batch[1])
        value.backward()
        optimizer.step()
        return value

    return step


def compiled_step(
    model: torch.nn.Module, loss: Loss, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, ...],
) -> Callable[[], Any]:
    """Return a training step whose forward and backward pass torch.compile compiles."""
    forward = torch.compile(lambda x, y: loss(model(x), y))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = forward(*batch)
        value.backward()
        optimizer.step()
        return value

    return step


def inference(model: torch.nn.Module, x: torch.Tensor, compiled: bool) -> Callable[[], Any]:
    """Return a forward pass without gradients."""
    model.eval()
    forward = torch.compile(model) if compiled else model

    def step() -> torch.Tensor:
        with torch.no_grad():
            return forward(x)

    return step
