"""Helpers of `mindspore.scipy` that programs import."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.common.tensor import Tensor
from torchspore.public_names import missing

__getattr__ = missing(__name__)


def _nd_transpose(a: Tensor) -> Any:
    """Return `a` (..., M, N) with its last two axes exchanged. Raises ValueError for fewer than two axes."""
    if a.ndim < 2:
        raise ValueError(f"_nd_transpose(a): expected at least two axes, got shape {a.shape}.")
    return a.swapaxes(-1, -2)  # type: ignore[attr-defined]
