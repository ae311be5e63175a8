"""Element-wise functions of mint whose arguments differ from those in `ops`."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.formulas import clamping
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore import ops
from torchspore.mindspore.mint.shared import T, as_dtype
from torchspore.mindspore.ops.declaration.declare import bridged, part_of
from torchspore.mindspore.ops.declaration.wide import Widening


def _scaled(other: Any, alpha: Any) -> Any:
    if isinstance(alpha, (int, float)) and alpha == 1:
        return other
    return ops.mul(other, alpha) if isinstance(other, TensorBase) else other * alpha


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other, broadcast to one shape."""
    return ops.add(input, _scaled(other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other, broadcast to one shape."""
    return ops.sub(input, _scaled(other, alpha))


def mul(input: Any, other: Any) -> Any:
    """input * other, broadcast to one shape."""
    return ops.mul(input, other)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """input / other; `rounding_mode` 'floor' rounds down, 'trunc' towards 0."""
    return ops.div(input, other, rounding_mode=rounding_mode)


def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """input / other; `rounding_mode` 'floor' rounds down, 'trunc' towards 0."""
    return ops.div(input, other, rounding_mode=rounding_mode)


def eq(input: Any, other: Any) -> Any:
    """Test for equality, element by element."""
    return ops.equal(input, other)


def ge(input: Any, other: Any) -> Any:
    """Test input >= other."""
    return ops.greater_equal(input, other)


def greater_equal(input: Any, other: Any) -> Any:
    """Test input >= other."""
    return ops.greater_equal(input, other)


def less(input: Any, other: Any) -> Any:
    """Test input < other."""
    return ops.less(input, other)


def lt(input: Any, other: Any) -> Any:
    """Test input < other."""
    return ops.less(input, other)


def floor_divide(input: Any, other: Any) -> Any:
    """input / other, rounded down."""
    return ops.floor_divide(input, other)


def fmod(input: Any, other: Any) -> Any:
    """The remainder of input / other truncated: it has the sign of `input`."""
    return ops.fmod(input, other)


def remainder(input: Any, other: Any) -> Any:
    """The remainder of input / other rounded down: it has the sign of `other`."""
    return ops.remainder(input, other)


def equal(input: Any, other: Any) -> Any:
    """Return whether the two Tensors have one shape and equal elements, as a bool."""
    return _equal(input, other)


@part_of("equal")
def _equal(input: T, other: T) -> Any:
    return torch.equal(input, other)


@bridged
def allclose(input: T, other: T, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Return whether |input - other| <= atol + rtol * |other| everywhere, as a bool."""
    return bool(torch.isclose(input, other, rtol, atol, equal_nan).all())


@bridged
def xlogy(input: Any, other: Any) -> T:
    """input * log(other), 0 where `input` is 0."""
    if not isinstance(input, T) and not isinstance(other, T):
        raise TypeError("xlogy of two numbers: expected at least one Tensor.")
    kinds = [value for value in (input, other) if isinstance(value, T)]
    return torch.xlogy(*(value if isinstance(value, T) else constant(value, kinds[0].device) for value in (input, other)))


@bridged(wide=Widening(compares=True))
def clamp(input: T, min: Any = None, max: Any = None) -> T:
    """Clip x to the range from `min` to `max`, numbers or Tensors."""
    return clamping.clamp_numbers(input, min, max)


@bridged(wide=Widening(compares=True))
def clip(input: T, min: Any = None, max: Any = None) -> T:
    """Clip x to the range from `min` to `max`, numbers or Tensors."""
    return clamping.clamp_numbers(input, min, max)


@bridged
def lerp(input: T, end: T, weight: Any) -> T:
    """input + weight * (end - input)."""
    return torch.lerp(input, end, weight)


@bridged
def addcdiv(input: T, tensor1: T, tensor2: T, *, value: Any = 1) -> T:
    """input + value * tensor1 / tensor2."""
    return torch.addcdiv(input, tensor1, tensor2, value=value)


@bridged
def addcmul(input: T, tensor1: T, tensor2: T, *, value: Any = 1) -> T:
    """input + value * tensor1 * tensor2."""
    return torch.addcmul(input, tensor1, tensor2, value=value)


@bridged
def bitwise_not(input: T) -> T:
    """Invert all bits; for bools, logical not."""
    return torch.bitwise_not(input)


@bridged
def clone(input: T) -> T:
    """A copy that passes gradients."""
    return input.clone()


@bridged
def frac(input: T) -> T:
    """The fractional part, with the sign of x."""
    return torch.frac(input)


@bridged
def sqrt(input: T) -> T:
    """The square root, float32 for integers."""
    return torch.sqrt(input)


@bridged
def isnan(tensor: T) -> T:
    """Test whether each element is NaN."""
    return torch.isnan(tensor)


@bridged
def real(input: T) -> T:
    """The real part; a real Tensor is returned unchanged."""
    return torch.real(input)


@bridged
def imag(input: T) -> T:
    """The imaginary part of a complex Tensor, zeros for a real one."""
    return torch.imag(input) if input.is_complex() else torch.zeros_like(input)


@bridged
def fix(input: T) -> T:
    """Round towards 0."""
    return torch.trunc(input)


@bridged
def trunc(input: T) -> T:
    """Round towards 0."""
    return torch.trunc(input)


@bridged
def round(input: T, *, decimals: int = 0) -> T:
    """Round to `decimals` digits, halves to the even neighbour."""
    if not (input.is_floating_point() or input.is_complex()) and decimals >= 0:
        return input.clone()
    return torch.round(input, decimals=decimals)


@bridged
def softmax(input: T, dim: int | None, *, dtype: Any = None) -> T:
    """exp(x) divided by its sum along `dim`. None means the first axis for 1 or 3 axes, else the second."""
    dim = int(input.ndim not in (0, 1, 3)) if dim is None else dim
    return torch.softmax(input, dim, dtype=as_dtype(dtype))


@bridged
def npu_gelu(input: T, approximate: str = "none") -> T:
    """x * Phi(x), approximated with `approximate` 'tanh'."""
    return torch.nn.functional.gelu(input, approximate=approximate)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` is true, else `other`; with `condition` alone, the indexes where it is true, one Tensor per axis."""
    if input is None and other is None:
        return _true_indexes(condition)
    return ops.where(condition, input, other)


@part_of("where")
def _true_indexes(condition: T) -> Any:
    return torch.nonzero(condition, as_tuple=True)


@bridged
def float_power(input: Any, exponent: Any) -> T:
    """input ** exponent, computed in float64."""
    return torch.float_power(input, exponent)


@bridged
def item(input: T) -> Any:
    """Return the only element as a number."""
    return input.item()


@bridged
def polar(abs: T, angle: T) -> T:
    """Complex numbers with these absolute values and angles."""
    return torch.polar(abs, angle)


@bridged
def isneginf(input: T) -> T:
    """Test whether each element is minus infinity."""
    return torch.isneginf(input)
