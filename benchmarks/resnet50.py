"""ResNet-50 written by hand in torch, for benchmarks/graph.py."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a way around them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, width * 4, 1, bias=False), nn.BatchNorm2d(width * 4)
        self.down = None
        if stride != 1 or inputs != width * 4:
            self.down = nn.Sequential(nn.Conv2d(inputs, width * 4, 1, stride, bias=False), nn.BatchNorm2d(width * 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        around = x if self.down is None else self.down(x)
        x = torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))
        return torch.relu(self.bn3(self.conv3(x)) + around)


def make(fused: bool, size: int = 224, batch: int = 8) -> tuple[Any, ...]:
    """Return model, loss, optimizer, batch."""
    blocks: list[nn.Module] = []
    inputs = 64
    for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for index in range(count):
            blocks.append(Bottleneck(inputs, width, 2 if stage and not index else 1))
            inputs = width * 4
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, fused=fused or None)
    return model, nn.CrossEntropyLoss(), optimizer, (torch.rand(batch, 3, size, size), torch.randint(0, 1000, (batch,)))
