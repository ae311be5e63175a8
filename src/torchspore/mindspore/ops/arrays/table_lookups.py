"""Table lookups whose gradients are rows, and the effect of `enable_sparse` on plain gathers."""
from __future__ import annotations

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.autograd.grad import taken_rows
from torchspore.engine.tensors import tensor as engine
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index, normalized_axis

T = torch.Tensor
_APPLIED = Outcome.applied("gradients of gathers along axis 0 of a Parameter are RowTensors, and supporting optimizers use their rows")


def rows(params: T, indices: T) -> T:
    """The rows of `params` at `indices` (n,), with a sparse gradient under `enable_sparse`, else with one of the table's size."""
    if engine.active and STORE.get("enable_sparse"):
        effects.report("enable_sparse", _APPLIED)
        return taken_rows(params, indices.long())
    return torch.index_select(params, 0, indices)


@op(primitive="SparseGatherV2")
def _sparse_gather(input_params: T, input_indices: T, axis: int) -> T:
    """The slices along `axis` at `input_indices`; along axis 0 of a Parameter, the gradient is a RowTensor."""
    flat = as_index(input_indices).reshape(-1)
    axis = normalized_axis(int(axis), input_params.ndim)
    out = taken_rows(input_params, flat) if axis == 0 else torch.index_select(input_params, axis, flat)
    return out.reshape(*input_params.shape[:axis], *input_indices.shape, *input_params.shape[axis + 1:])


@op(primitive="EmbeddingLookup")
def _embedding_lookup(input_params: T, input_indices: T, offset: int) -> T:
    """The rows at `input_indices - offset`, zeros for rows outside the table; the gradient is a RowTensor."""
    flat = as_index(input_indices).reshape(-1) - int(offset)
    inside = (flat >= 0) & (flat < input_params.shape[0])
    # Rows outside the table read row 0 times 0, so that shapes are known before anything runs.
    out = taken_rows(input_params, torch.where(inside, flat, torch.zeros_like(flat)))
    out = torch.where(inside.reshape(-1, *[1] * (out.ndim - 1)), out, torch.zeros_like(out))
    return out.reshape(*input_indices.shape, *input_params.shape[1:])
