"""Resize images and sequences."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op(primitive="ResizeNearestNeighbor", init=("size", "align_corners", "half_pixel_centers"))
def _resize_nearest(input_x: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Resize images (N, C, H, W) to nearest neighbours."""
    for axis, length in zip((2, 3), two_sizes(size)):
        input_x = input_x.index_select(axis, _nearest(input_x.shape[axis], int(length), align_corners, half_pixel_centers, input_x.device))
    return input_x


def _nearest(length: int, new_length: int, align: bool, half: bool, device: Any) -> T:
    if align and half:
        raise ValueError("align_corners=True, half_pixel_centers=True: expected one of the two.")
    at = torch.arange(new_length, dtype=torch.float32)
    scale = (length - 1) / (new_length - 1) if align and new_length > 1 else length / new_length
    at = (at + 0.5) * scale if half else at * scale
    at = torch.floor(at + 0.5 if align else at)                # a half is rounded up, not to the even number
    return at.clamp(0, length - 1).long().to(device, non_blocking=True)


@op()
def interpolate(
    input: T, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> T:
    """Resize; `mode` is 'nearest', 'linear', 'bilinear', 'bicubic', 'trilinear', 'area' or 'nearest-exact'."""
    return _interpolated(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def _interpolated(x: T, size: Any, scale: Any, mode: str, align_corners: bool | None, recompute: bool | None) -> T:
    if mode != "bicubic" or x.ndim != 4 or (size is None) == (scale is None):
        out = F.interpolate(x, size, scale, mode, align_corners, recompute)
        return x[..., :1].clone() if mode == "linear" and out.shape[-1] == 1 else out      # MindSpore's kernel takes the first value
    factors = (scale, scale) if isinstance(scale, (int, float)) else scale
    sizes = [int(n * f) for n, f in zip(x.shape[2:], factors)] if size is None else (size, size) if isinstance(size, int) else size
    for axis, length in zip((2, 3), sizes):
        x = _cubic(x, axis, int(length), bool(align_corners), not align_corners)
    return x


@op(primitive="ResizeBilinear", init=("size", "align_corners", "half_pixel_centers"))
def _resize_bilinear(x: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Resize images (N, C, H, W), bilinear; without `half_pixel_centers` the corner pixels stay at the corners."""
    if align_corners or half_pixel_centers:
        return F.interpolate(x, tuple(size), mode="bilinear", align_corners=align_corners)
    for axis, length in zip((2, 3), two_sizes(size)):
        x = _linear(x, axis, int(length))
    return x


def _linear(x: T, axis: int, new_length: int) -> T:
    length = x.shape[axis]
    at = torch.arange(new_length, dtype=torch.float32, device=x.device) * (length / new_length)
    low = at.floor().long().clamp(0, length - 1)
    high = (low + 1).clamp(max=length - 1)
    share = (at - low).to(x.dtype).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share


def sizes_of(size: Any) -> list[int]:
    """Return lengths from a tuple, a list or a Tensor."""
    return [int(length) for length in (size.tolist() if isinstance(size, T) else size)]


def two_sizes(size: Any) -> list[int]:
    """Return the height and the width. Raises ValueError unless there are two numbers."""
    lengths = sizes_of(size)
    if len(lengths) != 2:
        raise ValueError(f"expected a height and a width as size, got {len(lengths)} numbers.")
    return lengths


@op(primitive="ResizeBilinearV2", init=("align_corners", "half_pixel_centers"))
def _resize_bilinear_v2(image: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Resize images (N, C, H, W) to the size of the second argument, bilinear."""
    if align_corners or half_pixel_centers:
        return F.interpolate(image, two_sizes(size), mode="bilinear", align_corners=align_corners)
    for axis, length in zip((2, 3), two_sizes(size)):
        image = _linear(image, axis, length)
    return image


@op(primitive="ResizeNearestNeighborV2", init=("align_corners", "half_pixel_centers"))
def _resize_nearest_v2(image: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Resize images (N, C, H, W) to the size of the second argument, with nearest neighbours."""
    for axis, length in zip((2, 3), two_sizes(size)):
        image = image.index_select(axis, _nearest(image.shape[axis], length, align_corners, half_pixel_centers, image.device))
    return image


@op(primitive="ResizeBicubic", init=("align_corners", "half_pixel_centers"))
def _resize_bicubic(image: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Resize images (N, C, H, W) to the size of the second argument, by cubics through 16 neighbours (Keys, 1981)."""
    for axis, length in zip((2, 3), two_sizes(size)):
        image = _cubic(image, axis, length, align_corners, half_pixel_centers)
    return image


def _cubic(x: T, axis: int, new_length: int, align: bool, half: bool) -> T:
    """Resize one axis; the cubic's slope is -0.75 at integer positions and -0.5 at half ones, where neighbours outside are ignored."""
    length = x.shape[axis]
    scale = (length - 1) / (new_length - 1) if align and new_length > 1 else length / new_length
    at = torch.arange(new_length, dtype=torch.float32, device=x.device)
    at = (at + 0.5) * scale - 0.5 if half else at * scale
    low, slope = at.floor(), -0.5 if half else -0.75
    positions = torch.stack([low + k for k in (-1, 0, 1, 2)]).long()
    # MindSpore's kernels look up weights at multiples of 1/1024.
    share = torch.round((at - low) * 1024) / 1024
    distance = torch.stack([share + 1, share, 1 - share, 2 - share])
    near = ((slope + 2) * distance - (slope + 3)) * distance * distance + 1
    far = ((slope * distance - 5 * slope) * distance + 8 * slope) * distance - 4 * slope
    weights = torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))
    if half:
        weights = weights * ((positions >= 0) & (positions < length))
        weights = weights / weights.sum(0)
    out = None
    for index, weight in zip(positions.clamp(0, length - 1), weights.to(x.dtype)):
        part = x.index_select(axis, index) * weight.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
        out = part if out is None else out + part
    assert out is not None
    return out


@op(primitive="ResizeArea", init=("align_corners",))
def _resize_area(images: T, size: Any, align_corners: bool = False) -> T:
    """Resize images (N, H, W, C): each pixel is the mean of the area that it covers, float32."""
    out = images.float()
    for axis, new_length in zip((1, 2), two_sizes(size)):
        length = out.shape[axis]
        scale = (length - 1) / (new_length - 1) if align_corners and new_length > 1 else length / new_length
        begin = torch.arange(new_length, dtype=torch.float64, device=out.device).unsqueeze(1) * scale
        pixel = torch.arange(length, dtype=torch.float64, device=out.device)
        cover = (torch.minimum(begin + scale, pixel + 1) - torch.maximum(begin, pixel)).clamp(min=0)
        weights = (cover / cover.sum(1, keepdim=True)).float()
        out = torch.movedim(torch.movedim(out, axis, -1) @ weights.T, -1, axis)
    return out


@op(primitive="ResizeLinear1D", init=("coordinate_transformation_mode",))
def _resize_linear(x: T, size: Any, coordinate_transformation_mode: str = "align_corners") -> T:
    """Resize sequences (N, C, L), linear."""
    if coordinate_transformation_mode not in ("align_corners", "half_pixel"):
        raise ValueError(f"coordinate_transformation_mode={coordinate_transformation_mode!r}: expected 'align_corners' or 'half_pixel'.")
    lengths = [size] if isinstance(size, int) else sizes_of(size)
    if lengths == [1]:
        return x[..., :1].clone()
    return F.interpolate(x, lengths, mode="linear", align_corners=coordinate_transformation_mode == "align_corners")


def _volume(x: T, output_size: Any, scales: Any, mode: str, align_corners: bool | None) -> T:
    if (output_size is None) == (scales is None):
        raise ValueError("expected one of output_size and scales.")
    sizes = sizes_of(output_size) if output_size is not None else None
    return F.interpolate(x, sizes, None if scales is None else list(scales), mode, align_corners)


@op(primitive="UpsampleNearest3D")
def _upsample_nearest3d(x: T, output_size: Any = None, scales: Any = None) -> T:
    """Resize volumes (N, C, D, H, W), with nearest neighbours."""
    return _volume(x, output_size, scales, "nearest", None)


@op(primitive="UpsampleTrilinear3D", init=("align_corners",))
def _upsample_trilinear3d(x: T, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> T:
    """Resize volumes (N, C, D, H, W), trilinear."""
    return _volume(x, output_size, scales, "trilinear", align_corners)


@op()
def upsample(
    input: T, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> T:
    """Resize; `mode` is 'nearest', 'linear', 'bilinear', 'bicubic', 'trilinear', 'area' or 'nearest-exact'."""
    return _interpolated(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


@op()
def _resize_as_image(x: T, size: Any, scale_factor: Any, align_corners: bool) -> T:
    """Compute the layer ResizeBilinear of 1.x: bilinear, to `size` or to lengths times `scale_factor`."""
    if (size is None) == (scale_factor is None):
        raise ValueError(f"size={size}, scale_factor={scale_factor}: expected one of them.")
    lengths = sizes_of(size) if size is not None else [length * scale_factor for length in x.shape[2:]]
    if align_corners:
        return F.interpolate(x, lengths, mode="bilinear", align_corners=True)
    for axis, length in zip((2, 3), lengths):
        x = _linear(x, axis, length)
    return x
