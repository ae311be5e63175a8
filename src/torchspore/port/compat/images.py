"""Windows and sizes of images: pools with MindSpore's pad_mode, interpolation."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from torchspore.port.compat.functions import as_pair, pad_to_keep_size


def max_pool2d(x: Tensor, kernel_size: Any, stride: Any, pad_mode: str) -> Tensor:
    """The largest value in each window, with MindSpore's pad_mode."""
    if pad_mode.lower() == "same":
        x = pad_to_keep_size(x, as_pair(kernel_size), as_pair(stride), (1, 1), float("-inf"))
    return F.max_pool2d(x, kernel_size, stride)


def avg_pool2d(x: Tensor, kernel_size: Any, stride: Any, pad_mode: str) -> Tensor:
    """The mean of each window, with MindSpore's pad_mode; windows at the border have fewer values."""
    if pad_mode.lower() == "same":
        kernel, step = as_pair(kernel_size), as_pair(stride)
        counts = F.avg_pool2d(pad_to_keep_size(torch.ones_like(x), kernel, step, (1, 1)), kernel, step)
        return F.avg_pool2d(pad_to_keep_size(x, kernel, step, (1, 1)), kernel, step) / counts
    return F.avg_pool2d(x, kernel_size, stride)


def as_triple(value: Any) -> tuple[int, ...]:
    """Three numbers, of one or three."""
    return (value, value, value) if isinstance(value, int) else tuple(value)[-3:]


def max_pool3d(x: Tensor, kernel_size: Any, stride: Any, pad_mode: str) -> Tensor:
    """The largest value in each window of volumes, with MindSpore's pad_mode."""
    if pad_mode.lower() == "same":
        x = pad_to_keep_size(x, as_triple(kernel_size), as_triple(stride), (1, 1, 1), float("-inf"))
    return F.max_pool3d(x, kernel_size, stride)


def avg_pool3d(x: Tensor, kernel_size: Any, stride: Any, pad_mode: str) -> Tensor:
    """The mean of each window of volumes, with MindSpore's pad_mode; zeros of the padding count."""
    if pad_mode.lower() == "same":
        x = pad_to_keep_size(x, as_triple(kernel_size), as_triple(stride), (1, 1, 1))
    return F.avg_pool3d(x, kernel_size, stride)


def resize_bilinear(x: Tensor, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Bilinear interpolation; without `half_pixel_centers` a position is its index times the ratio of the sizes."""
    size = [int(length) for length in size]
    if align_corners or half_pixel_centers:
        return F.interpolate(x, size=size, mode="bilinear", align_corners=align_corners)
    for axis, length in zip((-2, -1), size):
        position = torch.arange(length, device=x.device) * (x.shape[axis] / length)
        low = position.long().clamp(max=x.shape[axis] - 1)
        high = (low + 1).clamp(max=x.shape[axis] - 1)
        share = (position - low).to(x.dtype).reshape((-1, 1) if axis == -2 else (-1,))
        x = x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share
    return x


def resize_nearest(x: Tensor, size: Any, align_corners: bool = False) -> Tensor:
    """The nearest neighbours; with `align_corners` the first and the last element stay at the ends."""
    if not align_corners:
        return F.interpolate(x, size=tuple(size), mode="nearest")
    for axis, length in zip((-2, -1), size):
        scale = (x.shape[axis] - 1) / (length - 1) if length > 1 else x.shape[axis] / length
        position = torch.floor(torch.arange(length, device=x.device) * scale + 0.5).long()
        x = x.index_select(axis, position.clamp(max=x.shape[axis] - 1))
    return x


def resize_bicubic(x: Tensor, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Cubic interpolation as in MindSpore: the slope is -0.5 at half positions, where neighbours outside are ignored, and else -0.75."""
    for axis, length in zip((-2, -1), [int(length) for length in size]):
        x = resize_axis_bicubically(x, axis, length, align_corners, half_pixel_centers)
    return x


def resize_axis_bicubically(x: Tensor, axis: int, length: int, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    """One axis of `resize_bicubic`; the weights are those at multiples of 1/1024."""
    old, slope = x.shape[axis], -0.5 if half_pixel_centers else -0.75
    scale = (old - 1) / (length - 1) if align_corners and length > 1 else old / length
    at = torch.arange(length, dtype=torch.float32, device=x.device)
    at = (at + 0.5) * scale - 0.5 if half_pixel_centers else at * scale
    low = at.floor()
    share = torch.round((at - low) * 1024) / 1024
    positions = torch.stack([low + step for step in (-1, 0, 1, 2)]).long()
    distance = torch.stack([share + 1, share, 1 - share, 2 - share])
    near = ((slope + 2) * distance - (slope + 3)) * distance * distance + 1
    far = ((slope * distance - 5 * slope) * distance + 8 * slope) * distance - 4 * slope
    weights = torch.where(distance <= 1, near, torch.where(distance < 2, far, torch.zeros_like(distance)))
    if half_pixel_centers:
        weights = weights * ((positions >= 0) & (positions < old))
        weights = weights / weights.sum(0)
    shape = (-1, 1) if axis == -2 else (-1,)
    parts = [x.index_select(axis, index) * weight.to(x.dtype).reshape(shape) for index, weight in zip(positions.clamp(0, old - 1), weights)]
    return parts[0] + parts[1] + parts[2] + parts[3]


def interpolate_bicubically(x: Tensor, size: Any = None, scale_factor: Any = None, align_corners: bool | None = None) -> Tensor:
    """Cubic interpolation to a size, or by a factor."""
    if size is None:
        factors = (scale_factor, scale_factor) if isinstance(scale_factor, (int, float)) else scale_factor
        size = [int(length * factor) for length, factor in zip(x.shape[2:], factors)]
    return resize_bicubic(x, (size, size) if isinstance(size, int) else size, bool(align_corners), not align_corners)


def depth_to_space(x: Tensor, size: int) -> Tensor:
    """Blocks of size x size from the channels; the position in the block is the outer part of a channel's number."""
    batch, channels, rows, columns = x.shape
    x = x.reshape(batch, size, size, channels // size**2, rows, columns).permute(0, 3, 4, 1, 5, 2)
    return x.reshape(batch, channels // size**2, rows * size, columns * size)


def space_to_depth(x: Tensor, size: int) -> Tensor:
    """The inverse of depth_to_space."""
    batch, channels, rows, columns = x.shape
    x = x.reshape(batch, channels, rows // size, size, columns // size, size).permute(0, 3, 5, 1, 2, 4)
    return x.reshape(batch, channels * size**2, rows // size, columns // size)


def deformable_conv2d(
    x: Tensor, weight: Tensor, offsets: Tensor, kernel_size: Sequence[int], strides: Sequence[int], padding: Sequence[int],
    bias: Tensor | None = None, dilations: Sequence[int] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1,
) -> Tensor:
    """A convolution whose kernel points `offsets` shifts to the right, then down, then weighs.

    It has the shape (N, 3 * deformable_groups * KH * KW, H', W').
    """
    (kernel_h, kernel_w), (down, right), (dilation_h, dilation_w) = kernel_size, strides[2:], dilations[2:]
    (batch, channels), points, (out_h, out_w) = x.shape[:2], kernel_h * kernel_w, offsets.shape[2:]
    x = F.pad(x, (padding[2], padding[3], padding[0], padding[1]))
    height, width = x.shape[2:]
    shifts = offsets.reshape(batch, 3, deformable_groups, points, out_h, out_w)
    point = torch.arange(points, device=x.device)
    rows = (torch.arange(out_h, device=x.device) * down)[:, None] + (point // kernel_w * dilation_h)[:, None, None]
    columns = torch.arange(out_w, device=x.device) * right + (point % kernel_w * dilation_w)[:, None, None]
    grid = torch.stack([(2 * (columns + shifts[:, 0]) + 1) / width - 1, (2 * (rows + shifts[:, 1]) + 1) / height - 1], -1)
    share = channels // deformable_groups
    images = x.reshape(batch * deformable_groups, share, height, width)
    values = F.grid_sample(images, grid.reshape(batch * deformable_groups, points * out_h, out_w, 2), align_corners=False)
    values = values.reshape(batch, deformable_groups, share, points, out_h, out_w) * shifts[:, 2, :, None]
    values = values.reshape(batch, channels, kernel_h, kernel_w, out_h, out_w).permute(0, 1, 4, 2, 5, 3)
    values = values.reshape(batch, channels, out_h * kernel_h, out_w * kernel_w)
    return F.conv2d(values, weight, bias, stride=(kernel_h, kernel_w), groups=groups)
