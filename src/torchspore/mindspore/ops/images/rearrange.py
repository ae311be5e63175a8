"""Move pixels into channels and back, windows into columns and back."""
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.images.resize import sizes_of

T = torch.Tensor


@op()
def pixel_shuffle(input: T, upscale_factor: int) -> T:
    """(..., C * r * r, H, W) as (..., C, H * r, W * r), with r the `upscale_factor`."""
    return F.pixel_shuffle(input, upscale_factor)


@op()
def pixel_unshuffle(input: T, downscale_factor: int) -> T:
    """(..., C, H * r, W * r) as (..., C * r * r, H, W), with r the `downscale_factor`."""
    return F.pixel_unshuffle(input, downscale_factor)


def _shuffled(x: T, groups: int) -> T:
    if not is_int(groups):
        raise TypeError(f"expected an int as the number of groups, got {type(groups).__name__}.")
    if groups < 1:
        raise ValueError(message(f"{groups} groups", "an int from 1 on"))
    if x.ndim < 3 or x.shape[1] % groups:
        raise ValueError(f"{groups} groups: expected an input (N, C, L, ...) whose C they divide, got shape {tuple(x.shape)}.")
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]).transpose(1, 2).reshape(x.shape)


def _four(value: Any) -> Any:
    """Return sizes in torch's form: one or two ints."""
    lengths = (value, value) if isinstance(value, int) else tuple(value)
    return lengths * 2 if len(lengths) == 1 else lengths


@op(methods=("unfold",))
def unfold(input: T, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> T:
    """Each window of (N, C, H, W) as a column: (N, C * KH * KW, windows)."""
    return F.unfold(input, _four(kernel_size), _four(dilation), _four(padding), _four(stride))


@op()
def fold(input: T, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> T:
    """Sum columns (N, C * KH * KW, windows), or (N, C, KH * KW, windows), into an image (N, C, *output_size)."""
    return fold_columns(input.flatten(1, -2), sizes_of(output_size), kernel_size, dilation, padding, stride)


def fold_columns(columns: T, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> T:
    """Sum columns (N, C * KH * KW, windows) into an image (N, C, *output_size).

    Raises ValueError if the sizes do not mean this number of windows: torch loops over a large padding before it checks the number.
    """
    sizes = [_four(value) for value in (output_size, kernel_size, dilation, padding, stride)]
    if all(len(pair) == 2 and all(isinstance(value, int) for value in pair) for pair in sizes) and 0 not in sizes[4]:
        windows = math.prod((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(*sizes, strict=True))
        if windows != columns.shape[-1]:
            raise ValueError(
                f"expected {windows} columns for output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, "
                f"padding={padding} and stride={stride}, got {columns.shape[-1]}.")
    return F.fold(columns, *sizes)


@op(primitive="Im2Col", init=("ksizes", "strides", "dilations", "pads"))
def _im2col(x: T, ksizes: Any, strides: Any = 1, dilations: Any = 1, pads: Any = 0) -> T:
    """Each window of (N, C, H, W) as a column: (N, C, KH * KW, windows)."""
    columns = F.unfold(x, _four(ksizes), _four(dilations), _four(pads), _four(strides))
    return columns.reshape(x.shape[0], x.shape[1], -1, columns.shape[-1])


@op(primitive="Col2Im", init=("kernel_size", "dilation", "padding", "stride"))
def _col2im(x: T, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> T:
    """Sum columns (N, C, KH * KW, windows) into an image (N, C, *output_size)."""
    return _image(x, output_size, kernel_size, dilation, padding, stride)


@op()
def col2im(input_x: T, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> T:
    """Sum columns (N, C, KH * KW, windows) into an image (N, C, *output_size)."""
    return _image(input_x, output_size, kernel_size, dilation, padding_value, stride)


def _image(x: T, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> T:
    columns = x.reshape(x.shape[0], -1, x.shape[-1])
    return fold_columns(columns, sizes_of(output_size), kernel_size, dilation, padding, stride)


@op(primitive="ExtractImagePatches", init=("ksizes", "strides", "rates", "padding"))
def _extract_image_patches(input_x: T, ksizes: Any, strides: Any, rates: Any, padding: str = "VALID") -> T:
    """Each window of (N, C, H, W) as the channels of one pixel: (N, KH * KW * C, rows, columns); channels of one pixel are adjacent.

    The sizes are (1, rows, columns, 1) or (1, 1, rows, columns); with padding 'same' windows begin at every step, with zeros at the edge.
    """
    kernel, stride, rate = (_inner(name, value) for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)))
    for name, lengths in (("ksizes", kernel), ("strides", stride), ("rates", rate)):
        if min(lengths) < 1:
            raise ValueError(f"{name}={lengths!r}: expected ints from 1 on.")
    mode = padding.lower()
    if mode not in ("same", "valid"):
        raise ValueError(f"padding={padding!r}: expected 'same' or 'valid'.")
    if mode == "same":
        from torchspore.mindspore.ops.images.conv import same_padding

        input_x = F.pad(input_x, same_padding(input_x.shape[2:], kernel, stride, rate))
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(input_x.shape[2:], kernel, stride, rate)]
    columns = F.unfold(input_x, kernel, rate, 0, stride).reshape(input_x.shape[0], input_x.shape[1], -1, *counts)
    return columns.transpose(1, 2).reshape(input_x.shape[0], -1, *counts)


@op(primitive="ExtractVolumePatches", init=("kernel_size", "strides", "padding"))
def _extract_volume_patches(input_x: T, kernel_size: Any, strides: Any, padding: str) -> T:
    """Each window of (N, C, D, H, W) as channels of one position: (N, KD * KH * KW * C, depth, rows, columns); C of one voxel is adjacent.

    The sizes are an int or (1, 1, depth, rows, columns); with padding 'same' windows begin at every step, with zeros at the edge.
    """
    kernel, stride = _inner_volume("kernel_size", kernel_size), _inner_volume("strides", strides)
    mode = padding.lower()
    if mode not in ("same", "valid"):
        raise ValueError(f"padding={padding!r}: expected 'same' or 'valid'.")
    if mode == "same":
        from torchspore.mindspore.ops.images.conv import same_padding

        input_x = F.pad(input_x, same_padding(input_x.shape[2:], kernel, stride, (1, 1, 1)))
    windows = input_x
    for axis, (size, step) in enumerate(zip(kernel, stride)):
        windows = windows.unfold(axis + 2, size, step)
    windows = windows.permute(0, 5, 6, 7, 1, 2, 3, 4)                 # (N, KD, KH, KW, C, depth, rows, columns)
    return windows.reshape(input_x.shape[0], -1, *windows.shape[-3:])


def _inner_volume(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value, value, value)
    if len(value) == 3:
        return tuple(value)
    if len(value) != 5 or tuple(value[:2]) != (1, 1):
        raise ValueError(f"{name}={value!r}: expected (1, 1, depth, rows, columns).")
    return tuple(value[2:])


def _inner(name: str, value: Any) -> tuple[int, int]:
    if len(value) != 4 or value[0] != 1 or (value[1] != 1 and value[3] != 1):
        raise ValueError(f"{name}={value!r}: expected (1, rows, columns, 1).")
    return tuple(value[1:3]) if value[3] == 1 else tuple(value[2:4])
