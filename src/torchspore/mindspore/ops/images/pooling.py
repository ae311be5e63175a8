"""Pooling and its inverse, with MindSpore's pad modes."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.text import message, with_type
from torchspore.engine.random.generators import drawing
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.images.conv import pair, same_padding

T = torch.Tensor
Size = Any


def pool(
    kind: str, x: T, kernel_size: Size, stride: Size, pad_mode: str, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: int | None = None,
) -> T:
    """Pooling over the last axes by 'max' or 'avg'; window sums are divided by `divisor`, if present.

    With pad_mode 'same', an average counts only existing elements. With `count_include_pad`, MindSpore counts the padding over three axes,
    and with `ceil_mode` over one and two.
    """
    if pad_mode.lower() not in ("valid", "same", "pad"):
        raise ValueError(f"pad_mode={pad_mode!r:.40}: expected 'valid', 'same' or 'pad'.")
    count = x.ndim - 2
    if not 1 <= count <= 3:
        raise ValueError(f"expected an input such as (N, C, H, W), got shape {tuple(x.shape)}.")
    if kind == "avg" and not (x.is_floating_point() or x.is_complex()):
        hint = "cast it, for example with astype(mindspore.float32)."
        raise TypeError(f"expected floating-point numbers, got {dtypes.FROM_TORCH[x.dtype]}.\n\nhint: {hint}")
    kernel, stride = pair(kernel_size, count), pair(stride, count)
    call = {"max": (F.max_pool1d, F.max_pool2d, F.max_pool3d), "avg": (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)}[kind][count - 1]
    mode = pad_mode.lower()
    if mode == "same":
        pads = same_padding(x.shape[2:], kernel, stride, (1,) * count)
        if not any(pads):
            return call(x, kernel, stride, divisor_override=divisor) if divisor else call(x, kernel, stride)
        return _pool_padded(kind, call, x, kernel, stride, pads, count_include_pad and (count == 3 or ceil_mode), divisor)
    rest = pair(padding, count) if mode == "pad" else (0,) * count
    if kind == "max":
        return call(x, kernel, stride, rest, ceil_mode=ceil_mode)
    rest = (x, kernel, stride, rest, ceil_mode, count_include_pad)
    return call(*rest, divisor) if divisor else call(*rest)


def _pool_padded(kind: str, call: Any, x: T, kernel: Any, stride: Any, pads: list[int], counts_pads: bool, divisor: int | None) -> T:
    if kind == "max":
        return call(F.pad(x, pads, value=float("-inf")), kernel, stride)
    if divisor:
        return call(F.pad(x, pads), kernel, stride, divisor_override=divisor)
    if counts_pads:
        return call(F.pad(x, pads), kernel, stride)
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
    if x.ndim != 4:
        raise ValueError(f"expected an input of 4 axes, such as (N, C, H, W), got shape {tuple(x.shape)}.")
    return function(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) if data_format == "NHWC" else function(x)


@op()
def max_pool2d(
    x: T, kernel_size: Size, stride: Size = None, padding: Size = 0, dilation: Size = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """The largest value in each window of (N, C, H, W), and with `return_indices` its position (int64)."""
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
    """The means of windows whose size follows from `output_size`; None keeps a length."""
    return F.adaptive_avg_pool2d(input, output_size)


@op(primitive="AdaptiveAvgPool2D", init=("output_size",))
def _adaptive_avg_pool2d(input_x: T, output_size: Any) -> T:
    """The means of windows whose size follows from `output_size`; None keeps a length."""
    return F.adaptive_avg_pool2d(input_x, output_size)


@op()
def _pooling(
    input: T, kind: str, kernel_size: Size, stride: Size, pad_mode: str, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: int | None = None,
) -> T:
    """Pooling by 'max' or 'avg' with MindSpore's pad modes, for the layers."""
    return pool(kind, input, kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor)


def _unpadded(padding: Any, count: int) -> tuple[int, ...]:
    """Return one padding for each axis, from an int, one for each axis, or equal ones for both ends of each axis."""
    pads = (padding,) * count if isinstance(padding, int) else tuple(int(p) for p in padding)
    if len(pads) == 1:
        return pads * count
    if len(pads) == 2 * count and all(pads[i] == pads[i + 1] for i in range(0, 2 * count, 2)):
        return pads[::2]
    if len(pads) != count:
        raise ValueError(f"padding={padding!r}: expected an int, or one int for each of {count} axes.")
    return pads


@op()
def avg_pool1d(
    input_x: T, kernel_size: Size = 1, stride: Size = 1, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
) -> T:
    """The mean of each window of (N, C, L)."""
    return F.avg_pool1d(input_x, pair(kernel_size, 1), pair(stride, 1), _unpadded(padding, 1), ceil_mode, count_include_pad)


@op()
def avg_pool3d(
    input_x: T, kernel_size: Size = 1, stride: Size = 1, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int = 0,
) -> T:
    """The mean of each window of (N, C, D, H, W); `divisor_override` replaces the window's size as divisor."""
    pads = _unpadded(padding, 3)
    return F.avg_pool3d(input_x, pair(kernel_size, 3), pair(stride, 3), pads, ceil_mode, count_include_pad, divisor_override or None)


@op()
def max_pool3d(
    x: T, kernel_size: Size, stride: Size = None, padding: Size = 0, dilation: Size = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value in each window of (N, C, D, H, W), and with `return_indices` its position (int64)."""
    return F.max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@op(primitive="MaxPool3D", init=("kernel_size", "strides", "pad_mode", "pad_list", "ceil_mode", "data_format"))
def _max_pool3d(
    x: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID", pad_list: Any = 0, ceil_mode: bool | None = None,
    data_format: str = "NCDHW",
) -> T:
    """The largest value in each window of (N, C, D, H, W)."""
    _check_format(data_format)
    if pad_mode.lower() == "pad":
        return _max_padded(x, pair(kernel_size, 3), pair(strides, 3), pad_list, bool(ceil_mode))
    return pool("max", x, kernel_size, strides, pad_mode)


def _max_padded(x: T, kernel: Any, stride: Any, pads: Any, ceil_mode: bool) -> T:
    """Max pooling with separate paddings for both ends of each axis: (before, after), first axis first."""
    all_pads = (pads,) * 6 if isinstance(pads, int) else tuple(pads)
    all_pads = tuple(p for p in all_pads for _ in (0, 1)) if len(all_pads) == 3 else all_pads
    filled = F.pad(x, [all_pads[4], all_pads[5], all_pads[2], all_pads[3], all_pads[0], all_pads[1]], value=float("-inf"))
    return F.max_pool3d(filled, kernel, stride, ceil_mode=ceil_mode)


def _check_format(data_format: str) -> None:
    if data_format != "NCDHW":
        raise ValueError(f"data_format={data_format!r}: expected 'NCDHW'.")


@op(primitive="AvgPool3D", init=(
    "kernel_size", "strides", "pad_mode", "pad", "ceil_mode", "count_include_pad", "divisor_override", "data_format",
))
def _avg_pool3d(
    x: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "valid", pad: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int = 0, data_format: str = "NCDHW",
) -> T:
    """The mean of each window of (N, C, D, H, W)."""
    _check_format(data_format)
    if pad_mode.lower() == "same":
        return pool("avg", x, kernel_size, strides, pad_mode, 0, ceil_mode, count_include_pad, divisor_override or None)
    if pad_mode.lower() not in ("valid", "pad"):
        raise ValueError(f"pad_mode={pad_mode!r:.40}: expected 'valid', 'same' or 'pad'.")
    pads = _unpadded(pad, 3) if pad_mode.lower() == "pad" else 0
    return F.avg_pool3d(x, pair(kernel_size, 3), pair(strides, 3), pads, ceil_mode, count_include_pad, divisor_override or None)


def _where(call: Any, x: T, kernel: Size, stride: Any, pads: Any, dilation: Any, ceil_mode: bool, argmax_type: Any) -> tuple[T, T]:
    out, at = call(x, kernel, stride, pads, dilation, ceil_mode, True)
    if argmax_type not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"argmax_type={argmax_type!r}: expected mindspore.int32 or mindspore.int64.")
    return out, at.to(dtypes.to_torch(argmax_type))


@op(primitive="MaxPoolWithArgmaxV2", init=("kernel_size", "strides", "pads", "dilation", "ceil_mode", "argmax_type"))
def _max_pool_argmax(
    x: T, kernel_size: Size, strides: Size = None, pads: Size = 0, dilation: Size = (1, 1), ceil_mode: bool = False,
    argmax_type: Any = dtypes.int64,
) -> Any:
    """The largest value in each window of (N, C, H, W), and its index in the flattened image."""
    return _where(F.max_pool2d, x, kernel_size, strides, pads, dilation, ceil_mode, argmax_type)


@op(primitive="MaxPool3DWithArgmax", init=("ksize", "strides", "pads", "dilation", "ceil_mode", "data_format", "argmax_type"))
def _max_pool3d_argmax(
    x: T, ksize: Size, strides: Size, pads: Size, dilation: Size = (1, 1, 1), ceil_mode: bool = False, data_format: str = "NCDHW",
    argmax_type: Any = dtypes.int64,
) -> Any:
    """The largest value in each window of (N, C, D, H, W), and its index in the flattened volume."""
    _check_format(data_format)
    return _where(F.max_pool3d, x, ksize, strides, pads, dilation, ceil_mode, argmax_type)


@op(primitive="MaxPoolWithArgmax", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _max_pool_with_argmax(x: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "valid", data_format: str = "NCHW") -> Any:
    """The largest value in each window of (N, C, H, W), and its index in the sample flattened over channels and pixels, as int32."""
    if pad_mode.lower() not in ("same", "valid"):
        raise ValueError(f"pad_mode={pad_mode!r:.40}: expected 'same' or 'valid'.")
    if data_format == "NHWC":
        x = x.permute(0, 3, 1, 2)
    kernel, stride = pair(kernel_size), pair(strides)
    pads = same_padding(x.shape[2:], kernel, stride, (1, 1)) if pad_mode.lower() == "same" else [0] * 4
    out, at = F.max_pool2d(F.pad(x, pads, value=float("-inf")), kernel, stride, return_indices=True)
    width = x.shape[3] + pads[0] + pads[1]
    at = (at // width - pads[2]) * x.shape[3] + at % width - pads[0]
    channel = torch.arange(x.shape[1], device=x.device).reshape(-1, 1, 1)
    at = (at + channel * x.shape[2] * x.shape[3]).int()
    return (out.permute(0, 2, 3, 1), at.permute(0, 2, 3, 1)) if data_format == "NHWC" else (out, at)


@op()
def adaptive_avg_pool1d(input: T, output_size: int) -> T:
    """The means of windows of (N, C, L) whose size follows from the length `output_size`."""
    return F.adaptive_avg_pool1d(input, output_size)


@op()
def adaptive_avg_pool3d(input: T, output_size: Any) -> T:
    """The means of windows whose size follows from `output_size`; None keeps a length."""
    return F.adaptive_avg_pool3d(input, output_size)


@op(primitive="AdaptiveAvgPool3D", init=("output_size",))
def _adaptive_avg_pool3d(input_x: T, output_size: Any) -> T:
    """The means of windows whose size follows from `output_size`; None keeps a length."""
    return F.adaptive_avg_pool3d(input_x, output_size)


@op()
def adaptive_max_pool1d(input: T, output_size: int) -> T:
    """The largest values in `output_size` windows of (N, C, L); `output_size` divides L."""
    if input.ndim != 3:
        raise ValueError(f"expected an input of shape (N, C, L), got {tuple(input.shape)}.")
    if input.shape[-1] % output_size:
        raise ValueError(f"output_size={output_size}: expected a divisor of the length {input.shape[-1]}.")
    return F.adaptive_max_pool1d(input, output_size)


@op()
def adaptive_max_pool2d(input: T, output_size: Any, return_indices: bool = False) -> Any:
    """The largest values in windows whose size follows from `output_size`; with `return_indices` also their positions (int64)."""
    return F.adaptive_max_pool2d(input, output_size, return_indices)


@op(primitive="AdaptiveMaxPool2D", init=("output_size",))
def _adaptive_max_pool2d(input: T, output_size: Any) -> Any:
    """The largest values in windows whose size follows from `output_size`, and their positions (int64)."""
    return F.adaptive_max_pool2d(input, output_size, True)


@op()
def adaptive_max_pool3d(input: T, output_size: Any, return_indices: bool = False) -> Any:
    """The largest values in windows whose size follows from `output_size`; with `return_indices` also their positions (int32)."""
    out, at = F.adaptive_max_pool3d(input, output_size, True)
    return (out, at.int()) if return_indices else out


@op(primitive="AdaptiveMaxPool3D")
def _adaptive_max_pool3d(input: T, output_size: Any) -> Any:
    """The largest values in windows whose size follows from `output_size`, and their positions (int32)."""
    sizes = output_size.tolist() if isinstance(output_size, T) else output_size
    out, at = F.adaptive_max_pool3d(input, sizes, True)
    return out, at.int()


@op()
def lp_pool1d(x: T, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False) -> T:
    """The root of order `norm_type` of the sum of powers in each window of (N, C, L) or (C, L)."""
    _check_norm(norm_type)
    x = x if x.is_floating_point() else x.float()          # average pooling truncates for integers
    return F.lp_pool1d(x, norm_type, kernel_size, stride, ceil_mode)


@op()
def lp_pool2d(x: T, norm_type: float, kernel_size: Size, stride: Size = None, ceil_mode: bool = False) -> T:
    """The root of order `norm_type` of the sum of powers in each window of (N, C, H, W)."""
    _check_norm(norm_type)
    x = x if x.is_floating_point() else x.float()
    return F.lp_pool2d(x, norm_type, kernel_size, stride, ceil_mode)


def _check_norm(norm_type: Any) -> None:
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)):
        raise TypeError(message(f"norm_type={norm_type!r:.40}", with_type("a number", norm_type)))
    if norm_type == 0:
        raise ValueError("norm_type=0: expected another number.")


def _unpooled(count: int, x: T, indices: T, kernel: Size, stride: Any, padding: Any, output_size: Any) -> T:
    """Put the values of x back to the positions `indices` over the last `count` axes; zeros elsewhere."""
    kernel = pair(kernel, count)
    stride = kernel if not stride or not any(pair(stride, count)) else pair(stride, count)
    call = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[count - 1]
    requested_size = list(output_size)[-count:] if output_size else None
    if not x.is_floating_point() and not x.is_complex() and x.dtype is not torch.bool:
        bits = x.to(torch.int64).view(torch.float64)                          # torch's kernels accept only floats
        return call(bits, as_index(indices), kernel, stride, pair(padding, count), requested_size).view(torch.int64).to(x.dtype)
    return call(x, as_index(indices), kernel, stride, pair(padding, count), requested_size)


@op()
def max_unpool1d(x: T, indices: T, kernel_size: Size, stride: Size = None, padding: Size = 0, output_size: Any = None) -> T:
    """Put the values from max_pool1d back to their positions; zeros elsewhere. `output_size` or window and stride set the length."""
    return _unpooled(1, x, indices, kernel_size, stride, padding, output_size)


@op()
def max_unpool2d(x: T, indices: T, kernel_size: Size, stride: Size = None, padding: Size = 0, output_size: Any = None) -> T:
    """Put the values from max_pool2d back to their positions; zeros elsewhere."""
    return _unpooled(2, x, indices, kernel_size, stride, padding, output_size)


@op()
def max_unpool3d(x: T, indices: T, kernel_size: Size, stride: Size = None, padding: Size = 0, output_size: Any = None) -> T:
    """Put the values from max_pool3d back to their positions; zeros elsewhere."""
    return _unpooled(3, x, indices, kernel_size, stride, padding, output_size)


@op(primitive="MaxUnpool2D", init=("ksize", "strides", "pads", "output_shape", "data_format"))
def _max_unpool2d(x: T, argmax: T, ksize: Size, strides: Size = 0, pads: Size = 0, output_shape: Any = (), data_format: str = "NCHW") -> T:
    """Put the values from a pooling of (N, C, H, W) back to their positions; zeros elsewhere."""
    if data_format != "NHWC":
        return _unpooled(2, x, argmax, ksize, strides, pads, output_shape)
    sizes = output_shape[1:3] if output_shape else ()
    return _unpooled(2, x.permute(0, 3, 1, 2), argmax.permute(0, 3, 1, 2), ksize, strides, pads, sizes).permute(0, 2, 3, 1)


@op(primitive="MaxUnpool3D", init=("ksize", "strides", "pads", "output_shape", "data_format"))
def _max_unpool3d(
    x: T, argmax: T, ksize: Size, strides: Size = 0, pads: Size = 0, output_shape: Any = (), data_format: str = "NCDHW",
) -> T:
    """Put the values from a pooling of (N, C, D, H, W) back to their positions; zeros elsewhere."""
    if data_format != "NDHWC":
        return _unpooled(3, x, argmax, ksize, strides, pads, output_shape)
    first, last = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)
    sizes = output_shape[1:4] if output_shape else ()
    return _unpooled(3, x.permute(first), argmax.permute(first), ksize, strides, pads, sizes).permute(last)


@drawing
def _fractional(count: int, x: T, kernel: Size, size: Any, ratio: Any, samples: T | None) -> tuple[T, T]:
    """Pool windows that begin at pseudo-random positions (Graham, 2014), from one sample for each axis of each channel."""
    if size is None and ratio is None:
        raise ValueError("expected output_size or output_ratio.")
    call = F.fractional_max_pool2d if count == 2 else F.fractional_max_pool3d
    kernel = (kernel,) * count if isinstance(kernel, int) else tuple(kernel)
    if size is None:
        ratios = (ratio,) * count if isinstance(ratio, float) else tuple(ratio)
        size = [int(length * share) for length, share in zip(x.shape[-count:], ratios)]
    sizes = (size,) * count if isinstance(size, int) else tuple(size)
    if min(sizes) < 1:
        raise ValueError(f"output_size={size!r}: expected ints from 1 on.")
    if samples is not None:
        batches = x.shape[0] if x.ndim == count + 2 else 1
        samples = samples.to(x.dtype).expand(batches, -1, -1)
    return call(x, kernel, sizes, None, True, samples)


@op()
def fractional_max_pool2d(
    input: T, kernel_size: Size, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: T | None = None,
) -> Any:
    """The largest values of (N, C, H, W) in windows at random positions; `output_size` of them, or else `output_ratio` times the lengths.

    `_random_samples` (N, C, 2) in [0, 1) fixes the positions; None draws them. `return_indices` also returns their indexes (int64).
    """
    out, at = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return (out, at) if return_indices else out


@op()
def fractional_max_pool3d(
    input: T, kernel_size: Size, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: T | None = None,
) -> Any:
    """The largest values of (N, C, D, H, W) in windows at random positions; as `fractional_max_pool2d`, with samples (N, C, 3)."""
    out, at = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return (out, at) if return_indices else out


@op(primitive="FractionalMaxPoolWithFixedKsize", init=("ksize", "output_shape", "data_format"))
def _fractional_max_pool2d(input_x: T, random_samples: T, ksize: Size, output_shape: Any, data_format: str = "NCHW") -> Any:
    """The largest values of (N, C, H, W) in windows that `random_samples` (N, C, 2) position, and their indexes (int64)."""
    if data_format != "NCHW":
        raise ValueError(f"data_format={data_format!r}: expected 'NCHW'.")
    return _fractional(2, input_x, ksize, output_shape, None, random_samples)


@op(primitive="FractionalMaxPool3DWithFixedKsize", init=("ksize", "output_shape", "data_format"))
def _fractional_max_pool3d(x: T, random_samples: T, ksize: Size, output_shape: Any, data_format: str = "NCDHW") -> Any:
    """The largest values of (N, C, D, H, W) in windows that `random_samples` (N, C, 3) position, and their indexes (int64)."""
    if data_format == "NDHWC":
        out, at = _fractional(3, x.permute(0, 4, 1, 2, 3), ksize, output_shape, None, random_samples)
        return out.permute(0, 2, 3, 4, 1), at.permute(0, 2, 3, 4, 1)
    _check_format(data_format)
    return _fractional(3, x, ksize, output_shape, None, random_samples)


@op()
def _max_pool_with_indices(
    x: T, kernel_size: Size, stride: Size, padding: Any, dilation: Size, ceil_mode: bool, return_indices: bool,
) -> Any:
    """The largest value in each window over the last axes, and with `return_indices` its position (int64), for the layers."""
    count = x.ndim - 2
    call = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[count - 1]
    return call(x, pair(kernel_size, count), pair(stride, count), _unpadded(padding, count), dilation, ceil_mode, return_indices)
