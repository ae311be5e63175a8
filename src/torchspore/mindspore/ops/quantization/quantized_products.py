"""Integers in place of real numbers, for inference: quantization, and products with quantized matrices.

Ascend's kernels compute in half precision; these compute sums of integers exactly, the others in float32, and round once.
"""
from __future__ import annotations

import torch

from torchspore.base.text import message
from torchspore.engine.tensors.dtypes import to_torch
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def as_float32(scale: T) -> T:
    """Return a scale in float32: Ascend stores one for its matrix unit as 64 bits, of which the low 32 are a float32."""
    if scale.dtype in (torch.uint64, torch.int64):
        return scale.contiguous().view(torch.float32).reshape(*scale.shape, 2)[..., 0]
    return scale.float()


def rounded(x: T) -> T:
    return torch.round(x).clamp(-128, 127).to(torch.int8)


@op(primitive="QuantV2")
def _quant_v2(
    x: T, scale: T, offset: T, sqrt_mode: bool = False, rounding_mode: str = "ROUND", dst_type: object = torch.int8,
) -> T:
    """Return round(x * scale + offset) as int8 within -128 and 127; with `sqrt_mode`, x * scale * scale.

    `scale` and `offset` have the length of the last axis of x, or 1. Raises ValueError for another rounding or dtype.
    """
    if str(rounding_mode).upper() != "ROUND" or to_torch(dst_type) is not torch.int8:
        wrote = f"QuantV2(rounding_mode={rounding_mode!r}, dst_type={dst_type})"
        raise ValueError(message(wrote, "rounding_mode='ROUND' and dst_type=mindspore.int8"))
    scaled = x.float() * scale.float()
    return rounded((scaled * scale.float() if sqrt_mode else scaled) + offset.float())


@op(primitive="Quant", init=("scale", "offset", "sqrt_mode", "round_mode"))
def _quant(x: T, scale: float, offset: float, sqrt_mode: bool = False, round_mode: str = "Round") -> T:
    """Return round(x * scale + offset) as int8 within -128 and 127; with `sqrt_mode`, x * scale * scale.

    Raises ValueError for another rounding.
    """
    if str(round_mode).upper() != "ROUND":
        raise ValueError(message(f"Quant(round_mode={round_mode!r})", "'Round'"))
    return rounded(x.float() * (scale * scale if sqrt_mode else scale) + offset)


@op(primitive="Dequant", init=("sqrt_mode", "relu_flag", "dtype"))
def _dequant(x: T, deq_scale: T, sqrt_mode: bool = False, relu_flag: bool = False, dtype: object = torch.float16) -> T:
    """Return x * deq_scale as `dtype`, with `sqrt_mode` x * deq_scale * deq_scale; `relu_flag` replaces negative results by 0."""
    scale = as_float32(deq_scale)
    scaled = x.float() * (scale * scale if sqrt_mode else scale)
    return (torch.relu(scaled) if relu_flag else scaled).to(to_torch(dtype))


@op(primitive="AntiQuant", init=("sqrt_mode", "dtype"))
def _anti_quant(x: T, scale: T, offset: T, sqrt_mode: bool = False, dtype: object = torch.float16) -> T:
    """Return (x + offset) * scale as `dtype`; with `sqrt_mode`, (x + offset) * scale * scale."""
    factor = scale.float()
    return ((x.float() + offset.float()) * (factor * factor if sqrt_mode else factor)).to(to_torch(dtype))


@op(primitive="DynamicQuantExt")
def _dynamic_quant_ext(x: T, smooth_scales: T | None = None) -> tuple[T, T]:
    """Return x (..., n) times `smooth_scales` (n,) as int8, and the scales (...), float32: the largest number of each row becomes 127.

    Raises ValueError for a number without axes.
    """
    if x.dim() < 1:
        raise ValueError(message("DynamicQuantExt of a Tensor without axes", "at least one axis"))
    smooth = x.float() if smooth_scales is None else x.float() * smooth_scales.float()
    scales = smooth.abs().amax(-1) / 127
    divisor = scales.masked_fill(scales == 0, 1).unsqueeze(-1)
    return rounded(smooth / divisor), scales


@op(primitive="WeightQuantBatchMatmul", init=("transpose_x", "transpose_weight", "antiquant_group_size"))
def _weight_quant_batch_matmul(
    x: T, weight: T, antiquant_scale: T, antiquant_offset: T | None = None, quant_scale: T | None = None, quant_offset: T | None = None,
    bias: T | None = None, transpose_x: bool = False, transpose_weight: bool = False, antiquant_group_size: int = 0,
) -> T:
    """Return x @ ((weight + antiquant_offset) * antiquant_scale) + bias for an int8 weight (..., K, N); x is (..., M, K).

    The scale and offset have one number, N, or (groups, N) for groups of rows: each `antiquant_group_size` of K, or equal parts.
    With a `quant_scale` (N,) the result is rounded, result * quant_scale + quant_offset as int8. Raises ValueError for other shapes.
    """
    call = "WeightQuantBatchMatmul"
    matrix = weight.float().transpose(-1, -2) if transpose_weight else weight.float()
    values = x.float().transpose(-1, -2) if transpose_x else x.float()
    inner = matrix.shape[-2]
    if values.shape[-1] != inner:
        raise ValueError(message(f"{call} of {list(x.shape)} and {list(weight.shape)}", "matrices with equal inner axes"))

    def of_rows(numbers: T) -> T:
        """Expand the numbers of groups of rows to all rows."""
        if numbers.dim() < 2 or 1 in (numbers.shape[-1], numbers.shape[-2]):
            return numbers.float()
        groups = numbers.float().transpose(-1, -2) if transpose_weight and numbers.shape[-2] == matrix.shape[-1] else numbers.float()
        size = antiquant_group_size or -(-inner // groups.shape[-2])
        if -(-inner // size) != groups.shape[-2]:
            wrote = f"{call} with numbers of shape {list(numbers.shape)} for {inner} rows, antiquant_group_size={antiquant_group_size}"
            raise ValueError(message(wrote, f"{-(-inner // size)} groups"))
        return groups.repeat_interleave(size, -2)[..., :inner, :]

    if antiquant_offset is not None:
        matrix = matrix + of_rows(antiquant_offset)
    result = values @ (matrix * of_rows(antiquant_scale))
    result = result if bias is None else result + bias.float()
    if quant_scale is None:
        return result.to(x.dtype)
    scaled = result * as_float32(quant_scale)
    return rounded(scaled if quant_offset is None else scaled + quant_offset.float())


@op(primitive="QuantBatchMatmul", init=("transpose_x1", "transpose_x2", "dtype"))
def _quant_batch_matmul(
    x1: T, x2: T, scale: T, offset: T | None = None, bias: T | None = None, pertokenScaleOptional: T | None = None,
    transpose_x1: bool = False, transpose_x2: bool = False, dtype: object = torch.float16,
) -> T:
    """Return ((x1 @ x2) + bias) * scale + offset of int8 matrices (..., M, K) and (..., K, N), in `dtype`.

    Sums are exact. `scale` and `offset` have one number or N; `pertokenScaleOptional` (M,) also multiplies each row. A `bias` of integers
    is added before the scale, another one behind it. Raises ValueError for another dtype than float16, bfloat16 and int8.
    """
    target = to_torch(dtype)
    if target not in (torch.float16, torch.bfloat16, torch.int8):
        raise ValueError(message(f"QuantBatchMatmul(dtype={dtype})", "mindspore.float16, bfloat16 or int8"))
    first = x1.transpose(-1, -2) if transpose_x1 else x1
    second = x2.transpose(-1, -2) if transpose_x2 else x2
    sums = first.to(torch.int32) @ second.to(torch.int32)
    is_inner_bias = bias is not None and not bias.is_floating_point()
    result = (sums + bias if is_inner_bias else sums).float() * as_float32(scale)
    if pertokenScaleOptional is not None:
        result = result * pertokenScaleOptional.float().unsqueeze(-1)
    if bias is not None and not is_inner_bias:
        result = result + bias.float()
    result = result if offset is None else result + offset.float()
    return rounded(result) if target is torch.int8 else result.to(target)
