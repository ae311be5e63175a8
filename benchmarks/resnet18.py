#!/usr/bin/env python3
"""Training step of ResNet-18 on 64x64. `python benchmarks/resnet18.py [--oracle PYTHON]`."""
from __future__ import annotations

from typing import Any

import torch
import training
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        around = x if self.down is None else self.down(x)
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + around)


def make(fused: bool, size: int = 64, batch: int = 16) -> tuple[Any, ...]:
    """Return ResNet-18 written by hand in torch: model, loss, optimizer, batch."""
    blocks: list[nn.Module] = []
    inputs = 64
    for stage, outputs in enumerate((64, 128, 256, 512)):
        blocks += [Block(inputs, outputs, 2 if stage else 1), Block(outputs, outputs, 1)]
        inputs = outputs
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, fused=fused or None)
    return model, nn.CrossEntropyLoss(), optimizer, (torch.rand(batch, 3, size, size), torch.randint(0, 10, (batch,)))


if __name__ == "__main__":
    training.run("resnet18", "ResNet-18 on 64x64, batch 16, training step", make)
