"""BERT-base's encoder written by hand in torch, for benchmarks/graph.py."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Layer(nn.Module):
    """Attention and an MLP, each added and normalised after."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's result."""
        batch, length, width = x.shape
        q, k, v = (part(x).reshape(batch, length, self.heads, self.each).transpose(1, 2) for part in (self.query, self.key, self.value))
        scores = torch.softmax(q @ k.transpose(-1, -2) * (1 / self.each**0.5), -1)
        x = self.norm1(x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width)))
        return self.norm2(x + self.mlp(x))


class Bert(nn.Module):
    """Token numbers to hidden states."""

    def __init__(self, words: int = 30522, length: int = 128, width: int = 768, heads: int = 12, layers: int = 12) -> None:
        super().__init__()
        self.token, self.place, self.norm = nn.Embedding(words, width), nn.Embedding(length, width), nn.LayerNorm(width, 1e-12)
        self.register_buffer("places", torch.arange(length))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(batch, length) gives (batch, length, width)."""
        return self.layers(self.norm(self.token(ids) + self.place(self.places)))


def make(fused: bool) -> tuple[Any, ...]:
    """Model, no loss, no optimizer, batch."""
    return Bert(), None, None, (torch.randint(0, 30522, (4, 128)),)
