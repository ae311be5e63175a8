"""Quotients and remainders of integers: the smallest integer divided by -1 wraps. The processor would trap and end the process.

torch's kernels handle this except for 'trunc'; compiled ones (`engine.tensors.tensor.active`) never do.
"""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.creation import constant


def floor_divide(a: Any, b: Any) -> torch.Tensor:
    """The quotient rounded towards minus infinity; torch.floor_divide has no gradient."""
    return _quotient(a, b, "floor") if engine.active else torch.div(a, b, rounding_mode="floor")


def truncate_divide(a: Any, b: Any) -> torch.Tensor:
    """The quotient rounded towards 0."""
    return _quotient(a, b, "trunc")


def remainder(a: Any, b: Any) -> torch.Tensor:
    """The remainder with the sign of the divisor."""
    if _are_truths(a, b):
        return torch.logical_and(_tensor(a, b), torch.logical_not(_tensor(b, a)))
    if not engine.active:
        return torch.remainder(a, b)
    return torch.remainder(_tensor(a, b), _divisor(a, b))                  # torch has no gradient if `a` is a number


def fmod(a: Any, b: Any) -> torch.Tensor:
    """The remainder with the sign of the dividend."""
    if _are_truths(a, b):
        return torch.logical_and(_tensor(a, b), torch.logical_not(_tensor(b, a)))
    return torch.fmod(_tensor(a, b), _divisor(a, b) if engine.active else b)


def _are_truths(a: Any, b: Any) -> bool:
    return all(v.dtype is torch.bool if isinstance(v, torch.Tensor) else v.__class__ is bool for v in (a, b))


def _tensor(a: Any, like: Any) -> torch.Tensor:
    """Return a number as a tensor with the dtype of the other operand."""
    return a if isinstance(a, torch.Tensor) else constant(a, like.device)


def _quotient(a: Any, b: Any, rounding_mode: str) -> torch.Tensor:
    divisor = _divisor(a, b)
    if divisor is b:
        return torch.div(a, b, rounding_mode=rounding_mode)
    if not isinstance(b, torch.Tensor):
        return torch.neg(a)
    quotient = torch.div(a, divisor, rounding_mode=rounding_mode)
    return torch.where(b == -1, -quotient, quotient)


def _divisor(a: Any, b: Any) -> Any:
    """Return `b` with 1 instead of -1 if integers are divided, else `b` itself; the remainder is 0 for both."""
    if not isinstance(b, torch.Tensor):
        return 1 if isinstance(b, int) and b == -1 and _is_signed(a) else b
    if _is_signed(b) and (not isinstance(a, torch.Tensor) or _is_signed(a)) and not isinstance(a, float):
        return torch.where(b == -1, 1, b)
    return b


def _is_signed(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
