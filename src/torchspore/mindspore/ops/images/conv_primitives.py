"""Primitives of 3-D, transposed and depthwise convolutions."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.engine.formulas.half_precision import run_convolution
from torchspore.mindspore.ops.declaration.declare import OPERATORS, op
from torchspore.mindspore.ops.gradients.grad_primitives import vjp
from torchspore.mindspore.ops.images.conv import convolve, convolve_transposed, pair, same_padding
from torchspore.mindspore.ops.linear_algebra.matrix_products import require_equal_dtypes

T = torch.Tensor
Size = Any


def _check(
    mode: int, data_format: str, weight: T, kernel: Any, first: int, expected_count: tuple[str, int], expected_mode: int = 1,
) -> None:
    """Raises ValueError if the constructor's arguments do not fit the weight."""
    if mode != expected_mode:
        raise ValueError(f"mode={mode!r}: expected {expected_mode}.")
    if data_format not in ("NCHW", "NCDHW"):
        raise ValueError(f"data_format={data_format!r}: expected 'NCHW', or 'NCDHW' for volumes.")
    name, count = expected_count
    if tuple(weight.shape[2:]) != kernel or first != count:
        raise ValueError(f"{name}={count}, kernel_size={kernel}: they do not fit a weight of shape {tuple(weight.shape)}.")


@op(primitive="Conv3D", init=("out_channel", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group", "data_format"))
def _conv3d(
    x: T, weight: T, out_channel: int, kernel_size: Size, mode: int = 1, pad_mode: str = "valid", pad: Any = 0, stride: Size = 1,
    dilation: Size = 1, group: int = 1, data_format: str = "NCDHW",
) -> T:
    """Convolution of (N, C, D, H, W) with weight (out, C / group, KD, KH, KW)."""
    _check(mode, data_format, weight, pair(kernel_size, 3), weight.shape[0], ("out_channel", out_channel))
    return convolve(3, x, weight, None, stride, pad_mode, pad, dilation, group)


def _to_size(x: T, weight: T, size: Any, pad_mode: str, pad: Any, pad_list: Any, stride: Any, dilation: Any, group: int) -> T:
    """Return the gradient with respect to an input of `size` of a convolution whose output gradient is x."""
    require_equal_dtypes(x, weight)
    sizes = [int(n) for n in (size.tolist() if isinstance(size, T) else size)]
    stride, dilation, kernel = pair(stride), pair(dilation), weight.shape[2:]
    mode = pad_mode.lower()
    if mode == "same":
        right = same_padding(sizes[2:], kernel, stride, dilation)
        pads = [right[2], right[3], right[0], right[1]]
    elif mode == "pad":
        requested_pads = pad if pad_list is None else pad_list
        pads = [requested_pads] * 4 if isinstance(requested_pads, int) else [int(p) for p in requested_pads]
    else:
        pads = [0] * 4
    full = run_convolution(F.conv_transpose2d, x, weight, None, stride, 0, 0, group, dilation)
    ends = [sizes[2 + a] + pads[2 * a] - full.shape[2 + a] for a in (0, 1)]
    return F.pad(full, [-pads[2], ends[1], -pads[0], ends[0]])


_TRANSPOSED = ("out_channel", "kernel_size", "pad_mode", "pad", "pad_list", "mode", "stride", "dilation", "group", "data_format")


@op(primitive="Conv2DTranspose", init=_TRANSPOSED)
def _conv2d_transpose(
    dout: T, weight: T, input_size: Any, out_channel: int, kernel_size: Size, pad_mode: str = "valid", pad: Any = 0, pad_list: Any = None,
    mode: int = 1, stride: Size = 1, dilation: Size = 1, group: int = 1, data_format: str = "NCHW",
) -> T:
    """The transposed convolution of (N, C, H, W) with weight (C, out / group, KH, KW), of the shape `input_size`."""
    _check(mode, data_format, weight, pair(kernel_size), weight.shape[0], ("out_channel", out_channel))
    return _to_size(dout, weight, input_size, pad_mode, pad, pad_list, stride, dilation, group)


@op(primitive="Conv2DBackpropInput", init=_TRANSPOSED)
def _conv2d_backprop_input(
    dout: T, weight: T, input_size: Any, out_channel: int, kernel_size: Size, pad_mode: str = "valid", pad: Any = 0, pad_list: Any = None,
    mode: int = 1, stride: Size = 1, dilation: Size = 1, group: int = 1, data_format: str = "NCHW",
) -> T:
    """The gradient of a convolution's input of shape `input_size`, from the gradient of its output."""
    _check(mode, data_format, weight, pair(kernel_size), weight.shape[0], ("out_channel", out_channel))
    return _to_size(dout, weight, input_size, pad_mode, pad, pad_list, stride, dilation, group)


@op(primitive="Conv3DBackpropInput", init=(
    "out_channel", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group", "data_format",
))
def _conv3d_backprop_input(
    filter: T, out_backprop: T, input_size: Any, out_channel: int, kernel_size: Size, mode: int = 1, pad_mode: str = "valid", pad: Any = 0,
    stride: Size = 1, dilation: Size = 1, group: int = 1, data_format: str = "NCDHW",
) -> T:
    """The gradient of Conv3D's input of shape `input_size`, from the gradient of its output."""
    size = input_size.tolist() if isinstance(input_size, T) else input_size
    input_zeros = torch.zeros([int(length) for length in size], dtype=out_backprop.dtype, device=out_backprop.device)
    options: dict[str, Any] = {"mode": mode, "pad_mode": pad_mode, "pad": pad, "stride": stride, "dilation": dilation, "group": group}
    forward = OPERATORS["_conv3d"].body
    return vjp(lambda x: forward(x, filter, out_channel, kernel_size, data_format=data_format, **options), (input_zeros,), out_backprop)[0]


@op()
def conv3d_transpose(
    inputs: T, weight: T, pad_mode: str = "valid", padding: Any = 0, stride: Size = 1, dilation: Size = 1, group: int = 1,
    output_padding: Any = 0,
) -> T:
    """The transposed convolution of (N, C, D, H, W) with weight (C, out / group, KD, KH, KW)."""
    require_equal_dtypes(inputs, weight)
    return convolve_transposed(inputs, weight, None, stride, pad_mode.lower(), padding, output_padding, dilation, group)


@op(primitive="Conv3DTranspose", init=(
    "in_channel", "out_channel", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group", "output_padding", "data_format",
))
def _conv3d_transpose(
    dout: T, weight: T, bias: T | None = None, *, in_channel: int, out_channel: int, kernel_size: Size, mode: int = 1,
    pad_mode: str = "valid", pad: Any = 0, stride: Size = 1, dilation: Size = 1, group: int = 1, output_padding: Any = 0,
    data_format: str = "NCDHW",
) -> T:
    """The transposed convolution of (N, C, D, H, W) with weight (C, out / group, KD, KH, KW)."""
    _check(mode, data_format, weight, pair(kernel_size, 3), weight.shape[0], ("in_channel", in_channel))
    if weight.shape[1] * group != out_channel:
        raise ValueError(f"out_channel={out_channel}: expected {weight.shape[1] * group}, as the weight has.")
    require_equal_dtypes(dout, weight)
    return convolve_transposed(dout, weight, bias, stride, pad_mode.lower(), pad, output_padding, dilation, group)


@op(primitive="DepthwiseConv2dNative", init=(
    "channel_multiplier", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group",
))
def _depthwise_conv2d(
    x: T, weight: T, channel_multiplier: int, kernel_size: Size, mode: int = 3, pad_mode: str = "valid", pad: Any = 0, stride: Size = 1,
    dilation: Size = 1, group: int = 1,
) -> T:
    """Convolve each channel of (N, C, H, W) with its own kernels: weight (channel_multiplier, C, KH, KW).

    The results of one channel are adjacent. The number of groups is always C; 1.x accepted `group` and ignored it, and so does this.
    """
    _check(mode, "NCHW", weight, pair(kernel_size), weight.shape[0], ("channel_multiplier", channel_multiplier), 3)
    if not is_int(group) or group < 1:
        raise ValueError(message(f"group={group!r}", "an int from 1 on"))
    channels = x.shape[1]
    kernels = weight.transpose(0, 1).reshape(channels * channel_multiplier, 1, *weight.shape[2:])
    return convolve(2, x, kernels, None, stride, pad_mode, pad, dilation, channels)
