"""Normalization."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.arguments import is_int
from torchspore.base.text import message, with_type
from torchspore.engine.formulas import clamping
from torchspore.engine.formulas.half_precision import HALVES
from torchspore.engine.tensors import change_counters
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import normalized_axis

T = torch.Tensor


def match_dtype(state: T | None, weight: T | None) -> T | None:
    """Return a weight in the dtype of the running values, as torch requires; running values keep theirs in Cells of another dtype."""
    return weight if state is None or weight is None or weight.dtype is state.dtype else weight.to(state.dtype)


def wide_enough(input: T, weight: T | None, bias: T | None) -> tuple[T | None, T | None]:
    """Return weight and bias in the input's dtype or in float32, as torch's kernels require; MindSpore also accepts narrower ones."""
    if weight is None or weight.dtype is input.dtype or weight.dtype is torch.float32 or not weight.dtype.is_floating_point:
        return weight, bias
    common_dtype = torch.promote_types(input.dtype, torch.float32)
    return weight.to(common_dtype), bias if bias is None else bias.to(common_dtype)


def by_batch(
    x: T, mean: T | None, variance: T | None, weight: T | None, bias: T | None, training: bool, momentum: float, epsilon: float,
) -> T:
    """torch's batch_norm, but with running values and weights of 16 bits and an input of 32, which torch's kernels lack."""
    if mean is None or variance is None or mean.dtype not in HALVES or x.dtype in HALVES:
        weight, bias = match_dtype(mean, weight), match_dtype(mean, bias)
        if x.__class__ is T and x.is_cpu and epsilon > 0 and not (training and x.numel() == x.shape[1]):
            return torch.batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon, False)      # F.batch_norm, checked
        return F.batch_norm(x, mean, variance, weight, bias, training, momentum, epsilon)
    wide = [None if part is None else part.to(x.dtype) for part in (mean, variance, weight, bias)]
    out = F.batch_norm(x, *wide, training, momentum, epsilon)
    if training:
        mean.copy_(wide[0])
        variance.copy_(wide[1])
    return out


@op(states=("running_mean", "running_var"), short_path="batch_norm")
def batch_norm(
    input_x: T, running_mean: T, running_var: T, weight: T, bias: T, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> T:
    """Normalize over all axes except axis 1; training updates the running values by the fraction `momentum` of the batch's."""
    mean = running_mean.detach() if running_mean is not None and running_mean.requires_grad else running_mean
    variance = running_var.detach() if running_var is not None and running_var.requires_grad else running_var
    out = by_batch(input_x, mean, variance, weight, bias, training, momentum, eps)
    if training and running_mean is not None:
        change_counters.batch_norms += 1
    return out


@op(short_path="layer_norm")
def layer_norm(input: T, normalized_shape: Any, weight: T | None = None, bias: T | None = None, eps: float = 1e-5) -> T:
    """Normalize over the last axes, whose lengths are `normalized_shape`."""
    weight, bias = wide_enough(input, weight, bias)
    if input.dtype is torch.float64 and weight is not None and weight.dtype is not input.dtype:
        weight, bias = weight.double(), None if bias is None else bias.double()
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@op(primitive="LayerNorm", init=("begin_norm_axis", "begin_params_axis", "epsilon"))
def _layer_norm(input_x: T, gamma: T, beta: T, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-7) -> Any:
    """The normalized input, the mean and the variance (float32 for float16) over the axes from `begin_norm_axis` on."""
    axes = tuple(range(normalized_axis(begin_norm_axis, input_x.ndim), input_x.ndim))
    wide = input_x.float() if input_x.dtype is torch.float16 else input_x
    mean = wide.mean(axes, keepdim=True)
    variance = wide.var(axes, correction=0, keepdim=True)
    if gamma.dtype is not input_x.dtype:
        gamma, beta = (part.to(torch.promote_types(input_x.dtype, torch.float32)) for part in (gamma, beta))
    if normalized_axis(begin_params_axis, input_x.ndim) == axes[0]:
        return F.layer_norm(input_x, [input_x.shape[a] for a in axes], gamma, beta, epsilon), mean, variance
    return F.layer_norm(input_x, [input_x.shape[a] for a in axes], eps=epsilon) * gamma + beta, mean, variance


def check_groups(num_groups: int) -> None:
    """Raises ValueError for a number of groups below 1."""
    if num_groups < 1:
        raise ValueError(f"num_groups={num_groups!r}: expected an int from 1 on.")


@op()
def group_norm(input: T, num_groups: int, weight: T | None = None, bias: T | None = None, eps: float = 1e-5) -> T:
    """Normalize over the channels (axis 1) of each group and all later axes."""
    check_groups(num_groups)
    return F.group_norm(input, num_groups, *wide_enough(input, weight, bias), eps)


@op(primitive="L2Normalize", init=("axis", "epsilon"))
def _l2_normalize(input_x: T, axis: Any = 0, epsilon: float = 1e-4) -> T:
    """Divide x by its norm along `axis`, whose square is at least `epsilon`."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return input_x * torch.rsqrt(clamping.clamp(torch.sum(input_x * input_x, axes, keepdim=True), epsilon))


@op(primitive="BatchNorm", init=("is_training", "epsilon", "momentum", "data_format"), states=("mean", "variance"))
def _batch_norm(
    input_x: T, scale: T, bias: T, mean: T, variance: T, is_training: bool = False, epsilon: float = 1e-5, momentum: float = 0.1,
    data_format: str = "NCHW",
) -> Any:
    """Normalize (N, C, ...) over all axes except axis 1: the result, the batch's mean and variance, and both again for the gradient.

    Training updates the running `mean` and `variance` by the fraction `momentum` of the batch's.
    """
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError(f"data_format={data_format!r}: expected 'NCHW' or 'NHWC'.")
    last = data_format == "NHWC" and input_x.ndim == 4
    x = input_x.permute(0, 3, 1, 2) if last else input_x
    axes = [axis for axis in range(x.ndim) if axis != 1]
    if is_training:
        values = x.float()
        batch_mean, batch_variance = values.mean(axes), values.var(axes, correction=0)
    else:
        batch_mean, batch_variance = mean.clone(), variance.clone()
    out = by_batch(x, mean, variance, scale, bias, is_training, momentum, epsilon)
    if is_training:
        change_counters.batch_norms += 1
    return (out.permute(0, 2, 3, 1) if last else out), batch_mean, batch_variance, batch_mean, batch_variance


@op(primitive="InstanceNorm", init=("epsilon", "momentum"), states=("mean", "variance"))
def _instance_norm(input_x: T, gamma: T, beta: T, mean: T, variance: T, epsilon: float = 1e-5, momentum: float = 0.1) -> Any:
    """Normalize (N, C, ...) over the axes after axis 1: the result, and each sample's mean and variance (N * C).

    The running `mean` and `variance` (C) are updated by the fraction `momentum` of the mean over samples.
    """
    values = input_x.float().flatten(2)
    batch_mean, batch_variance = values.mean(2), values.var(2, correction=0)
    out = F.instance_norm(input_x, mean, variance, match_dtype(mean, gamma), match_dtype(mean, beta), True, momentum, epsilon)
    change_counters.batch_norms += 1
    return out, batch_mean.flatten(), batch_variance.flatten()


@op()
def _instance_norm_layer(x: T, gamma: T, beta: T, eps: float) -> T:
    """Normalize (N, C, ...) over the axes after axis 1."""
    return F.instance_norm(x, None, None, gamma, beta, True, 0.1, eps)


def _rms_normalised(x: T, gamma: T, epsilon: float) -> tuple[T, T]:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    share = torch.rsqrt(x.float().square().mean(axes, keepdim=True) + epsilon)
    return (x.float() * share * gamma.float()).to(x.dtype), share


@op()
def rms_norm(x: T, gamma: T, epsilon: float = 1e-6) -> Any:
    """Divide x by its root mean square over the axes of `gamma`, times gamma; also return the reciprocal of that root (float32)."""
    return _rms_normalised(x, gamma, epsilon)


@op(primitive="RmsNorm", init=("epsilon",))
def _rms_norm(x: T, gamma: T, epsilon: float = 1e-6) -> Any:
    """Divide x by its root mean square over the axes of `gamma`, times gamma; also return the reciprocal of that root (float32)."""
    return _rms_normalised(x, gamma, epsilon)


@op(primitive="LRN", init=("depth_radius", "bias", "alpha", "beta", "norm_region"))
def lrn(
    x: T, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, norm_region: str = "ACROSS_CHANNELS",
) -> T:
    """x / (bias + alpha * s)^beta; s is the sum of squares over `depth_radius` channels (axis 1) on each side.

    (Krizhevsky and others, 2012.)
    """
    if not is_int(depth_radius):
        raise TypeError(message(f"depth_radius={depth_radius!r:.40}", with_type("an int", depth_radius)))
    if norm_region != "ACROSS_CHANNELS":
        raise ValueError(f"norm_region={norm_region!r}: expected 'ACROSS_CHANNELS'.")
    window = 2 * depth_radius + 1
    squares = F.pad(x.square().movedim(1, -1), (depth_radius, depth_radius))
    sums = F.avg_pool1d(squares.flatten(0, -2).unsqueeze(1), window, 1).reshape(x.movedim(1, -1).shape) * window
    return x / torch.pow(bias + alpha * sums.movedim(-1, 1), beta)


@op(primitive="L2Loss")
def _l2_loss(input_x: T) -> T:
    """Half the sum of squares."""
    return input_x.square().sum() / 2
