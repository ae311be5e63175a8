#!/usr/bin/env python3
"""Training step of an MLP. `python benchmarks/mlp.py [--oracle PYTHON]`."""
from __future__ import annotations

from typing import Any

import torch
import training
from torch import nn


def make(fused: bool) -> tuple[Any, ...]:
    """Return the MLP written by hand in torch: model, loss, optimizer, batch."""
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, fused=fused or None)
    return model, nn.CrossEntropyLoss(), optimizer, (torch.rand(128, 784), torch.randint(0, 10, (128,)))


if __name__ == "__main__":
    training.run("mlp", "MLP 784-512-512-10, batch 128, training step", make)
