"""Lookups in tables whose rows the servers of a parameter server job store."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.autograd.grad import taken_rows
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.common.remote_parameters import lookup
from torchspore.mindspore.ops.declaration.indices import as_index


def remote_rows(table: Any, indices: Any, is_zero_outside: bool = False) -> Any:
    """Return the rows of a remote table at `indices` (...); the gradient has only these rows.

    Indices outside the table give zeros if `is_zero_outside`, otherwise they raise IndexError.
    """
    flat = as_index(raw(indices)).reshape(-1)
    if not is_zero_outside:
        out = taken_rows(raw(table), flat, lookup(table, flat))
        return wrap(out.reshape(*indices.shape, *table.shape[1:]))
    is_inside = (flat >= 0) & (flat < table.shape[0])
    inner = torch.where(is_inside, flat, torch.zeros_like(flat))
    out = taken_rows(raw(table), inner, lookup(table, inner))
    out = torch.where(is_inside.reshape(-1, *[1] * (out.ndim - 1)), out, torch.zeros_like(out))
    return wrap(out.reshape(*indices.shape, *table.shape[1:]))
