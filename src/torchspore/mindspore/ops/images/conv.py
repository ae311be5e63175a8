"""Convolutions, pooling and padding on images, with MindSpore's pad modes."""
from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from torchspore.base.lazy_modules import import_lazily
from torchspore.engine.devices.gpu.named_algorithms import ALGORITHMS
from torchspore.engine.formulas.half_precision import run_convolution
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.linear_algebra.matrix_products import require_equal_dtypes

if TYPE_CHECKING:
    from torchspore.engine.devices.gpu import convolution
else:
    import_lazily(globals(), "torchspore.engine.devices.gpu.convolution")

T = torch.Tensor
Size = Any


def pair(value: Any, count: int = 2) -> tuple[int, ...]:
    """Return one int for each of the last `count` axes, from one int or a tuple; of four ints, as in 1.x, the last ones are used."""
    if hasattr(value, "__index__"):
        return (int(value),) * count
    parts = tuple(operator.index(v) for v in value)
    if len(parts) not in (1, count, count + 2):
        raise ValueError(f"{value!r}: expected an int or {count} of them, got {len(parts)}.")
    return parts[-count:]


def same_padding(lengths: Any, kernel: Any, stride: Any, dilation: Any) -> list[int]:
    """Return the padding of pad_mode 'same' in the order of torch's `pad` (last axis first); an odd element goes to the end."""
    pads: list[int] = []
    for length, k, s, d in reversed(list(zip(lengths, kernel, stride, dilation))):
        total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
        pads += [total // 2, total - total // 2]
    return pads


def padding_of(
    lengths: Any, pad_mode: str, padding: Any, kernel: Any, stride: Any, dilation: Any,
) -> tuple[list[int] | None, tuple[int, ...]]:
    """Return the padding that torch's convolution cannot do, in the order of torch's `pad`, or None, and the padding for the kernel."""
    count = len(kernel)
    mode = pad_mode.lower()
    if mode in ("valid", "same") and padding and (not isinstance(padding, (tuple, list)) or any(padding)):
        raise ValueError(f"padding={padding!r}: it needs pad_mode='pad', not {pad_mode!r}.")
    if mode == "valid":
        return None, (0,) * count
    if mode == "same":
        pads = same_padding(lengths, kernel, stride, dilation)
    elif mode == "pad":
        pads_by_side = (padding,) * (2 * count) if isinstance(padding, int) else tuple(padding)
        if len(pads_by_side) in (1, count):
            pads_by_side = tuple(p for p in (pads_by_side if len(pads_by_side) == count else pads_by_side * count) for _ in (0, 1))
        if len(pads_by_side) != 2 * count:
            raise ValueError(f"padding={padding!r}: expected an int, or {count} or {2 * count} of them, got {len(pads_by_side)}.")
        pads = [p for axis in reversed(range(count)) for p in pads_by_side[2 * axis: 2 * axis + 2]]
    else:
        raise ValueError(f"pad_mode={pad_mode!r}: expected 'same', 'valid' or 'pad'.")
    if all(pads[i] == pads[i + 1] for i in range(0, len(pads), 2)):
        return None, tuple(reversed(pads[::2]))
    return pads, (0,) * count


def _are_plain_ints(*values: Any) -> bool:
    """Return whether each value is an int or a tuple of ints, without bools, floats and symbolic ints, which may equal an int."""
    for value in values:
        if value.__class__ is not int:
            if value.__class__ is not tuple:
                return False
            for part in value:
                if part.__class__ is not int:
                    return False
    return True


@functools.lru_cache(4096)
def _cached_padding(
    lengths: tuple[int, ...], kernel: tuple[int, ...], stride: Any, pad_mode: str, padding: Any, dilation: Any,
) -> tuple[tuple[int, ...], tuple[int, ...], list[int] | None, tuple[int, ...]]:
    """Return the stride, the dilation, and what `padding_of` returns, for plain ints."""
    strides, dilations = pair(stride, len(kernel)), pair(dilation, len(kernel))
    return strides, dilations, *padding_of(lengths, pad_mode, padding, kernel, strides, dilations)


_known: dict[Any, tuple[Any, ...]] = {}
"""What `_cached_padding` returned, by the shapes and the ids of the arguments, which are stored after it: layers pass the same ones."""
_MOST_KNOWN = 4096


def _padding_of_call(
    count: int, x: T, weight: T, stride: Any, pad_mode: str, padding: Any, dilation: Any,
) -> tuple[tuple[int, ...], tuple[int, ...], list[int] | None, tuple[int, ...]]:
    """Return the stride, the dilation, and what `padding_of` returns."""
    shape, shape_of_weight = x.shape, weight.shape
    key = count, shape, shape_of_weight, id(stride), id(pad_mode), id(padding), id(dilation)
    try:
        known = _known.get(key)
    except TypeError:                                    # symbolic lengths have no hash
        known = None
    if known is not None:
        return known[0]  # type: ignore[no-any-return]
    lengths, kernel = tuple(shape[-count:]), tuple(shape_of_weight[-count:])
    if not _are_plain_ints(stride, padding, dilation, tuple(shape), tuple(shape_of_weight)):
        strides, dilations = pair(stride, count), pair(dilation, count)
        return strides, dilations, *padding_of(lengths, pad_mode, padding, kernel, strides, dilations)
    result = _cached_padding(lengths, kernel, stride, pad_mode, padding, dilation)
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = result, stride, pad_mode, padding, dilation
    return result


def convolve(count: int, x: T, weight: T, bias: T | None, stride: Any, pad_mode: str, padding: Any, dilation: Any, groups: int) -> T:
    """A convolution over the last `count` axes."""
    require_equal_dtypes(x, weight)
    stride, dilation, pads, rest = _padding_of_call(count, x, weight, stride, pad_mode, padding, dilation)
    if pads is not None:
        x = F.pad(x, pads)
    if ALGORITHMS.are_named and convolution.applies(x, weight):
        return convolution.convolve(x, weight, bias, stride, rest, dilation, groups)
    return run_convolution(_CONVOLUTIONS[count], x, weight, bias, stride, rest, dilation, groups)


_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


@op()
def conv1d(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Size = 1,
    groups: int = 1,
) -> T:
    """Convolution of (N, C, L) with weight (out, C / groups, K)."""
    return convolve(1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@op(short_path="conv2d")
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


@op(primitive="Convolution")
def _convolution(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, padding: Size = 0, dilation: Size = 1, transposed: bool = False,
    output_padding: Size = 0, groups: int = 1,
) -> T:
    """A convolution over the axes after the first two, or a transposed one."""
    count = weight.dim() - 2
    steps, edges, spacing, more = (pair(setting, count) for setting in (stride, padding, dilation, output_padding))
    return torch.convolution(input, weight, bias, steps, edges, spacing, transposed, more, groups)


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
    call: Any = functools.partial(run_convolution, (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[count - 1])
    if ALGORITHMS.are_named and convolution.applies(x, weight):
        call = convolution.convolve_transposed
    if pad_mode == "valid":
        out = call(x, weight, bias, stride, 0, 0, groups, dilation)
        grown = [max(s - ((k - 1) * d + 1), 0) for s, k, d in zip(stride, kernel, dilation)]
        return F.pad(out, [p for g in reversed(grown) for p in (0, g)]) if any(grown) else out
    if pad_mode == "pad":
        pads: Any = (padding,) * count if isinstance(padding, int) else tuple(padding)
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
    """Remove `pads` elements at the ends of the last axes; a negative count adds zeros."""
    return F.pad(x, [-p for axis in reversed(range(len(pads) // 2)) for p in pads[2 * axis: 2 * axis + 2]])


@op()
def conv_transpose2d(
    input: T, weight: T, bias: T | None = None, stride: Size = 1, padding: Size = 0, output_padding: Size = 0, groups: int = 1,
    dilation: Size = 1,
) -> T:
    """Transposed convolution of (N, C, H, W) with weight (C, out / groups, KH, KW)."""
    call = convolution.convolve_transposed if ALGORITHMS.are_named and convolution.applies(input, weight) else F.conv_transpose2d
    return run_convolution(call, input, weight, bias, stride, padding, output_padding, groups, dilation)


@op()
def _conv_transposed(
    input: T, weight: T, bias: T | None, stride: Any, pad_mode: str, padding: Any, output_padding: Any, dilation: Any, groups: int,
) -> T:
    """A transposed convolution with MindSpore's pad modes, used by the layers."""
    require_equal_dtypes(input, weight)
    return convolve_transposed(input, weight, bias, stride, pad_mode, padding, output_padding, dilation, groups)
