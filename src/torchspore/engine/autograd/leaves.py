"""Leaves of torch.autograd: the torch tensors that stand for the inputs and weights of a gradient."""
from __future__ import annotations

from collections.abc import Sequence

import torch

from torchspore.engine.autograd import gradient_hooks, integer_gradients
from torchspore.engine.native import operators
from torchspore.engine.tensors.in_place_versions import renamed
from torchspore.engine.tensors.tensor import TensorBase, frame, raw

_new_leaves = operators.short_path("new_leaves")


def is_differentiable(t: torch.Tensor) -> bool:
    """Return whether gradients of `t` exist: real and complex floating point."""
    return t.dtype.is_floating_point or t.dtype.is_complex


def leaf_of(tensor: TensorBase) -> torch.Tensor:
    """Return a leaf for a Tensor of this thread; for integers, a tensor with a shadow."""
    t = raw(tensor)
    if not is_differentiable(t):
        return integer_gradients.leaf(t) if integer_gradients.is_integer(t) else t
    leaf = renamed(t) if t.requires_grad else new_leaf(t)
    return gradient_hooks.follow(tensor, leaf) if gradient_hooks.STATE.has_hooks else leaf


def new_leaf(t: torch.Tensor) -> torch.Tensor:
    """Return a leaf of torch.autograd with the values of `t`; a copy if `t` comes from `torch.inference_mode`."""
    return (t.clone() if t.is_inference() else t.detach()).requires_grad_()


def new_leaves(weights: Sequence[TensorBase]) -> dict[int, torch.Tensor] | None:
    """Return what `leaf_of` returns for each weight, by the ids of the weights; None where it has to be called for each of them."""
    if _new_leaves is None or gradient_hooks.STATE.has_hooks or frame() is not None:
        return None
    leaves: dict[int, torch.Tensor] | None = _new_leaves(weights)
    return leaves
