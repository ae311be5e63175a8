"""Primitives whose functions are those of mint: ELU, stacking, and one-hot rows."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.arguments import several
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op(primitive="EluExt", init=("alpha",))
def _elu_ext(input: T, alpha: float = 1.0) -> T:
    """The number itself above 0, and alpha * (exp(x) - 1) below."""
    return torch.nn.functional.elu(input, alpha)


@op(primitive="StackExt", init=("dim",))
def _stack_ext(tensors: Any, dim: int = 0) -> T:
    """Tensors of one shape, one after the other along a new axis."""
    return torch.stack(several(tensors), dim)


@op(primitive="OneHotExt", init=("axis",))
def _one_hot_ext(tensor: T, num_classes: int, on_value: T, off_value: T, axis: int = -1) -> T:
    """`on_value` at the position along a new `axis` that each number names, `off_value` elsewhere; numbers outside name none."""
    axis = axis % (tensor.ndim + 1)
    count = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    positions = torch.arange(count, device=tensor.device, dtype=tensor.dtype)
    matches = tensor.unsqueeze(axis) == positions.reshape((-1,) + (1,) * (tensor.ndim - axis))
    return torch.where(matches, on_value, off_value)
