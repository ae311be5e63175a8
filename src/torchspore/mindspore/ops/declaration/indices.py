"""Integer indexes. Truncating a real number would select another element than the program means, so it is refused."""
from __future__ import annotations

from collections.abc import Callable

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH

T = torch.Tensor
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_WIDE = (torch.uint16, torch.uint32, torch.uint64)


def as_index(indices: T) -> T:
    """Return indexes as int64. Raises TypeError for real and complex numbers, bools and unsigned integers wider than uint8."""
    if indices.dtype not in _INTEGERS:
        raise TypeError(f"expected integers as indexes, got {FROM_TORCH[indices.dtype]}.\n\nhint: write indices.astype(mindspore.int32).")
    return indices.long()


def as_index_or_mask(indices: T) -> T:
    """Return indexes in brackets as int64, including unsigned integers of any width; bools stay bools.

    Raises TypeError for real and complex numbers.
    """
    if indices.dtype in _WIDE:
        return indices.long()
    return indices if indices.dtype is torch.bool else as_index(indices)


def normalized_axis(axis: int, ndim: int) -> int:
    """Return an axis counted from the front. Raises ValueError if a Tensor with `ndim` axes does not have it."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"expected an axis from {-ndim} to {ndim - 1}, got {axis}.")
    return int(axis) % ndim


def counted(pick: Callable[[T], T], indices: T, length: int) -> T:
    """Return `pick(indices)`, with negative indexes counted from the end.

    torch's kernels refuse negative indexes. Few programs have any, so on the CPU this handles them only after a refusal. The kernels of an
    accelerator run later, and a refusal there ends all work of the process on the device.
    """
    if indices.device.type != "cpu":
        return pick(torch.where(indices < 0, indices + length, indices))
    try:
        return pick(indices)
    except (RuntimeError, IndexError):
        below = indices < 0
        if not below.any() or ((indices < -length) | (indices >= length)).any():
            raise
        return pick(torch.where(below, indices + length, indices))
