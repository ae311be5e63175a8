#!/usr/bin/env python3
"""Training step of LeNet-5. `python benchmarks/lenet.py [--oracle PYTHON]`."""
from __future__ import annotations

from typing import Any

import torch
import training
from torch import nn


def make(fused: bool) -> tuple[Any, ...]:
    """Return LeNet-5 written by hand in torch: model, loss, optimizer, batch."""
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, fused=fused or None)
    return model, nn.CrossEntropyLoss(), optimizer, (torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,)))


if __name__ == "__main__":
    training.run("lenet", "LeNet-5, batch 64, training step", make)
