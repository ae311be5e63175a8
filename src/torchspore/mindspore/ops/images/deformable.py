"""Deformable convolution (Dai and others 2017, Zhu and others 2018)."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.engine.formulas.half_precision import run_convolution
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op()
def deformable_conv2d(
    x: T, weight: T, offsets: T, kernel_size: tuple[int, ...], strides: tuple[int, ...], padding: tuple[int, ...], bias: T | None = None,
    dilations: tuple[int, ...] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1, modulated: bool = True,
) -> T:
    """Convolve x (N, C, H, W) with weight (out, C / groups, KH, KW); `offsets` moves and weighs each kernel point.

    `offsets` (N, 3 * deformable_groups * KH * KW, H', W') has first the shifts to the right, then down, then the weights. `strides` and
    `dilations` are (1, 1, down, right), `padding` is (top, bottom, left, right). Raises ValueError for `modulated` False.
    """
    columns = _moved(x, offsets, kernel_size, strides, padding, dilations, deformable_groups, modulated)
    return run_convolution(F.conv2d, columns, weight, bias, tuple(kernel_size), 0, 1, groups)


@op(primitive="DeformableOffsets", init=("strides", "pads", "ksize", "dilations", "data_format", "deformable_groups", "modulated"))
def _deformable_offsets(
    x: T, offsets: T, strides: Any, pads: Any, ksize: Any, dilations: Any = (1, 1, 1, 1), data_format: str = "NCHW",
    deformable_groups: int = 1, modulated: bool = True,
) -> T:
    """Return the Tensor that `deformable_conv2d` multiplies by its weight: (N, C, H' * KH, W' * KW), the moved, weighed window points."""
    if data_format != "NCHW":
        raise ValueError(f"data_format={data_format!r}: expected 'NCHW'.")
    return _moved(x, offsets, ksize, strides, pads, dilations, deformable_groups, modulated)


def _moved(
    x: T, offsets: T, kernel_size: Any, strides: Any, padding: Any, dilations: Any, deformable_groups: int, modulated: bool,
) -> T:
    if modulated is not True:
        raise ValueError("expected modulated=True, the second version.")
    sizes = (("kernel_size", kernel_size, 2), ("strides", strides, 4), ("padding", padding, 4), ("dilations", dilations, 4))
    for name, value, count in sizes:
        if len(value) != count:
            raise ValueError(f"{name}={value}: expected {count} ints.")
    (kh, kw), (down, right), (dil_h, dil_w) = kernel_size, strides[2:], dilations[2:]
    n, c = x.shape[:2]
    points, (out_h, out_w) = kh * kw, offsets.shape[2:]
    if offsets.shape[1] != 3 * deformable_groups * points:
        raise ValueError(f"offsets of shape {tuple(offsets.shape)}: expected {3 * deformable_groups * points} channels.")
    x = F.pad(x, (padding[2], padding[3], padding[0], padding[1]))
    height, width = x.shape[2:]
    moved = offsets.reshape(n, 3, deformable_groups, points, out_h, out_w)
    like = {"dtype": x.dtype, "device": x.device}
    point = torch.arange(points, device=x.device)
    rows = (torch.arange(out_h, **like) * down)[None, :, None] + ((point // kw) * dil_h).to(x.dtype)[:, None, None]
    columns = (torch.arange(out_w, **like) * right)[None, None, :] + ((point % kw) * dil_w).to(x.dtype)[:, None, None]
    # Dividing each axis by a number avoids copying a Tensor of both lengths to the device in each call.
    grid = torch.stack([(2 * (columns + moved[:, 0]) + 1) / width - 1, (2 * (rows + moved[:, 1]) + 1) / height - 1], -1)
    grid = grid.reshape(n * deformable_groups, points * out_h, out_w, 2)
    share = c // deformable_groups
    seen = F.grid_sample(x.reshape(n * deformable_groups, share, height, width), grid, "bilinear", "zeros", False)
    seen = seen.reshape(n, deformable_groups, share, points, out_h, out_w) * moved[:, 2, :, None]
    return seen.reshape(n, c, kh, kw, out_h, out_w).permute(0, 1, 4, 2, 5, 3).reshape(n, c, out_h * kh, out_w * kw)
