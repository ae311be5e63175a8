"""Activation functions of `mint.nn.functional`."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.mindspore import ops
from torchspore.mindspore.mint.shared import T, as_dtype, write_back
from torchspore.mindspore.ops.declaration.declare import bridged, part_of
from torchspore.mindspore.ops.elementwise.activation import compute_rounded


@part_of("elu")
def _elu(input: T, alpha: float) -> T:
    return F.elu(input, alpha)


@part_of("hardtanh")
def _hardtanh(input: T, min_val: float, max_val: float) -> T:
    return F.hardtanh(input, min_val, max_val)


@part_of("threshold")
def _threshold(input: T, threshold: float, value: float) -> T:
    return F.threshold(input, threshold, value)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where positive, else alpha * (exp(x) - 1); `inplace` overwrites the Tensor."""
    return elu_(input, alpha) if inplace else _elu(input, alpha)


def elu_(input: Any, alpha: float = 1.0) -> Any:
    """ELU in place; returns the Tensor."""
    return write_back(input, _elu(input, alpha))


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Clip x to the range from `min_val` to `max_val`; `inplace` overwrites the Tensor."""
    return hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


def hardtanh_(input: Any, min_val: float = -1, max_val: float = 1) -> Any:
    """Clip x to the range from `min_val` to `max_val` in place; returns the Tensor."""
    return write_back(input, _hardtanh(input, min_val, max_val))


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """x where it is above `threshold`, else `value`; `inplace` overwrites the Tensor."""
    return threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


def threshold_(input: Any, threshold: float, value: float) -> Any:
    """x where it is above `threshold`, else `value`, in place; returns the Tensor."""
    return write_back(input, _threshold(input, threshold, value))


def relu(input: Any, inplace: bool = False) -> Any:
    """max(x, 0); `inplace` overwrites the Tensor."""
    return relu_(input) if inplace else ops.relu(input)


def relu_(input: Any) -> Any:
    """max(x, 0) in place; returns the Tensor."""
    return write_back(input, ops.relu(input))


def relu6(input: Any, inplace: bool = False) -> Any:
    """min(max(x, 0), 6); `inplace` overwrites the Tensor."""
    out = ops.relu6(input)
    return write_back(input, out) if inplace else out


def silu(input: Any, inplace: bool = False) -> Any:
    """x * sigmoid(x); `inplace` overwrites the Tensor."""
    out = ops.silu(input)
    return write_back(input, out) if inplace else out


def sigmoid_(input: Any) -> Any:
    """1 / (1 + exp(-x)) in place; returns the Tensor."""
    return write_back(input, ops.sigmoid(input))


@bridged
def gelu(input: T, *, approximate: str = "none") -> T:
    """x * Phi(x), approximated with `approximate` 'tanh'."""
    return F.gelu(input, approximate=approximate)


@bridged
def glu(input: T, dim: int = -1) -> T:
    """The first half along `dim` times the sigmoid of the second."""
    return F.glu(input, dim)


@bridged
def leaky_relu(input: T, negative_slope: float = 0.01) -> T:
    """x where positive, else negative_slope * x."""
    return F.leaky_relu(input, negative_slope)


@bridged
def logsigmoid(input: T) -> T:
    """log(1 / (1 + exp(-x)))."""
    return F.logsigmoid(input)


def _axis(input: T, dim: int | None) -> int:
    """Return the axis that `dim` None means: 0 for 0, 1 or 3 axes, else 1."""
    return (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim


@bridged
def log_softmax(input: T, dim: int | None = None, *, dtype: Any = None) -> T:
    """The logarithm of softmax along `dim`; None means axis 0 for 0, 1 or 3 axes, else axis 1."""
    return torch.log_softmax(input, _axis(input, dim), dtype=as_dtype(dtype))


@bridged
def softmax(input: T, dim: int | None = None, dtype: Any = None) -> T:
    """exp(x) divided by its sum along `dim`; None means axis 0 for 0, 1 or 3 axes, else axis 1."""
    return torch.softmax(input, _axis(input, dim), dtype=as_dtype(dtype))


@bridged
def softplus(input: T, beta: float = 1, threshold: float = 20) -> T:
    """log(1 + exp(beta * x)) / beta, x itself where beta * x is above `threshold`."""
    return F.softplus(input, beta, threshold)


@bridged
def hardshrink(input: T, lambd: float = 0.5) -> T:
    """x where |x| > lambd, else 0."""
    return F.hardshrink(input, lambd)


@bridged
def softshrink(input: T, lambd: float = 0.5) -> T:
    """Move x towards 0 by lambd."""
    return F.softshrink(input, lambd)


@bridged
def hardsigmoid(input: T) -> T:
    """min(max(x + 3, 0), 6) / 6."""
    return compute_rounded(F.hardsigmoid, input)


@bridged
def hardswish(input: T) -> T:
    """x * min(max(x + 3, 0), 6) / 6."""
    return compute_rounded(F.hardswish, input)


@bridged
def mish(input: T) -> T:
    """x * tanh(log(1 + exp(x)))."""
    return F.mish(input)


@bridged
def selu(input: T) -> T:
    """ELU with the scale and alpha that keep mean 0 and variance 1."""
    return F.selu(input)


@bridged
def prelu(input: T, weight: T) -> T:
    """x where positive, else x times the weight of its channel (axis 1)."""
    return F.prelu(input, weight)
