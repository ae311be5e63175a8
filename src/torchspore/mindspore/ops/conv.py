"""Convolutions, pooling and padding on images, with MindSpore's pad modes."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.mindspore.ops.declare import op
from torchspore.mindspore.ops.linear_algebra import same_dtype

T = torch.Tensor
Size = Any


def pair(value: Any, count: int = 2) -> tuple[int, ...]:
    """One int for each of the last `count` axes, from one int or a tuple; of four, as 1.x gave them, the last ones count."""
    return (int(value),) * count if isinstance(value, int) else tuple(int(v) for v in value)[-count:]


def same_padding(lengths: Any, kernel: Any, stride: Any, dilation: Any) -> list[int]:
    """What pad_mode 'same' adds, as torch's `pad` wants it (last axis first); an odd one comes at the end."""
    pads: list[int] = []
    for length, k, s, d in reversed(list(zip(lengths, kernel, stride, dilation))):
        total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
        pads += [total // 2, total - total // 2]
    return pads


def padded(x: T, pad_mode: str, padding: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[T, Any]:
    """x with what torch's own padding can't do, and the padding that is left to the kernel."""
    count = len(kernel)
    mode = pad_mode.lower()
    if mode == "valid":
        return x, (0,) * count
    if mode == "same":
        pads = same_padding(x.shape[-count:], kernel, stride, dilation)
    elif mode == "pad":
        given = (padding,) * (2 * count) if isinstance(padding, int) else tuple(padding)
        if len(given) == count:
            given = tuple(p for p in given for _ in (0, 1))
        pads = [p for axis in reversed(range(count)) for p in given[2 * axis: 2 * axis + 2]]
    else:
        raise ValueError(f"pad_mode={pad_mode!r}: expected 'same', 'valid' or 'pad'.")
    if all(pads[i] == pads[i + 1] for i in range(0, len(pads), 2)):
        return x, tuple(reversed(pads[::2]))
    return F.pad(x, pads), (0,) * count


def convolve(count: int, x: T, weight: T, bias: T | None, stride: Any, pad_mode: str, padding: Any, dilation: Any, groups: int) -> T:
    """A convolution over the last `count` axes."""
    same_dtype(x, weight)
    stride, dilation = pair(stride, count), pair(dilation, count)
    x, rest = padded(x, pad_mode, padding, weight.shape[-count:], stride, dilation)
    return (F.conv1d, F.conv2d, F.conv3d)[count - 1](x, weight, bias, stride, rest, dilation, groups)


@op()
def conv1d(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Size = 1,
    groups: int = 1,
) -> T:
    """Convolution of (N, C, L) with weight (out, C / groups, K)."""
    return convolve(1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@op()
def conv2d(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Size = 1,
    groups: int = 1,
) -> T:
    """Convolution of (N, C, H, W) with weight (out, C / groups, KH, KW)."""
    return convolve(2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@op()
def conv3d(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Size = 1,
    groups: int = 1,
) -> T:
    """Convolution of (N, C, D, H, W) with weight (out, C / groups, KD, KH, KW)."""
    return convolve(3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@op(primitive="Conv2D", init=("out_channel", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group", "data_format"))
def _conv2d(
    x: T, weight: T, out_channel: int, kernel_size: Size, mode: int = 1, pad_mode: str = "valid", pad: Any = 0, stride: Size = 1,
    dilation: Size = 1, group: int = 1, data_format: str = "NCHW",
) -> T:
    """Convolution of (N, C, H, W), or (N, H, W, C) in data_format 'NHWC', with weight (out, C / group, KH, KW)."""
    if mode != 1:
        raise ValueError(f"mode={mode!r}: expected 1.")
    if data_format == "NHWC":
        x, weight = x.permute(0, 3, 1, 2), weight.permute(0, 3, 1, 2)
    kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
    if tuple(weight.shape[2:]) != kernel or weight.shape[0] != out_channel:
        raise ValueError(
            f"out_channel={out_channel}, kernel_size={kernel_size}: expected a weight of {out_channel} kernels of {kernel}, got "
            f"{weight.shape[0]} of {tuple(weight.shape[2:])}."
        )
    out = convolve(2, x, weight, None, stride, pad_mode, pad, dilation, group)
    return out.permute(0, 2, 3, 1) if data_format == "NHWC" else out


def convolve_transposed(
    x: T, weight: T, bias: T | None, stride: Any, pad_mode: str, padding: Any, output_padding: Any, dilation: Any, groups: int,
) -> T:
    """A transposed convolution over the last axes; weight (in, out / groups, kernel...)."""
    count = weight.ndim - 2
    stride, dilation, kernel = pair(stride, count), pair(dilation, count), weight.shape[2:]
    call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[count - 1]
    if pad_mode == "valid":
        out = call(x, weight, bias, stride, 0, 0, groups, dilation)
        grown = [max(s - ((k - 1) * d + 1), 0) for s, k, d in zip(stride, kernel, dilation)]
        return F.pad(out, [p for g in reversed(grown) for p in (0, g)]) if any(grown) else out
    if pad_mode == "pad":
        pads = (padding,) * count if isinstance(padding, int) else tuple(padding)
        if len(pads) == 2 * count and all(pads[i] == pads[i + 1] for i in range(0, 2 * count, 2)):
            pads = pads[::2]
        if len(pads) == count:
            return call(x, weight, bias, stride, pads, pair(output_padding, count), groups, dilation)
        return _cropped(call(x, weight, bias, stride, 0, pair(output_padding, count), groups, dilation), list(pads))
    full = call(x, weight, bias, stride, 0, 0, groups, dilation)
    pads = []
    for length, size, s in zip(x.shape[2:], full.shape[2:], stride):
        extra = size - length * s
        pads += [extra // 2, extra - extra // 2] if extra > 0 else [0, extra]
    return _cropped(full, pads)


def _cropped(x: T, pads: list[int]) -> T:
    """Without `pads` elements at the ends of the last axes; a negative count adds zeros."""
    return F.pad(x, [-p for axis in reversed(range(len(pads) // 2)) for p in pads[2 * axis: 2 * axis + 2]])


@op()
def conv_transpose2d(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, padding: Size = 0, output_padding: Size = 0, groups: int = 1,
    dilation: Size = 1,
) -> T:
    """Transposed convolution of (N, C, H, W) with weight (C, out / groups, KH, KW)."""
    return F.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def pool(
    kind: str, x: T, kernel_size: Size, stride: Size, pad_mode: str, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> T:
    """Pooling over the last axes by 'max' or 'avg'; with pad_mode 'same' an average counts only what was there."""
    count = x.ndim - 2
    if not 1 <= count <= 3:
        raise ValueError(f"expected an input such as (N, C, H, W), got shape {tuple(x.shape)}.")
    kernel, stride = pair(kernel_size, count), pair(stride, count)
    call = {"max": (F.max_pool1d, F.max_pool2d, F.max_pool3d), "avg": (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)}[kind][count - 1]
    mode = pad_mode.lower()
    if mode == "same":
        pads = same_padding(x.shape[2:], kernel, stride, (1,) * count)
        if any(pads):
            return _pool_padded(kind, call, x, kernel, stride, pads)
        return call(x, kernel, stride)
    rest = pair(padding, count) if mode == "pad" else (0,) * count
    if kind == "max":
        return call(x, kernel, stride, rest, ceil_mode=ceil_mode)
    return call(x, kernel, stride, rest, ceil_mode, count_include_pad)


def _pool_padded(kind: str, call: Any, x: T, kernel: Any, stride: Any, pads: list[int]) -> T:
    if kind == "max":
        return call(F.pad(x, pads, value=float("-inf")), kernel, stride)
    share = call(F.pad(torch.ones_like(x[:1, :1]), pads), kernel, stride)
    return call(F.pad(x, pads), kernel, stride) / share


@op(primitive="MaxPool", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _max_pool(x: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "valid", data_format: str = "NCHW") -> T:
    """The largest value in each window of (N, C, H, W)."""
    return _in_format(lambda t: pool("max", t, kernel_size, strides, pad_mode), x, data_format)


@op(primitive="AvgPool", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _avg_pool(x: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID", data_format: str = "NCHW") -> T:
    """The mean of each window of (N, C, H, W)."""
    return _in_format(lambda t: pool("avg", t, kernel_size, strides, pad_mode), x, data_format)


def _in_format(function: Any, x: T, data_format: str) -> T:
    return function(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) if data_format == "NHWC" else function(x)


@op()
def max_pool2d(
    x: T, kernel_size: Size, stride: Size = None, padding: Size = 0, dilation: Size = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """The largest value in each window of (N, C, H, W), and with `return_indices` where it lay (int64)."""
    return F.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@op()
def avg_pool2d(
    input_x: T, kernel_size: Size = 1, stride: Size = 1, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int = 0,
) -> T:
    """The mean of each window of (N, C, H, W)."""
    return F.avg_pool2d(input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override or None)


@op()
def adaptive_avg_pool2d(input: T, output_size: Any) -> T:
    """The means of windows chosen so that the result has `output_size`; None keeps a length."""
    return F.adaptive_avg_pool2d(input, output_size)


@op(primitive="AdaptiveAvgPool2D", init=("output_size",))
def _adaptive_avg_pool2d(input_x: T, output_size: Any) -> T:
    """The means of windows chosen so that the result has `output_size`; None keeps a length."""
    return F.adaptive_avg_pool2d(input_x, output_size)


@op(primitive="Pad", init=("paddings",))
def _pad(input_x: T, paddings: Any) -> T:
    """Zeros before and after each axis, as the rows of `paddings` say."""
    return F.pad(input_x, [p for row in reversed(paddings) for p in row])


@op()
def pad(input_x: T, padding: Any, mode: str = "constant", value: Any = None) -> T:
    """Filled up at the ends of the last axes first; `mode` is 'constant', 'reflect', 'replicate' or 'circular'."""
    pads = [int(p) for p in (padding.tolist() if isinstance(padding, T) else padding)]
    return F.pad(input_x, pads, mode, (0 if value is None else value) if mode == "constant" else None)


@op(primitive="MirrorPad", init=("mode",))
def mirror_pad(input_x: T, paddings: Any, mode: str = "REFLECT") -> T:
    """Mirrored at the ends: without the border in mode 'REFLECT', with it in 'SYMMETRIC'."""
    rows = paddings.tolist() if isinstance(paddings, T) else paddings
    for axis, (before, after) in enumerate(rows):
        length, skip = input_x.shape[axis], mode == "REFLECT"
        index = [*range(before - 1 + skip, skip - 1, -1), *range(length), *range(length - 1 - skip, length - 1 - skip - after, -1)]
        input_x = input_x.index_select(axis, torch.tensor(index, device=input_x.device))
    return input_x


@op(primitive="ResizeNearestNeighbor", init=("size", "align_corners", "half_pixel_centers"))
def _resize_nearest(input_x: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Images (N, C, H, W) at another size, each pixel from its nearest neighbour."""
    for axis, length in zip((2, 3), size):
        input_x = input_x.index_select(axis, _nearest(input_x.shape[axis], int(length), align_corners, half_pixel_centers, input_x.device))
    return input_x


def _nearest(length: int, wanted: int, align: bool, half: bool, device: Any) -> T:
    at = torch.arange(wanted, dtype=torch.float32)
    scale = (length - 1) / (wanted - 1) if align and wanted > 1 else length / wanted
    at = (at + 0.5) * scale if half else at * scale
    at = torch.round(at) if align else torch.floor(at)
    return at.clamp(0, length - 1).long().to(device)


@op()
def interpolate(
    input: T, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> T:
    """Values at another size; `mode` is 'nearest', 'linear', 'bilinear', 'bicubic', 'trilinear', 'area' or 'nearest-exact'."""
    return F.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


@op(primitive="ResizeBilinear", init=("size", "align_corners", "half_pixel_centers"))
def _resize_bilinear(x: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """Images (N, C, H, W) at another size, bilinear; without `half_pixel_centers` the corner pixels keep their corners."""
    if align_corners or half_pixel_centers:
        return F.interpolate(x, tuple(size), mode="bilinear", align_corners=align_corners)
    for axis, length in zip((2, 3), size):
        x = _linear(x, axis, int(length))
    return x


def _linear(x: T, axis: int, wanted: int) -> T:
    length = x.shape[axis]
    at = torch.arange(wanted, dtype=torch.float32, device=x.device) * (length / wanted)
    low = at.floor().long().clamp(0, length - 1)
    high = (low + 1).clamp(max=length - 1)
    share = (at - low).to(x.dtype).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share


@op()
def _conv_transposed(
    input: T, weight: T, bias: T | None, stride: Any, pad_mode: str, padding: Any, output_padding: Any, dilation: Any, groups: int,
) -> T:
    """A transposed convolution with MindSpore's pad modes, for the layers."""
    same_dtype(input, weight)
    return convolve_transposed(input, weight, bias, stride, pad_mode, padding, output_padding, dilation, groups)


@op()
def _pooling(
    input: T, kind: str, kernel_size: Size, stride: Size, pad_mode: str, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> T:
    """Pooling by 'max' or 'avg' with MindSpore's pad modes, for the layers."""
    return pool(kind, input, kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)
