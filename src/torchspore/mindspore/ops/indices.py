"""Indexes: whole numbers that name elements. Cutting a real number to one would name another element than the program means."""
from __future__ import annotations

from collections.abc import Callable

import torch

from torchspore.engine.core.dtypes import FROM_TORCH

T = torch.Tensor
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_WIDE = (torch.uint16, torch.uint32, torch.uint64)


def as_index(indices: T) -> T:
    """Indexes as int64. Raises TypeError for real and complex numbers, truth values and unsigned integers beyond uint8."""
    if indices.dtype not in _INTEGERS:
        raise TypeError(f"expected integers as indexes, got {FROM_TORCH[indices.dtype]}.\n\nhint: write indices.astype(mindspore.int32).")
    return indices.long()


def as_index_or_mask(indices: T) -> T:
    """Indexes in brackets as int64, unsigned integers of any width among them, or truth values as they are.

    Raises TypeError for real and complex numbers.
    """
    if indices.dtype in _WIDE:
        return indices.long()
    return indices if indices.dtype is torch.bool else as_index(indices)


def axis_within(axis: int, ndim: int) -> int:
    """An axis counted from the front. Raises ValueError where a Tensor of so many axes does not have it."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"expected an axis from {-ndim} to {ndim - 1}, got {axis}.")
    return int(axis) % ndim


def counted(pick: Callable[[T], T], indices: T, length: int) -> T:
    """`pick(indices)`, where negative indexes count from the end.

    torch's kernels refuse those, and hardly a program has them: only then are they looked for.
    """
    try:
        return pick(indices)
    except (RuntimeError, IndexError):
        below = indices < 0
        if not below.any() or ((indices < -length) | (indices >= length)).any():
            raise
        return pick(torch.where(below, indices + length, indices))
