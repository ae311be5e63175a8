"""Normalisation and dropout."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.context import effects
from torchspore.engine import counters
from torchspore.mindspore.ops.declare import op

T = torch.Tensor


@op()
def batch_norm(
    input_x: T, running_mean: T, running_var: T, weight: T, bias: T, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> T:
    """Normalised over all axes but axis 1; in training the running values take in the share `momentum` of the batch's."""
    out = F.batch_norm(input_x, running_mean, running_var, weight, bias, training, momentum, eps)
    if training and running_mean is not None:
        counters.batch_norms += 1
    return out


@op()
def layer_norm(input: T, normalized_shape: Any, weight: T | None = None, bias: T | None = None, eps: float = 1e-5) -> T:
    """Normalised over the last axes, whose lengths are `normalized_shape`."""
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@op(primitive="LayerNorm", init=("begin_norm_axis", "begin_params_axis", "epsilon"))
def _layer_norm(input_x: T, gamma: T, beta: T, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-7) -> Any:
    """The normalised input, the mean and the variance over the axes from `begin_norm_axis` on."""
    axes = tuple(range(begin_norm_axis % input_x.ndim, input_x.ndim))
    mean = input_x.mean(axes, keepdim=True)
    variance = input_x.var(axes, correction=0, keepdim=True)
    if begin_params_axis % input_x.ndim == begin_norm_axis % input_x.ndim:
        return F.layer_norm(input_x, [input_x.shape[a] for a in axes], gamma, beta, epsilon), mean, variance
    return F.layer_norm(input_x, [input_x.shape[a] for a in axes], eps=epsilon) * gamma + beta, mean, variance


@op()
def group_norm(input: T, num_groups: int, weight: T | None = None, bias: T | None = None, eps: float = 1e-5) -> T:
    """Normalised over the channels (axis 1) of each group and all later axes."""
    return F.group_norm(input, num_groups, weight, bias, eps)


def _note_seed(call: str) -> None:
    effects.note("random numbers", f"{call}: draws from the stream that set_seed starts, not from one of its own")


@op()
def dropout(input: T, p: float = 0.5, training: bool = True, seed: int | None = None) -> T:
    """Each element 0 with probability `p`, the others divided by 1 - p, while `training`.

    A `seed` starts no stream of its own: `set_seed` is what makes the numbers come again, and `explain` says so.
    """
    if seed is not None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"seed={seed!r:.40}: expected an int, got {type(seed).__name__}.")
        if seed < 0:
            raise ValueError(f"seed={seed}: expected an int from 0 on.")
        _note_seed(f"dropout(seed={seed})")
    return F.dropout(input, p, training)


@op(primitive="Dropout", init=("keep_prob", "Seed0", "Seed1"))
def _dropout(x: T, keep_prob: float = 0.5, Seed0: int = 0, Seed1: int = 0) -> Any:
    """The input with each element kept with probability `keep_prob` and divided by it, and the mask.

    `Seed0` and `Seed1` start no stream of their own: `set_seed` is what makes the numbers come again, and `explain` says so.
    """
    if Seed0 or Seed1:
        _note_seed(f"Dropout(Seed0={Seed0}, Seed1={Seed1})")
    mask = torch.rand_like(x) < keep_prob
    return x * mask / keep_prob, mask.to(x.dtype)


@op(primitive="L2Normalize", init=("axis", "epsilon"))
def _l2_normalize(input_x: T, axis: Any = 0, epsilon: float = 1e-4) -> T:
    """x divided by its length along `axis`, the square of which is at least `epsilon`."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return input_x * torch.rsqrt(torch.clamp(torch.sum(input_x * input_x, axes, keepdim=True), min=epsilon))
