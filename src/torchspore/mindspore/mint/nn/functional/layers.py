"""Convolution, pooling, normalization, resizing, padding, embedding and dropout of `mint.nn.functional`."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.engine.execution.precision import as_stored
from torchspore.engine.formulas.half_precision import in_float32, run_convolution
from torchspore.engine.random.generators import drawing
from torchspore.mindspore.mint.shared import T, sizes, write_back
from torchspore.mindspore.ops.declaration.declare import bridged, part_of
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.declaration.limits import tensor, truth
from torchspore.mindspore.ops.images.rearrange import fold_columns
from torchspore.mindspore.ops.layers.normalization import check_groups, match_dtype


@bridged
def conv1d(
    input: T, weight: T, bias: T | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> T:
    """Convolution of sequences (N, C, L) by (O, C / groups, kernel); padding 'same' keeps the length, 'valid' adds nothing."""
    return run_convolution(F.conv1d, input, weight, bias, stride, padding, dilation, groups)


@bridged
def conv3d(
    input: T, weight: T, bias: T | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> T:
    """Convolution of volumes (N, C, D, H, W) by (O, C / groups, kernel...); padding 'same' keeps the size, 'valid' adds nothing."""
    return run_convolution(F.conv3d, input, weight, bias, stride, padding, dilation, groups)


@bridged
def conv_transpose2d(
    input: T, weight: T, bias: T | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> T:
    """Transposed convolution of images (N, C, H, W) by (C, O / groups, kernel...)."""
    return run_convolution(F.conv_transpose2d, input, weight, bias, stride, padding, output_padding, groups, dilation)


@bridged
def linear(input: T, weight: T, bias: T | None = None) -> T:
    """input @ weight.T + bias for a weight (out, in)."""
    return in_float32(F.linear, input, weight, bias)


@bridged
def avg_pool1d(
    input: T, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
) -> T:
    """The mean of each window of (N, C, L); the stride is the kernel's length by default."""
    return F.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@bridged
def avg_pool2d(
    input: T, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> T:
    """The mean of each window of (N, C, H, W); `divisor_override` replaces the number of elements as divisor."""
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@bridged
def avg_pool3d(
    input: T, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> T:
    """The mean of each window of (N, C, D, H, W); `divisor_override` replaces the number of elements as divisor."""
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@bridged
def max_pool2d(
    input: T, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of (N, C, H, W), with `return_indices` also its index (int64)."""
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, return_indices=return_indices)


@bridged
def max_unpool2d(
    input: T, indices: T, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None,
) -> T:
    """Put the values of a max pooling back to the positions `indices`; zeros elsewhere."""
    return F.max_unpool2d(input, indices, kernel_size, stride, padding, None if output_size is None else list(output_size))


@bridged
def adaptive_avg_pool1d(input: T, output_size: Any) -> T:
    """The mean of each of `output_size` windows of (N, C, L)."""
    return F.adaptive_avg_pool1d(input, output_size)


@bridged
def adaptive_avg_pool2d(input: T, output_size: Any) -> T:
    """The mean of each of (H', W') windows of (N, C, H, W); None keeps a length."""
    return F.adaptive_avg_pool2d(input, output_size)


@bridged
def adaptive_avg_pool3d(input: T, output_size: Any) -> T:
    """The mean of each of (D', H', W') windows of (N, C, D, H, W); None keeps a length."""
    return F.adaptive_avg_pool3d(input, output_size)


@bridged
def adaptive_max_pool1d(input: T, output_size: Any, return_indices: bool = False) -> Any:
    """The largest value of each of `output_size` windows of (N, C, L), with `return_indices` also its index (int64)."""
    return F.adaptive_max_pool1d(input, output_size, return_indices)


@bridged
def adaptive_max_pool2d(input: T, output_size: Any, return_indices: bool = False) -> Any:
    """The largest value of each of (H', W') windows of (N, C, H, W), with `return_indices` also its index (int64)."""
    return F.adaptive_max_pool2d(input, output_size, return_indices)


@part_of("batch_norm")
def _batch_normed(input: T, mean: T, variance: T, weight: T | None, bias: T | None, training: bool, eps: float) -> Any:
    if not training:
        return F.batch_norm(input, mean, variance, match_dtype(mean, weight), match_dtype(mean, bias), False, 0.0, eps), None, None
    reduced_axes = [axis for axis in range(input.ndim) if axis != 1]
    spread, centre = torch.var_mean(input.detach().float(), reduced_axes, correction=1)
    return F.batch_norm(input, None, None, weight, bias, True, 0.0, eps), centre, spread


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel (axis 1).

    Training uses the batch's values, and the running values move by `momentum` towards them; evaluation uses the running values.
    """
    stored_mean, stored_var = as_stored(running_mean), as_stored(running_var)
    out, mean, variance = _batch_normed(input, stored_mean, stored_var, weight, bias, training, eps)
    if training and running_mean is not None:
        write_back(running_mean, stored_mean * (1 - momentum) + mean * momentum)
    if training and running_var is not None:
        write_back(running_var, stored_var * (1 - momentum) + variance * momentum)
    return out


@bridged
def layer_norm(input: T, normalized_shape: Any, weight: T | None = None, bias: T | None = None, eps: float = 1e-5) -> T:
    """(x - mean) / deviation over the last axes `normalized_shape`; times weight, plus bias."""
    return F.layer_norm(input, sizes(normalized_shape), weight, bias, eps)


@bridged
def group_norm(input: T, num_groups: int, weight: T | None = None, bias: T | None = None, eps: float = 1e-5) -> T:
    """(x - mean) / deviation for each of `num_groups` groups of channels; times weight, plus bias."""
    check_groups(num_groups)
    return F.group_norm(input, num_groups, weight, bias, eps)


@bridged
def normalize(input: T, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> T:
    """x divided by its norm of order `p` along `dim`, which is at least eps."""
    return F.normalize(input, p, dim, eps)


@bridged
def interpolate(
    input: T, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> T:
    """Resize (N, C, ...): 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'."""
    scale = tuple(scale_factor) if isinstance(scale_factor, list) else scale_factor
    return F.interpolate(input, size, scale, mode, align_corners, recompute_scale_factor)


@bridged
def upsample(input: T, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> T:
    """Resize (N, C, ...): 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'."""
    return F.interpolate(input, size, tuple(scale_factor) if isinstance(scale_factor, list) else scale_factor, mode, align_corners)


@bridged
def grid_sample(input: T, grid: T, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> T:
    """Sample `input` (N, C, H, W) at the positions `grid` (N, H', W', 2), in [-1, 1]."""
    return F.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


@bridged
def pad(input: T, pad: Any, mode: str = "constant", value: Any = None) -> T:
    """Pad `input` before and after, by the counts in `pad`, last axis first: 'constant', 'reflect', 'replicate', 'circular'."""
    return F.pad(input, sizes(pad), mode, value)


@bridged
def unfold(input: T, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> T:
    """The windows of (N, C, H, W) as columns (N, C * kernel, L)."""
    return F.unfold(input, kernel_size, dilation, padding, stride)


@bridged
def fold(input: T, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> T:
    """Sum columns (N, C * kernel, L) at the positions of their windows in (N, C, H, W)."""
    return fold_columns(input, output_size, kernel_size, dilation, padding, stride)


@bridged
def pixel_shuffle(input: T, upscale_factor: int) -> T:
    """(..., C * r * r, H, W) as (..., C, H * r, W * r)."""
    return F.pixel_shuffle(input, upscale_factor)


@bridged
def one_hot(tensor: T, num_classes: int = -1) -> T:
    """1 at each element's index in a new last axis of `num_classes` (-1: as many as the largest index requires), int64."""
    return F.one_hot(as_index(tensor), num_classes)


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Any:
    """The rows of `weight` at `input`; the row `padding_idx` has no gradient; rows longer than `max_norm` are scaled down first."""
    if max_norm is not None:
        write_back(weight, _shortened(input, weight, max_norm, norm_type))
    return _embedded(input, weight, padding_idx, scale_grad_by_freq)


@part_of("embedding")
def _shortened(input: T, weight: T, max_norm: float, norm_type: float) -> T:
    rows = torch.zeros(weight.shape[0], dtype=torch.bool, device=weight.device).index_fill(0, as_index(input).reshape(-1), True)
    return torch.where(rows[:, None], torch.renorm(weight.detach(), norm_type, 0, max_norm), weight.detach())


@part_of("embedding")
def _embedded(input: T, weight: T, padding_idx: int | None, scale_grad_by_freq: bool) -> T:
    return F.embedding(input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)


@part_of("dropout")
@drawing
def _dropped(input: T, p: float) -> T:
    return F.dropout(input, p)


@part_of("dropout2d")
@drawing
def _channels_dropped(input: T, p: float) -> T:
    return F.dropout2d(input, p)


def _apply_dropout(call: Any, input: Any, p: float, training: bool, inplace: bool) -> Any:
    truth("dropout", "training", training)
    if training:
        tensor("dropout", "input", input)
    if not 0 <= p <= 1:
        raise ValueError(f"p={p}: expected a number from 0 to 1.")
    out = call(input, p) if training else input
    return write_back(input, out) if inplace and training else out


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set elements to 0 with probability `p` and divide the others by 1 - p; without `training`, return x."""
    return _apply_dropout(_dropped, input, p, training, inplace)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set channels of (N, C, H, W) to 0 with probability `p` and divide the others by 1 - p; without `training`, return x."""
    return _apply_dropout(_channels_dropped, input, p, training, inplace)
