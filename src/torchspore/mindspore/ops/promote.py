"""MindSpore's rules for operands of two dtypes, measured on 2.10 (tests/parity/promotion).

They are torch's, but for two things: a 0-d Tensor counts like any other (0-d int64 + int32 is int64) except in `*` and `/`, and
uint16, uint32 and uint64 mix with nothing but themselves and bool.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchspore.engine import device, dtypes
from torchspore.engine.tensor import TensorBase, raw

_WIDE = frozenset({torch.uint16, torch.uint32, torch.uint64})
_WIDENED = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}


def operand(value: Any) -> Any:
    """What torch computes with for one operand: a torch tensor or a Python number. Raises TypeError for anything else."""
    if isinstance(value, TensorBase):
        return raw(value)
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return torch.tensor(value, device=device.current())
    raise TypeError(f"expected a Tensor or a number, got {type(value).__name__} {str(value)[:40]!r}.")


def pair(x: Any, y: Any, scalar_like: bool = False) -> tuple[Any, Any]:
    """Two operands brought to the dtype in which MindSpore computes. `scalar_like` says that 0-d Tensors do not promote others."""
    a, b = operand(x), operand(y)
    if not isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor):
            return torch.as_tensor(a, device=device.current()), b
        return (a, b) if b.dtype not in _WIDE else (_as_wide(a, b.dtype), b)
    if not isinstance(b, torch.Tensor):
        return (a, b) if a.dtype not in _WIDE else (a, _as_wide(b, a.dtype))
    if a.dtype is b.dtype:
        return a, b
    if a.dtype in _WIDE or b.dtype in _WIDE:
        return _mixed_wide(a, b)
    if not scalar_like and (a.ndim == 0) != (b.ndim == 0):
        common = torch.promote_types(a.dtype, b.dtype)
        return a.to(common), b.to(common)
    return a, b


def _as_wide(number: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(number, float):
        raise TypeError(f"{dtypes.FROM_TORCH[dtype]} and a float do not mix; cast the Tensor with astype(mindspore.float32).")
    return torch.tensor(int(number), dtype=dtype, device=device.current())


def _mixed_wide(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if torch.bool in (a.dtype, b.dtype):
        common = b.dtype if a.dtype is torch.bool else a.dtype
        return a.to(common), b.to(common)
    left, right = dtypes.FROM_TORCH[a.dtype], dtypes.FROM_TORCH[b.dtype]
    raise TypeError(f"{left} and {right} do not mix; cast one of them, for example with astype(mindspore.int64).")


def widened(function: Any, a: Any, b: Any) -> torch.Tensor:
    """`function` on unsigned integers that torch can't compute with: widened, computed, narrowed."""
    wide = next(t.dtype for t in (a, b) if isinstance(t, torch.Tensor))
    to = _WIDENED[wide]
    out = function(*(t.to(to) if isinstance(t, torch.Tensor) else t for t in (a, b)))
    return out.to(wide) if out.dtype is to else out


def is_wide(*values: Any) -> bool:
    """Whether an operand is uint16, uint32 or uint64."""
    return any(isinstance(v, torch.Tensor) and v.dtype in _WIDE for v in values)
