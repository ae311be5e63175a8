"""Torch tensors that enter and leave MindSpore's gradients, and torch Modules that a program hands to a Cell.

Inside a gradient transform a Tensor holds a torch tensor with a graph. `Tensor.torch()` hands it out as it is, and `enter` takes a result
of torch's functions back with its graph, so that the gradient flows through them. What would lose a gradient without notice raises.
"""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.core import torch_private
from torchspore.engine.core.tensor import frame, is_recording


class GradientLost(RuntimeError):
    """A value leaves a gradient in a way that would lose its gradient, or a torch Parameter would get none."""


def enter(t: torch.Tensor) -> torch.Tensor:
    """Return `t` for a Tensor that shares its memory: with its graph inside a gradient transform, else detached.

    Raises:
        TypeError: `t` is not a torch tensor with elements in memory: sparse, nested, quantized or on the device 'meta'.
        GradientLost: inside a gradient transform, `t` depends on a torch tensor that requires a gradient. No MindSpore gradient reaches it.
    """
    if not isinstance(t, torch.Tensor) or t.is_nested or t.layout is not torch.strided or t.is_quantized or t.device.type == "meta":
        raise _not_dense(t)
    if torch_private.is_transforming():                 # torch.func's transforms, which jvp, jacfwd and vmap use, follow the tensor itself
        return t
    if not t.requires_grad or not is_recording():
        return t.detach()
    foreign = _foreign_leaf(t)
    if foreign is not None:
        raise GradientLost(message(
            f"Tensor.from_torch: a result of the torch {type(foreign).__name__} of shape {list(foreign.shape)}, which requires a gradient, "
            "inside a gradient of MindSpore", "torch tensors that require none, because no gradient would reach it",
            hint="call requires_grad_(False) on the torch Module, or take the gradient with torch.autograd",
        ))
    return t


def _not_dense(t: Any) -> TypeError:
    """Return the error for what Tensor.from_torch does not take."""
    if not isinstance(t, torch.Tensor):
        return TypeError(message(f"Tensor.from_torch({short(t)})", f"a torch tensor, got {type(t).__name__}"))
    kind, hint = (
        ("a nested", "write Tensor.from_torch(torch.nested.to_padded_tensor(t, 0))") if t.is_nested
        else ("a quantized", "write Tensor.from_torch(t.dequantize())") if t.is_quantized
        else ("a sparse", "write Tensor.from_torch(t.to_dense())") if t.layout is not torch.strided
        else ("a meta", "create the tensor on a device that has memory")
    )
    return TypeError(message(f"Tensor.from_torch of {kind} torch tensor", "a dense tensor with elements in memory", hint=hint))


def leave(t: torch.Tensor, how: str) -> torch.Tensor:
    """Return `t` for an export that cannot carry a gradient, such as DLPack. Raises GradientLost if `t` takes part in one."""
    if (t.requires_grad and is_recording()) or torch_private.is_transforming():
        raise GradientLost(message(
            f"{how} inside a gradient of MindSpore", "a value that takes no part in it, because the gradient would be lost",
            hint="use Tensor.torch() and Tensor.from_torch, which carry the gradient, or ops.stop_gradient(x)",
        ))
    return t


def _foreign_leaf(t: torch.Tensor) -> torch.Tensor | None:
    """Return a leaf of torch.autograd that `t` depends on and no gradient transform of this thread has created, or None."""
    ours = set()
    around = frame()
    while around is not None:
        ours |= around.leaf_ids()
        around = around.outer
    seen, pending = set(), [t.grad_fn if t.grad_fn is not None else t]
    while pending:
        node: Any = pending.pop()
        if isinstance(node, torch.Tensor) or hasattr(node, "variable"):
            leaf: torch.Tensor = node if isinstance(node, torch.Tensor) else node.variable
            if isinstance(leaf, torch.nn.Parameter) or (id(leaf) not in ours and isinstance(node, torch.Tensor)):
                return leaf
        elif node not in seen:
            seen.add(node)
            pending += [following for following, _ in node.next_functions if following is not None]
    return None


def is_torch_module(value: Any) -> bool:
    """Return whether `value` is a torch Module."""
    return isinstance(value, torch.nn.Module)
