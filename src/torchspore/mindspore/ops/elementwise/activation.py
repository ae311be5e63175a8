"""Activation functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from torchspore.base.text import message, with_type
from torchspore.engine.random import operator_streams
from torchspore.engine.random.generators import drawing
from torchspore.engine.split_layouts.sharded_value import check_is_complete
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import normalized_axis
from torchspore.mindspore.ops.declaration.wide import WIDE

T = torch.Tensor


@op(primitive="ReLU", methods=("relu",), plain=torch.relu)
def relu(input: T, inplace: bool = False) -> T:
    """max(x, 0)."""
    if input.dtype is torch.bool or input.dtype in WIDE:
        return input.clone()
    return input.relu_() if inplace else torch.relu(input)


@op(primitive="ReLUV3")
def _relu_v3(x: T) -> T:
    """max(x, 0)."""
    return torch.relu(x)


@op(primitive="ReLU6")
def relu6(x: T) -> T:
    """min(max(x, 0), 6)."""
    return F.relu6(x)


def compute_rounded(compute: Callable[[T], T], x: T) -> T:
    """Compute integers in float32 and truncate the result to the input dtype; compute other dtypes unchanged."""
    if x.dtype is torch.bool:
        raise TypeError("expected numbers, got Bool.\n\nhint: write x.astype(mindspore.float32).")
    return compute(x) if x.is_floating_point() or x.is_complex() else compute(x.to(torch.float32)).to(x.dtype)


@op()
def leaky_relu(input: T, alpha: float = 0.2) -> T:
    """x where positive, else alpha * x."""
    return compute_rounded(lambda x: F.leaky_relu(x, alpha), input)


@op(primitive="Elu", init=("alpha",))
def elu(input_x: T, alpha: float = 1.0) -> T:
    """x where positive, else alpha * (exp(x) - 1)."""
    return F.elu(input_x, alpha)


@op(primitive="SeLU")
def selu(input_x: T) -> T:
    """The scaled exponential linear unit."""
    return compute_rounded(F.selu, input_x)


@op(primitive="CeLU", init=("alpha",))
def celu(x: T, alpha: float = 1.0) -> T:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return F.celu(x, alpha)


@op(primitive="Sigmoid", methods=("sigmoid",), plain=torch.sigmoid)
def sigmoid(input: T) -> T:
    """1 / (1 + exp(-x))."""
    return torch.sigmoid(input)


@op(primitive="HSigmoid")
def hardsigmoid(input: T) -> T:
    """relu6(x + 3) / 6."""
    return compute_rounded(F.hardsigmoid, input)


@op(primitive="HSwish")
def hardswish(input: T) -> T:
    """x * relu6(x + 3) / 6."""
    return compute_rounded(F.hardswish, input)


@op(primitive="Tanh", methods=("tanh",), plain=torch.tanh)
def tanh(input: T) -> T:
    """The hyperbolic tangent."""
    return torch.tanh(input)


@op()
def gelu(input: T, approximate: str = "none") -> T:
    """x times the normal distribution function of x; `approximate` is 'none' or 'tanh'."""
    return F.gelu(input, approximate=approximate)


@op(primitive="GeLU")
def _gelu_tanh(x: T) -> T:
    """GELU in its tanh form."""
    return F.gelu(x, approximate="tanh")


@op()
def silu(input: T, inplace: bool = False) -> T:
    """x * sigmoid(x)."""
    return F.silu(input, inplace)


@op(primitive="Mish")
def mish(x: T) -> T:
    """x * tanh(softplus(x))."""
    return F.mish(x)


@op(primitive="Softplus")
def _softplus(input_x: T) -> T:
    """log(1 + exp(x))."""
    return F.softplus(input_x)


@op()
def softplus(input: T, beta: float = 1, threshold: float = 20) -> T:
    """log(1 + exp(beta * x)) / beta; above `threshold`, x itself."""
    if beta == 0:
        raise ValueError("beta=0: expected another number.")
    return F.softplus(input, beta, threshold)


@op(primitive="Softsign")
def softsign(x: T) -> T:
    """x / (1 + |x|)."""
    return F.softsign(x)


@op()
def logsigmoid(x: T) -> T:
    """log(sigmoid(x))."""
    return F.logsigmoid(x)


@op(short_path="softmax")
def softmax(input: T, axis: int = -1, *, dtype: torch.dtype | None = None) -> T:
    """exp(x) divided by its sum along `axis`."""
    return torch.softmax(input, axis, dtype=as_dtype(dtype))


@op(primitive="Softmax", init=("axis",))
def _softmax_primitive(input: T, axis: int | tuple[int, ...] = -1) -> T:
    """exp(x) divided by its sum along `axis`, an int or a tuple."""
    return _along(torch.softmax, input, axis)


@op(primitive="LogSoftmax", init=("axis",))
def log_softmax(logits: T, axis: int = -1) -> T:
    """The logarithm of softmax along `axis`."""
    return torch.log_softmax(logits, axis)


@op(primitive="PReLU")
def prelu(input: T, weight: T) -> T:
    """x where positive, else weight * x, with one weight for all or one for each channel (axis 1)."""
    return F.prelu(input, weight.to(input.dtype))


@op(primitive="GLU", init=("axis",))
def glu(x: T, axis: int = -1) -> T:
    """The first half along `axis` times the sigmoid of the second."""
    return F.glu(x, axis)


@op(primitive="HShrink", init=("lambd",), methods=("hardshrink",))
def hardshrink(input: T, lambd: float = 0.5) -> T:
    """x outside of [-lambd, lambd], else 0."""
    return F.hardshrink(input, lambd)


@op(primitive="SoftShrink", init=("lambd",))
def softshrink(input: T, lambd: float = 0.5) -> T:
    """Move x towards 0 by lambd."""
    return F.softshrink(input, lambd)


@op(methods=("soft_shrink",))
def soft_shrink(input: T, lambd: float = 0.5) -> T:
    """Move x towards 0 by lambd."""
    return F.softshrink(input, lambd)


@op()
def hardtanh(input: T, min_val: float = -1.0, max_val: float = 1.0) -> T:
    """Clip x to the range from `min_val` to `max_val`."""
    for name, value in (("min_val", min_val), ("max_val", max_val)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(message(f"{name}={value!r:.40}", with_type("a number", value)))
    if input.dtype in (torch.bool, torch.uint8):                  # torch rejects limits below 0 for these dtypes
        return input.to(torch.int32).clamp(min_val, max_val).to(input.dtype)
    return F.hardtanh(input, min_val, max_val)


@op()
def softmin(x: T, axis: Any = -1, *, dtype: Any = None) -> T:
    """exp(-x) divided by its sum along `axis`, an int or a tuple."""
    x = x if dtype is None else x.to(as_dtype(dtype))
    return _along(torch.softmax, -x, axis)


@op()
def tanhshrink(input: T) -> T:
    """x - tanh(x)."""
    return F.tanhshrink(input)


@op()
def threshold(input: T, thr: float, value: float) -> T:
    """x where it is above `thr`, else `value`."""
    return torch.where(input > thr, input, torch.full((), value, dtype=input.dtype, device=input.device))


@op(primitive="FastGeLU")
def fast_gelu(x: T) -> T:
    """An approximation of GELU: x * exp(0.851 * (x - |x|)) / (1 + exp(-1.702 * |x|))."""
    return x * torch.exp(0.851 * (x - x.abs())) / (1 + torch.exp(-1.702 * x.abs()))


@op()
def rrelu(input: T, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> T:
    """x where positive, else x times a random number between `lower` and `upper`, drawn for each element."""
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"lower={lower}, upper={upper}: expected numbers from 0 to 1 with lower <= upper.")
    check_is_complete("rrelu", input)
    if input.device.type == "cpu":
        stream = operator_streams.of_function("uniform", 0)
        low, high = np.float32(lower), np.float32(upper)
        slopes = (operator_streams.drawn(stream, "uniform", input.shape) * float(high - low) + float(low)).to(input.dtype)
    else:
        slopes = drawing(torch.rand_like)(input) * (upper - lower) + lower
    return torch.where(input > 0, input, input * slopes)


@op()
@drawing
def gumbel_softmax(logits: T, tau: float = 1.0, hard: bool = False, dim: int = -1) -> T:
    """Softmax of (logits + Gumbel noise) / tau along `dim` (Jang and others, 2017).

    With `hard`, the largest element becomes 1 and the others 0; the gradient is that of the soft values.
    """
    if tau <= 0:
        raise ValueError(message(f"tau={tau}", "a number above 0"))
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(min=torch.finfo(logits.dtype).tiny)))
    soft = torch.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = torch.zeros_like(soft).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


@op()
def swiglu(input: T, dim: int = -1) -> T:
    """silu of the first half along `dim`, times the second half."""
    first, second = input.chunk(2, dim)
    return F.silu(first) * second


@op(primitive="LogSoftmaxExt")
def _log_softmax_ext(input: T, dim: int | None = None, dtype: Any = None) -> T:
    """The logarithm of softmax along `dim`. None means the first axis for inputs of 0, 1 or 3 axes, else the second."""
    axis = (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim
    return torch.log_softmax(input, axis, dtype=as_dtype(dtype))


def _along(function, input: T, axis: int | tuple[int, ...]) -> T:  # type: ignore[no-untyped-def]
    if hasattr(axis, "__index__"):
        return function(input, int(axis))
    axes = [normalized_axis(a, input.ndim) for a in axis]
    rest = [a for a in range(input.ndim) if a not in axes]
    moved = input.permute(rest + axes)
    flat = function(moved.reshape([input.shape[a] for a in rest] + [-1]), -1).reshape(moved.shape)
    return flat.permute([(rest + axes).index(a) for a in range(input.ndim)])
