"""Tensors that stand for values in other processes, and gradients in the form in which they travel."""
from __future__ import annotations

import torch

from torchspore.engine.formulas.row_gradients import RowsBase
from torchspore.engine.tensors.delayed_values import DelayedValue, is_delayed
from torchspore.engine.tensors.tensor import TensorBase, raw


def unreadable(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the shape of `t` with the memory of one element: NaN, which spreads visibly where an operator reads it.

    Integers have their smallest value.
    """
    number = float("nan") if t.is_floating_point() else False if t.dtype == torch.bool else torch.iinfo(t.dtype).min
    return torch.full((1,) * t.ndim, number, dtype=t.dtype, device=t.device).expand(t.shape)


def released(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the shape of `t` with the memory of one element, for a value that nothing reads here."""
    return torch.zeros((1,) * t.ndim, dtype=t.dtype, device=t.device).expand(t.shape)


def has_all_rows(gradient: TensorBase) -> bool:
    """Return whether a table's gradient is dense."""
    return not isinstance(gradient, RowsBase)


def rows_between(t: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Return rows of a tensor in host memory; of initial values that are not drawn yet, only these rows are drawn."""
    if isinstance(t, DelayedValue) and is_delayed(t):
        return t.initial.draw([slice(start, stop), *(slice(0, size) for size in t.shape[1:])]).cpu()
    return to_host(t[start:stop])


def rows_of(gradient: TensorBase, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the row numbers (n,) int64 and rows (n, ...) of a table's gradient; all rows of a dense one."""
    if not isinstance(gradient, RowsBase):
        rows = raw(gradient)
        return torch.arange(rows.shape[0], device=rows.device), rows.to(dtype)
    indices, rows = (raw(part) for part in gradient.parts())
    return indices.long(), rows.to(dtype)


def to_host(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor in host memory, detached from gradients."""
    return t.detach().cpu()
