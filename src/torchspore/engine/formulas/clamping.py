"""Clamping with MindSpore's gradient: an element at a bound passes its gradient to the input alone.

Before 2.14, torch does the same. Later versions pass no gradient at a number, and half of it to each side at a tensor.
"""
from __future__ import annotations

import torch

from torchspore.base import versions

T = torch.Tensor
_DIFFERS_AT_BOUNDS = versions.key(torch.__version__) >= (2, 14)


def clamp(x: T, low: T | float | None = None, high: T | float | None = None) -> T:
    """Clamp `x` to the range from `low` to `high`, numbers or tensors that broadcast; `high` is the result where `low` exceeds it."""
    if (low is None and high is None) or not (_DIFFERS_AT_BOUNDS and _records_gradient(x, low, high)):
        if not isinstance(low, T) and not isinstance(high, T):
            return torch.clamp(x, low, high)
        for name, bound in (("min", low), ("max", high)):         # one after the other: at a bound, only x gets a gradient
            x = x if bound is None else torch.clamp(x, **{name: bound})  # type: ignore[arg-type]
        return x
    if low is not None:
        x = torch.where((x < low) | _is_nan(low), low, x)
    if high is not None:
        x = torch.where((x > high) | _is_nan(high), high, x)
    return x


def clamp_numbers(x: T, low: T | float | None = None, high: T | float | None = None) -> T:
    """Clamp `x` as `clamp` does. Raises ValueError for bools, as MindSpore's Clamp does."""
    if any(value.dtype is torch.bool if isinstance(value, T) else isinstance(value, bool) for value in (x, low, high)):
        raise ValueError("For Clamp, the dtype of 'input', 'min' and 'max' must not be bool.")
    return clamp(x, low, high)


def _records_gradient(*values: object) -> bool:
    return torch.is_grad_enabled() and any(isinstance(value, T) and value.requires_grad for value in values)


def _is_nan(bound: T | float) -> T | bool:
    """Return where a bound is NaN: the result is NaN there."""
    return torch.isnan(bound) if isinstance(bound, T) else bound != bound
