"""Gradients that a program computes itself, in a Cell's `bprop` or a function's `backward`: one for each argument, of its shape."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.engine.tensors.tensor import raw, tensors


def fitting(
    got: Sequence[Any], args: Sequence[Any], inputs: Sequence[torch.Tensor], of: str, error: Callable[[str], Exception],
) -> list[torch.Tensor | None]:
    """Return one gradient, or None, for each of `inputs`, the Tensors in `args`, which are the arguments of `of`.

    torch sums a larger gradient to the shape of its input. `error` builds the exception for too few gradients, or for one that cannot be
    summed.
    """
    if len(got) < len(args):
        raise error(f"expected {len(args)} gradients, one for each argument of {of}, got {len(got)}")
    flat: list[Any] = []
    for argument, gradient in zip(args, got):
        argument_tensors = list(tensors(argument))
        gradient_tensors = list(tensors(gradient)) if argument_tensors else []
        flat += [raw(g) for g in gradient_tensors] + [None] * (len(argument_tensors) - len(gradient_tensors))
    for index, (t, g) in enumerate(zip(inputs, flat)):
        if g is not None and not _sums_to(g.shape, t.shape):
            raise error(f"gradient {index} has the shape {tuple(g.shape)}, expected {tuple(t.shape)} or what sums to it")
    return [g if g is not None and is_differentiable(t) else None for g, t in zip(flat, inputs)]


def _sums_to(shape: torch.Size, target_shape: torch.Size) -> bool:
    """Return whether a gradient of `shape` can be summed over the axes along which an input of the shape `target_shape` was broadcast."""
    if len(shape) < len(target_shape):
        return False
    return all(w in (1, s) for s, w in zip(reversed(shape), reversed(target_shape)))
