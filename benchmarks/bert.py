"""BERT-base written by hand in torch: the encoder for benchmarks/graph.py, and a classifier on it for benchmarks/gpu.py."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Layer(nn.Module):
    """Attention and an MLP, each added and normalised after."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's result."""
        batch, length, width = x.shape
        shape = batch, length, self.heads, self.head_width
        q, k, v = (part(x).reshape(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        scores = torch.softmax(q @ k.transpose(-1, -2) * (1 / self.head_width**0.5), -1)
        x = self.norm1(x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width)))
        return self.norm2(x + self.mlp(x))


class Bert(nn.Module):
    """Token numbers to hidden states."""

    def __init__(self, words: int = 30522, length: int = 128, width: int = 768, heads: int = 12, layers: int = 12) -> None:
        super().__init__()
        self.token, self.position, self.norm = nn.Embedding(words, width), nn.Embedding(length, width), nn.LayerNorm(width, 1e-12)
        self.register_buffer("indices", torch.arange(length))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return hidden states (batch, length, width) for ids (batch, length)."""
        return self.layers(self.norm(self.token(ids) + self.position(self.indices)))


class Classifier(nn.Module):
    """The encoder and two scores from the first token."""

    def __init__(self, **sizes: int) -> None:
        super().__init__()
        self.encoder = Bert(**sizes)
        self.head = nn.Linear(sizes.get("width", 768), 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores (batch, 2) for ids (batch, length)."""
        return self.head(self.encoder(ids)[:, 0])


def make(fused: bool, batch: int = 4) -> tuple[Any, ...]:
    """Return model, no loss, no optimizer, batch."""
    return Bert(), None, None, (torch.randint(0, 30522, (batch, 128)),)


def classifier(fused: bool, batch: int = 8, **sizes: int) -> tuple[Any, ...]:
    """Return model, loss, optimizer, batch of the classifier."""
    model = Classifier(**sizes)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=fused or None)
    ids = torch.randint(0, sizes.get("words", 30522), (batch, sizes.get("length", 128)))
    return model, nn.CrossEntropyLoss(), optimizer, (ids, torch.randint(0, 2, (batch,)))
