"""Two products with an activation between them, of one layer or of several experts that share the rows of the input.

Ascend's kernels compute in half precision; these compute in float32 and round once. Weights may be int8, and the rows as well.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from torchspore.base.text import message
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.quantization.quantized_products import as_float32, rounded

T = torch.Tensor


def _fast_gelu(x: T) -> T:
    return x * torch.exp(0.851 * (x - x.abs())) / (1 + torch.exp(-1.702 * x.abs()))


_ACTIVATIONS: dict[str, Callable[[T], T]] = {"fastgelu": _fast_gelu, "gelu": F.gelu, "relu": torch.relu, "silu": F.silu}


@op(primitive="FFN", init=("activation", "inner_precise"))
def _feed_forward(
    x: T, weight1: T, weight2: T, expert_tokens: T | None = None, bias1: T | None = None, bias2: T | None = None, scale: T | None = None,
    offset: T | None = None, deq_scale1: T | None = None, deq_scale2: T | None = None, antiquant_scale1: T | None = None,
    antiquant_scale2: T | None = None, antiquant_offset1: T | None = None, antiquant_offset2: T | None = None,
    activation: str = "fastgelu", inner_precise: int = 0,
) -> T:
    """activation(x @ weight1 + bias1) @ weight2 + bias2 of x (..., H), weight1 (H, F) and weight2 (F, H).

    With `expert_tokens` (E,), weights are (E, H, F) and (E, F, H), biases (E, F) and (E, H), and x is (N, H): the first expert_tokens[0]
    rows belong to expert 0, the next ones to expert 1; rows beyond all experts give zeros.

    Weights of int8 are (weight + antiquant_offset) * antiquant_scale, with numbers ([E,] F) and ([E,] H). If x is int8 too, sums are
    multiplied by `deq_scale1` and `deq_scale2` of these shapes, and the activation becomes round(value * scale + offset), numbers ([E]).
    The result is float16 then. Raises ValueError for some of these alone, another activation than fastgelu, gelu, relu and silu, and
    shapes that do not fit.
    """
    antiquant = (antiquant_scale1, antiquant_offset1), (antiquant_scale2, antiquant_offset2)
    return _ffn("FFN", (x, weight1, weight2, expert_tokens, bias1, bias2), activation, inner_precise, antiquant, (
        scale, offset, deq_scale1, deq_scale2,
    ))


@op(primitive="FFNExt", init=("activation", "inner_precise"))
def _feed_forward_ext(
    x: T, weight1: T, weight2: T, expertTokens: T | None = None, bias1: T | None = None, bias2: T | None = None, scale: T | None = None,
    offset: T | None = None, deqScale1: T | None = None, deqScale2: T | None = None, antiquant_scale1: T | None = None,
    antiquant_scale2: T | None = None, antiquant_offset1: T | None = None, antiquant_offset2: T | None = None,
    activation: str = "fastgelu", inner_precise: int = 0,
) -> T:
    """Compute what FFN computes, with its arguments in another spelling; it raises the same errors."""
    antiquant = (antiquant_scale1, antiquant_offset1), (antiquant_scale2, antiquant_offset2)
    return _ffn("FFNExt", (x, weight1, weight2, expertTokens, bias1, bias2), activation, inner_precise, antiquant, (
        scale, offset, deqScale1, deqScale2,
    ))


def _ffn(
    call: str, tensors: tuple[T | None, ...], activation: str, inner_precise: int, antiquant: Sequence[tuple[T | None, T | None]],
    quantized: tuple[T | None, ...],
) -> T:
    x, weight1, weight2, tokens, bias1, bias2 = tensors
    assert x is not None and weight1 is not None and weight2 is not None
    _check_quantization(call, x, weight1, antiquant, quantized)
    if activation not in _ACTIVATIONS:
        raise ValueError(message(f"{call}(activation={activation!r})", ", ".join(_ACTIVATIONS)))
    if inner_precise not in (0, 1):
        raise ValueError(message(f"{call}(inner_precise={inner_precise!r})", "0 or 1; both compute the sums in float32"))
    rank = 2 if tokens is None else 3
    if weight1.ndim != rank or weight2.ndim != rank or weight1.shape[-1] != weight2.shape[-2]:
        shapes = f"weights of shapes {tuple(weight1.shape)} and {tuple(weight2.shape)}"
        raise ValueError(message(f"{call} with {shapes}", "(H, F) and (F, H), or with expert_tokens (E, H, F) and (E, F, H)"))
    act, dtype = _ACTIVATIONS[activation], x.dtype if x.is_floating_point() else torch.float16
    if tokens is None:
        return _layer(x, _Expert(weight1, bias1, antiquant[0], quantized), _Expert(weight2, bias2, antiquant[1], quantized), act).to(dtype)
    count = weight1.shape[0]
    if tuple(tokens.shape) != (count,):
        raise ValueError(message(f"{call} with expert_tokens of shape {tuple(tokens.shape)}", f"({count},), a number for each expert"))
    rows = x.reshape(-1, x.shape[-1])
    ends = torch.cumsum(tokens, 0)
    positions = torch.arange(rows.shape[0], device=x.device)
    result = torch.zeros((rows.shape[0], weight2.shape[-1]), dtype=torch.float32, device=x.device)
    for expert in range(count):
        parts = [
            _Expert(*(_part(item, expert, count) for item in (weight, bias)), tuple(_part(t, expert, count) for t in numbers), tuple(
                _part(t, expert, count) for t in quantized
            )) for weight, bias, numbers in ((weight1, bias1, antiquant[0]), (weight2, bias2, antiquant[1]))
        ]
        values = _layer(rows, *parts, act)
        belongs_to_expert = (positions < ends[expert]) & (positions >= ends[expert] - tokens[expert])
        result = torch.where(belongs_to_expert.unsqueeze(-1), values, result)
    return result.to(dtype).reshape(*x.shape[:-1], -1)


class _Expert(NamedTuple):
    """A product of one expert: its weight and bias, the scale and offset of an int8 weight, and the numbers of quantized rows."""

    weight: Any
    bias: Any
    antiquant: Sequence[Any]
    quantized: Sequence[Any]


def _part(numbers: T | None, expert: int, count: int) -> T | None:
    """Return the part of an expert; numbers without an axis of experts belong to all."""
    return numbers[expert] if numbers is not None and numbers.ndim and numbers.shape[0] == count else numbers


def _check_quantization(
    call: str, x: T, weight: T, antiquant: Sequence[tuple[T | None, T | None]], quantized: tuple[T | None, ...],
) -> None:
    """Raise ValueError for numbers of quantized rows and weights that are incomplete, or do not fit the dtypes."""
    has_rows, has_weights = any(t is not None for t in quantized), any(scale is not None for scale, _ in antiquant)
    is_complete = all(t is not None for t in (quantized[0], *quantized[2:])) if has_rows else not has_weights or all(
        scale is not None for scale, _ in antiquant
    )
    if not is_complete or has_rows != (not x.is_floating_point()) or (has_weights and has_rows) or (
        not weight.is_floating_point() and not has_rows and not has_weights
    ):
        names = "scale, deq_scale1 and deq_scale2 for x of int8; antiquant_scale1 and antiquant_scale2 for weights of int8 alone"
        raise ValueError(message(f"{call} of x {x.dtype} and weights {weight.dtype}".replace("torch.", ""), names))


def _product(x: T, expert: _Expert) -> T:
    """Return x @ weight + bias in float32, or exact sums for an x of int8."""
    if not x.is_floating_point():
        sums = x.to(torch.int32) @ expert.weight.to(torch.int32)
        return sums if expert.bias is None else sums + expert.bias
    weight, (scale, offset) = expert.weight.float(), expert.antiquant
    if scale is not None:
        weight = (weight if offset is None else weight + offset.float()) * scale.float()
    result = x.float() @ weight
    return result if expert.bias is None else result + expert.bias.float()


def _layer(x: T, first: _Expert, second: _Expert, activation: Callable[[T], T]) -> T:
    if x.is_floating_point():
        return _product(activation(_product(x, first)), second)
    scale, offset, deq_scale1, deq_scale2 = first.quantized
    hidden = activation(_product(x, first).float() * as_float32(deq_scale1)) * scale.float()
    rows = rounded(hidden if offset is None else hidden + offset.float())
    return _product(rows, second).float() * as_float32(deq_scale2)
