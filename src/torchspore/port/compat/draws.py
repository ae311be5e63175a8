"""Random numbers and positions, repeated and distinct values. The output of a port contains the text of those that it calls."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def uniform(shape: Sequence[int], minval: Any, maxval: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniform numbers in [minval, maxval)."""
    low, high = torch.as_tensor(minval), torch.as_tensor(maxval)
    numbers = low + torch.rand(shape, device=low.device) * (high - low)
    return numbers.to(dtype) if dtype.is_floating_point else numbers.floor().to(dtype)


def random_order(n: Any, length: int, pad: int = -1, dtype: torch.dtype = torch.int32) -> Tensor:
    """The integers below n in random order, and `pad` up to a length."""
    return F.pad(torch.randperm(int(n)), (0, length - int(n)), value=pad).to(dtype)


def choose_randomly(mask: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Positions of true elements in random order, zeros where there are fewer than `count`; which of them are valid."""
    flat = mask.reshape(-1)
    order = torch.where(flat, torch.rand(flat.shape[0], device=flat.device), 2.0).argsort()[:count]
    is_valid = flat[order]
    order, is_valid = (F.pad(values, (0, count - order.shape[0])) for values in (torch.where(is_valid, order, 0), is_valid))
    return torch.stack(torch.unravel_index(order, mask.shape), -1), is_valid


def unique(x: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct values in the order of their first occurrence, and the position of each element's value."""
    values, inverse = torch.unique(x, return_inverse=True)
    positions = torch.arange(x.numel(), device=x.device)
    first = torch.full_like(values, x.numel(), dtype=torch.int64).scatter_reduce(0, inverse.reshape(-1), positions, "amin")
    order = first.argsort()
    return values[order], order.argsort()[inverse]


def repeat_values(x: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Each value several times: one number of times, or one for each value."""
    counts = repeats if isinstance(repeats, int) else torch.as_tensor(repeats, device=x.device)
    return torch.repeat_interleave(x, counts, dim=axis)
