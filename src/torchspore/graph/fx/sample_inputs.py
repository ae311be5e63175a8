"""Tensors with values that are made up, to try and measure graphs with."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def filled(like: torch.Tensor, fill: Callable[[torch.Tensor], Any], dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor of the shape and strides of another. `fill` writes into its memory, of which elements may share some (`expand`)."""
    memory = torch.empty(extent(like), dtype=dtype or like.dtype, device=like.device)
    fill(memory)
    return memory.as_strided(like.shape, like.stride())


def extent(t: torch.Tensor) -> int:
    """Return the number of elements from the first to the last one of a tensor in memory."""
    return 1 + sum((size - 1) * stride for size, stride in zip(t.shape, t.stride())) if t.numel() else 0
