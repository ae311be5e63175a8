"""Simulated quantization for training: values are rounded to the steps of a few bits, gradients pass through."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _along(t: T, axis: int, ndim: int) -> T:
    """Reshape numbers of each channel to broadcast with values of `ndim` axes."""
    return t.reshape([-1 if position == axis % ndim else 1 for position in range(ndim)])


def _fake_quant(x: T, low: T, high: T, num_bits: int, symmetric: bool, narrow_range: bool, is_unsigned: bool = False) -> T:
    if symmetric:
        high = torch.maximum(high, -low)
        low = -high
    lowest = (0 if is_unsigned else -(1 << (num_bits - 1))) + int(narrow_range)
    highest = (1 << num_bits) - 1 if is_unsigned else (1 << (num_bits - 1)) - 1
    scale = (high - low) / (highest - lowest)
    zero = torch.floor((lowest - low / scale).clamp(lowest, highest) + 0.5)
    first, last = (lowest - zero) * scale, (highest - zero) * scale
    inside = torch.minimum(torch.maximum(x, first), last)
    rounded = torch.floor((inside - first) / scale + 0.5) * scale + first
    return inside + (rounded - inside).detach()


def _checked(quant_delay: int) -> None:
    if quant_delay:
        raise ValueError(f"quant_delay={quant_delay}: expected 0; nn.FakeQuantWithMinMaxObserver counts steps.")


_DEFAULT = ("ema", "ema_decay", "quant_delay", "symmetric", "narrow_range", "training")


@op(primitive="FakeQuantPerLayer", init=("num_bits", *_DEFAULT))
def _fake_quant_per_layer(
    x: T, min_val: T, max_val: T, num_bits: int = 8, ema: bool = False, ema_decay: float = 0.999, quant_delay: int = 0,
    symmetric: bool = False, narrow_range: bool = False, training: bool = True,
) -> T:
    """Round x to the 2**num_bits steps between `min_val` and `max_val` (1,); the gradient is that of x, and 0 outside the range.

    `ema` and `ema_decay` belong to `MinMaxUpdatePerLayer`; the result is the same in training and evaluation.
    """
    _checked(quant_delay)
    return _fake_quant(x, min_val, max_val, num_bits, symmetric, narrow_range)


@op(primitive="FakeQuantPerChannel", init=("num_bits", *_DEFAULT, "channel_axis"))
def _fake_quant_per_channel(
    x: T, min_val: T, max_val: T, num_bits: int = 8, ema: bool = False, ema_decay: float = 0.999, quant_delay: int = 0,
    symmetric: bool = False, narrow_range: bool = False, training: bool = True, channel_axis: int = 1,
) -> T:
    """`FakeQuantPerLayer` with a `min_val` and a `max_val` for each channel, with the length of `channel_axis`."""
    _checked(quant_delay)
    low, high = (_along(bound, channel_axis, x.ndim) for bound in (min_val, max_val))
    return _fake_quant(x, low, high, num_bits, symmetric, narrow_range)


def _updated(observed: T, before: T, ema: bool, ema_decay: float) -> T:
    return observed if not ema else (1 - ema_decay) * observed + ema_decay * before


@op(primitive="MinMaxUpdatePerLayer", init=("ema", "ema_decay"))
def _min_max_update_per_layer(x: T, min_val: T, max_val: T, ema: bool = False, ema_decay: float = 0.999) -> tuple[T, T]:
    """The smallest and the largest value of x, including 0; with `ema` their moving averages. (1,) each, without a gradient."""
    low, high = x.detach().amin().reshape(1), x.detach().amax().reshape(1)
    return _updated(low, min_val, ema, ema_decay).clamp(max=0), _updated(high, max_val, ema, ema_decay).clamp(min=0)


@op(primitive="MinMaxUpdatePerChannel", init=("ema", "ema_decay", "channel_axis"))
def _min_max_update_per_channel(
    x: T, min_val: T, max_val: T, ema: bool = False, ema_decay: float = 0.999, channel_axis: int = 1,
) -> tuple[T, T]:
    """`MinMaxUpdatePerLayer` for each channel."""
    reduced_axes = [axis for axis in range(x.ndim) if axis != channel_axis % x.ndim]
    low, high = (x.detach().amin(reduced_axes), x.detach().amax(reduced_axes)) if reduced_axes else (x.detach(), x.detach())
    return _updated(low, min_val, ema, ema_decay).clamp(max=0), _updated(high, max_val, ema, ema_decay).clamp(min=0)


def _learned(x: T, alpha: T, quant_max: Any, neg_trunc: bool) -> T:
    share = torch.clamp(x / alpha, 0.0 if neg_trunc else -1.0, 1.0)
    rounded = torch.floor(share * quant_max + 0.5) / quant_max
    return (share + (rounded - share).detach()) * alpha


@op(primitive="FakeLearnedScaleQuantPerLayer", init=("quant_delay", "neg_trunc", "training"))
def _fake_learned_scale_quant_per_layer(
    input_x: T, alpha: T, quant_max: T, quant_delay: int = 0, neg_trunc: bool = False, training: bool = True,
) -> T:
    """Clip x to [-alpha, alpha] (with `neg_trunc` [0, alpha]) in `quant_max` steps per side; `alpha` (1,) has a gradient too."""
    _checked(quant_delay)
    return _learned(input_x, alpha, quant_max, neg_trunc)


@op(primitive="FakeLearnedScaleQuantPerChannel", init=("quant_delay", "neg_trunc", "training", "channel_axis"))
def _fake_learned_scale_quant_per_channel(
    input_x: T, alpha: T, quant_max: T, quant_delay: int = 0, neg_trunc: bool = False, training: bool = True, channel_axis: int = 1,
) -> T:
    """`FakeLearnedScaleQuantPerLayer` with an `alpha` for each channel."""
    _checked(quant_delay)
    return _learned(input_x, _along(alpha, channel_axis, input_x.ndim), quant_max, neg_trunc)
