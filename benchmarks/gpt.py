#!/usr/bin/env python3
"""Training step of a small GPT. `python benchmarks/gpt.py [--oracle PYTHON]`."""
from __future__ import annotations

from typing import Any

import torch
import training
from torch import nn


class Layer(nn.Module):
    """Causal attention and an MLP, each normalised before and added after."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.triu(torch.full((length, length), -1e9), 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's result."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(batch, length, 3 * self.heads, self.head_width).transpose(1, 2).chunk(3, 1)
        scores = q @ k.transpose(-1, -2) * (1 / self.head_width**0.5) + self.mask
        x = x + self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Scores of the next word for each token."""

    def __init__(self, words: int = 1000, length: int = 128, width: int = 256, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.words = words
        self.token, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.register_buffer("indices", torch.arange(length))
        self.layers = nn.Sequential(*[Layer(width, heads, length) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores (batch * length, words) for ids (batch, length)."""
        x = self.token(ids) + self.position(self.indices)
        return self.head(self.norm(self.layers(x))).reshape(-1, self.words)


def make(
    fused: bool, words: int = 1000, length: int = 128, width: int = 256, heads: int = 4, layers: int = 4, batch: int = 8,
) -> tuple[Any, ...]:
    """Return the GPT written by hand in torch: model, loss, optimizer, batch."""
    model = GPT(words, length, width, heads, layers)
    ids = torch.randint(0, words, (batch, length + 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=fused or None)
    return model, nn.CrossEntropyLoss(), optimizer, (ids[:, :-1], ids[:, 1:].reshape(-1))


if __name__ == "__main__":
    training.run("gpt", "GPT of four layers, width 256, batch 8 x 128, training step", make)
