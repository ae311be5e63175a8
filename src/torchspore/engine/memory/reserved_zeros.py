"""Zeros that take memory where they are written: the system reserves the addresses and provides a page at its first write."""
from __future__ import annotations

import mmap
from math import prod
from typing import Any

import torch

SMALLEST = 1 << 20
"""The smallest number of bytes for which a page-aligned block pays."""


def zeros_like(t: torch.Tensor) -> torch.Tensor:
    """Return zeros of the shape and dtype of `t` in reserved memory; `t` itself if it is small, or not on the CPU."""
    flags = getattr(mmap, "MAP_PRIVATE", None)
    if type(t) is not torch.Tensor or t.device.type != "cpu" or t.nbytes < SMALLEST or flags is None or not t.is_contiguous():
        return t
    memory: Any = mmap.mmap(-1, t.nbytes, flags=flags | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=t.dtype, count=prod(t.shape)).view(t.shape)
