"""Windows of images (N, H, W, C), and images that are moved and scaled with a choice of filters."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchspore.engine.random.generators import drawing
from torchspore.engine.random.seeded_streams import stream
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.gradients.grad_primitives import vjp

T = torch.Tensor


def _image(x: T) -> None:
    if x.ndim != 4:
        raise ValueError(f"expected images of shape (N, H, W, C), got {tuple(x.shape)}.")


def _pair(name: str, value: Any) -> list[int]:
    numbers = sizes(value)
    if len(numbers) != 2 or min(numbers) < 1:
        raise ValueError(f"expected two numbers above 0 as {name}, got {numbers}.")
    return numbers


def _first(offset: T, length: int, window: int, centered: bool, normalized: bool) -> T:
    """Return where a window begins along one axis, truncated towards 0."""
    offset_in_pixels = offset.float() * length if normalized else offset.float()
    if centered:
        offset_in_pixels = offset_in_pixels / 2 + length / 2
    return (offset_in_pixels - window / 2).trunc().long()


@op(primitive="ExtractGlimpse", init=("centered", "normalized", "uniform_noise", "noise"))
def _glimpse(
    x: T, size: Any, offsets: T, centered: bool = True, normalized: bool = True, uniform_noise: bool = True, noise: str = "uniform",
) -> T:
    """Cut one window of `size` (height, width) out of each image of (N, H, W, C), around `offsets` (N, 2).

    Offsets are pixels from the upper left corner; `normalized`: fractions of height and width; `centered`: fractions of their halves, from
    the center. Pixels outside an image are noise: 'uniform' from -1 to 1, 'gaussian' (mean 10, deviation 0.5 as in MindSpore) or 'zero'.
    """
    _image(x)
    height, width = _pair("size", size)
    if uniform_noise and noise != "uniform":
        raise ValueError(f"noise={noise!r}: expected 'uniform' if uniform_noise=True.")
    if offsets.shape != (x.shape[0], 2):
        raise ValueError(f"expected offsets of shape {(x.shape[0], 2)}, got {tuple(offsets.shape)}.")
    rows = _first(offsets[:, 0], x.shape[1], height, centered, normalized).unsqueeze(1) + torch.arange(height, device=x.device)
    columns = _first(offsets[:, 1], x.shape[2], width, centered, normalized).unsqueeze(1) + torch.arange(width, device=x.device)
    inside = ((rows >= 0) & (rows < x.shape[1])).unsqueeze(2) & ((columns >= 0) & (columns < x.shape[2])).unsqueeze(1)
    number = torch.arange(x.shape[0], device=x.device).reshape(-1, 1, 1)
    seen = x[number, rows.clamp(0, x.shape[1] - 1).unsqueeze(2), columns.clamp(0, x.shape[2] - 1).unsqueeze(1)]
    return torch.where(inside.unsqueeze(-1), seen, _noise(noise, seen))


@drawing
def _noise(kind: str, like: T) -> T:
    source = stream(0).on(like.device)
    if kind == "uniform":
        return torch.rand(like.shape, generator=source, dtype=like.dtype, device=like.device) * 2 - 1
    if kind == "gaussian":
        return torch.randn(like.shape, generator=source, dtype=like.dtype, device=like.device) * 0.5 + 10
    return torch.zeros_like(like)


# ---- ScaleAndTranslate


def _lanczos(radius: int) -> Callable[[T], T]:
    def weigh(x: T) -> T:
        return torch.where(x > radius, 0, torch.where(x <= 1e-3, 1, torch.sinc(x) * torch.sinc(x / radius)))

    return weigh


def _keys_cubic(x: T) -> T:
    """Keys, 1981."""
    return torch.where(x >= 2, 0, torch.where(x >= 1, ((-0.5 * x + 2.5) * x - 4) * x + 2, (1.5 * x - 2.5) * x * x + 1))


def _mitchell_cubic(x: T) -> T:
    """Mitchell and Netravali, 1988, with B = C = 1/3."""
    return torch.where(
        x >= 2, 0, torch.where(x >= 1, ((-7 * x / 18 + 2) * x - 10 / 3) * x + 16 / 9, (7 * x / 6 - 2) * x * x + 8 / 9),
    )


_FILTERS: Mapping[str, tuple[float, Callable[[T], T]]] = {
    "lanczos1": (1, _lanczos(1)), "lanczos3": (3, _lanczos(3)), "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: torch.where(x >= 1.5, 0, torch.exp(-2 * x * x))),
    "box": (1, lambda x: torch.where(x < 0.5, 1.0, torch.where(x == 0.5, 0.5, 0.0))),
    "triangle": (1, lambda x: torch.where(x < 1, 1 - x, 0)),
    "keyscubic": (2, _keys_cubic), "mitchellcubic": (2, _mitchell_cubic),
}
"""The radius of each filter, and its weight as a function of the distance, from 0 on."""


def _weights(length: int, count: int, scale: T, translation: T, kernel_type: str, antialias: bool) -> T:
    """Return the weights of `length` pixels for each of `count` positions: (count, length); rows sum to 1, or 0 outside the image."""
    radius, weigh = _FILTERS[kernel_type]
    step = 1 / scale.double()
    reach = step.clamp(min=1) if antialias else torch.ones_like(step)
    at = (torch.arange(count, device=scale.device) + 0.5).unsqueeze(1) * step - step * translation.double()
    first = torch.ceil(at - radius * reach - 0.5).clamp(0, length - 1)
    last = torch.floor(at + radius * reach - 0.5).clamp(0, length - 1)
    pixel = torch.arange(length, device=scale.device, dtype=torch.float64)
    taken = (pixel >= first) & (pixel <= last) & (at >= 0) & (at <= length)
    weights = torch.where(taken, weigh(((pixel + 0.5 - at) / reach).abs()), 0)
    total = weights.sum(1, keepdim=True)
    return (weights / torch.where(total == 0, 1, total)).float()


def _both(shape: Any, size: list[int], scale: T, translation: T, kernel_type: str, antialias: bool) -> tuple[T, T]:
    for name, value in (("scale", scale), ("translation", translation)):
        if value.shape != (2,):
            raise ValueError(f"expected {name} of shape (2,), got {tuple(value.shape)}.")
    sides = zip(shape[1:3], size, scale, translation)
    rows, columns = (_weights(length, count, by, to, kernel_type, antialias) for length, count, by, to in sides)
    return rows, columns


@op(primitive="ScaleAndTranslate", init=("kernel_type", "antialias"))
def _scale_and_translate(images: T, size: Any, scale: T, translation: T, kernel_type: str = "lanczos3", antialias: bool = True) -> T:
    """Scale images (N, H, W, C) by `scale` (height, width), move them by `translation` pixels and cut them to `size`, as float32.

    The filter `kernel_type` weighs pixels; with `antialias` its radius grows where images shrink.
    """
    _image(images)
    rows, columns = _both(images.shape, _pair("size", size), scale, translation, kernel_type, antialias)
    return torch.einsum("yh,xw,nhwc->nyxc", rows, columns, images.float())


@op(primitive="ScaleAndTranslateGrad", init=("kernel_type", "antialias"))
def _scale_and_translate_grad(
    grads: T, original_image: T, scale: T, translation: T, kernel_type: str = "lanczos3", antialias: bool = True,
) -> T:
    """The gradient of ScaleAndTranslate for its images, of the shape of `original_image`."""
    rows, columns = _both(original_image.shape, list(grads.shape[1:3]), scale, translation, kernel_type, antialias)
    return torch.einsum("yh,xw,nyxc->nhwc", rows, columns, grads.float()).to(original_image.dtype)


# ---- Dilation2D


def _row_column_pair(name: str, value: Any) -> tuple[int, int]:
    """Return a stride or dilation for rows and columns, from an int, a tuple of two, or a tuple of four that begins with two ones."""
    numbers = (value, value) if type(value) is int else value
    if not isinstance(numbers, tuple):
        raise TypeError(f"{name}={value!r}: expected an int, or a tuple of two or four.")
    numbers = numbers[2:] if len(numbers) == 4 and numbers[:2] == (1, 1) else numbers
    if len(numbers) != 2 or any(type(number) is not int or number < 1 for number in numbers):
        raise ValueError(f"{name}={value!r}: expected ints above 0: one, two, or (1, 1, rows, columns).")
    return numbers[0], numbers[1]


def _dilated(x: T, filter: T, stride: Any, dilation: Any, pad_mode: str, data_format: str) -> T:
    """Return the elements of each window of `x` plus the filter: (N, C, rows, columns, elements of the filter)."""
    if data_format != "NCHW":
        raise ValueError(f"data_format={data_format!r}: expected 'NCHW'.")
    if pad_mode.upper() not in ("SAME", "VALID"):
        raise ValueError(f"pad_mode={pad_mode!r}: expected 'same' or 'valid'.")
    if x.ndim != 4 or filter.ndim != 3 or x.shape[1] != filter.shape[0]:
        raise ValueError(f"expected x of shape (N, C, H, W) and filter (C, rows, columns), got {tuple(x.shape)} and {tuple(filter.shape)}.")
    steps, gaps, taken = _row_column_pair("stride", stride), _row_column_pair("dilation", dilation), []
    for length, size, step, gap in zip(x.shape[2:], filter.shape[1:], steps, gaps):
        reach = (size - 1) * gap + 1
        before, count = 0, (length - reach) // step + 1
        if pad_mode.upper() == "SAME":
            count = math.ceil(length / step)
            before = max((count - 1) * step + reach - length, 0) // 2
        at = (torch.arange(max(count, 0), device=x.device) * step - before).unsqueeze(1) + torch.arange(size, device=x.device) * gap
        taken.append((at.clamp(0, max(length - 1, 0)), (at >= 0) & (at < length)))
    (rows, is_row), (columns, is_column) = taken
    inside = is_row[:, None, :, None] & is_column[None, :, None, :]
    values = x[:, :, rows[:, None, :, None], columns[None, :, None, :]] + filter[:, None, None]
    least = torch.finfo(x.dtype).min if x.is_floating_point() else torch.iinfo(x.dtype).min
    return torch.where(inside, values, least).flatten(-2)


_DILATION = ("stride", "dilation", "pad_mode", "data_format")


@op(primitive="Dilation2D", init=_DILATION)
def _dilation2d(x: T, filter: T, stride: Any, dilation: Any, pad_mode: str = "SAME", data_format: str = "NCHW") -> T:
    """The largest sum of a window of (N, C, H, W) and the filter (C, rows, columns), as in gray-scale morphology.

    The border that `pad_mode='same'` adds is ignored.
    """
    return _dilated(x, filter, stride, dilation, pad_mode, data_format).max(-1).values


def _dilation_back(by: int, x: T, filter: T, back: T, options: tuple[Any, ...]) -> T:
    """Return the gradient for x or for the filter; of equal sums, the first one gets it."""
    def forward(x: T, filter: T) -> T:
        return _dilated(x, filter, *options).max(-1).values

    sums = forward(x, filter)
    if sums.shape != back.shape:
        raise ValueError(f"expected out_backprop of shape {tuple(sums.shape)}, got {tuple(back.shape)}.")
    return vjp(forward, (x, filter), back)[by]


@op(primitive="Dilation2DBackpropInput", init=_DILATION)
def _dilation_input(
    x: T, filter: T, out_backprop: T, stride: Any, dilation: Any, pad_mode: str = "SAME", data_format: str = "NCHW",
) -> T:
    """The gradient of Dilation2D for x."""
    return _dilation_back(0, x, filter, out_backprop, (stride, dilation, pad_mode, data_format))


@op(primitive="Dilation2DBackpropFilter", init=_DILATION)
def _dilation_filter(
    x: T, filter: T, out_backprop: T, stride: Any, dilation: Any, pad_mode: str = "SAME", data_format: str = "NCHW",
) -> T:
    """The gradient of Dilation2D for the filter."""
    return _dilation_back(1, x, filter, out_backprop, (stride, dilation, pad_mode, data_format))
