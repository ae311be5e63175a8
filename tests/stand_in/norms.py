"""Normalization of half precision as on a GPU: it computes in float32, and keeps float32 means and deviations for the gradient.

The host's kernels keep them in the dtype of the parameters. torch's meta kernels, which give the shapes of the late mode and of graphs, say
float32 of every accelerator.
"""
from __future__ import annotations

from typing import Any

import torch

from stand_in.operators import HALF, run

_aten = torch.ops.aten
Optional = torch.Tensor | None


def _wide(tensor: Optional) -> Optional:
    return None if tensor is None else tensor.float()


def layer_norm(x: torch.Tensor, shape: Any, weight: Optional, bias: Optional, eps: float) -> Any:
    """Return (result, means, inverse standard deviations)."""
    if x.dtype not in HALF:
        return run(_aten.native_layer_norm.default, x, shape, weight, bias, eps)
    result, means, deviations = run(_aten.native_layer_norm.default, x.float(), shape, _wide(weight), _wide(bias), eps)
    return result.to(x.dtype), means, deviations


def layer_norm_backward(
    gradient: torch.Tensor, x: torch.Tensor, shape: Any, means: torch.Tensor, deviations: torch.Tensor, weight: Optional, bias: Optional,
    mask: Any,
) -> tuple[Optional, ...]:
    """Return the gradients of the input, the weight and the bias, None for those that `mask` leaves out."""
    operator = _aten.native_layer_norm_backward.default
    if x.dtype not in HALF:
        return tuple(run(operator, gradient, x, shape, means, deviations, weight, bias, mask))
    results = run(operator, gradient.float(), x.float(), shape, means, deviations, _wide(weight), _wide(bias), mask)
    dtypes = x.dtype, *(x.dtype if parameter is None else parameter.dtype for parameter in (weight, bias))
    return tuple(None if result is None else result.to(dtype) for result, dtype in zip(results, dtypes))


def batch_norm(
    x: torch.Tensor, weight: Optional, bias: Optional, mean: Optional, variance: Optional, is_training: bool, momentum: float, eps: float,
) -> Any:
    """Return (result, means, inverse standard deviations); training moves the running `mean` and `variance` in place."""
    running = [_wide(mean), _wide(variance)] if x.dtype in HALF else [mean, variance]
    parameters = (_wide(weight), _wide(bias)) if x.dtype in HALF else (weight, bias)
    values = x.float() if x.dtype in HALF else x
    result, means, deviations = run(_aten.native_batch_norm.default, values, *parameters, *running, is_training, momentum, eps)
    if not is_training and running[0] is not None and running[1] is not None:
        means, deviations = running[0].clone(), torch.rsqrt(running[1] + eps)
    for statistic, wide in zip((mean, variance), running):
        if is_training and statistic is not None and wide is not None and statistic.dtype in HALF:
            statistic.copy_(wide)
    return result.to(x.dtype), means, deviations


def batch_norm_backward(
    gradient: torch.Tensor, x: torch.Tensor, weight: Optional, mean: Optional, variance: Optional, means: Optional, deviations: Optional,
    is_training: bool, eps: float, mask: Any,
) -> tuple[Optional, ...]:
    """Return the gradients of the input, the weight and the bias, None for those that `mask` leaves out."""
    operator = _aten.native_batch_norm_backward.default
    if x.dtype not in HALF:
        return tuple(run(operator, gradient, x, weight, mean, variance, means, deviations, is_training, eps, mask))
    results = run(operator, gradient.float(), x.float(), _wide(weight), _wide(mean), _wide(variance), means, deviations, is_training, eps,
                  mask)
    dtypes = x.dtype, *[x.dtype if weight is None else weight.dtype] * 2
    return tuple(None if result is None else result.to(dtype) for result, dtype in zip(results, dtypes))


KERNELS = {
    "native_layer_norm": layer_norm, "native_layer_norm_backward": layer_norm_backward, "native_batch_norm": batch_norm,
    "_native_batch_norm_legit": batch_norm, "native_batch_norm_backward": batch_norm_backward,
}
