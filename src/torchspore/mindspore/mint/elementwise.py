"""Element-wise functions of mint whose arguments differ from those in `ops`."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.core.creation import constant
from torchspore.engine.core.tensor import TensorBase
from torchspore.mindspore import ops
from torchspore.mindspore.mint.forwarding import forwarding, renaming
from torchspore.mindspore.mint.shared import T, as_dtype
from torchspore.mindspore.ops.declare import bridged, part_of
from torchspore.mindspore.ops.wide import Widening


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


mul = renaming("mul(input: Any, other: Any)", ops.mul, "input * other, broadcast to one shape.")
div = renaming(
    "div(input: Any, other: Any, *, rounding_mode: str | None = None)", ops.div,
    "input / other; `rounding_mode` 'floor' rounds down, 'trunc' towards 0.",
)
divide = renaming(
    "divide(input: Any, other: Any, *, rounding_mode: str | None = None)", ops.div,
    "input / other; `rounding_mode` 'floor' rounds down, 'trunc' towards 0.",
)
eq = renaming("eq(input: Any, other: Any)", ops.equal, "Test for equality, element by element.")
ge = renaming("ge(input: Any, other: Any)", ops.greater_equal, "Test input >= other.")
greater_equal = renaming("greater_equal(input: Any, other: Any)", ops.greater_equal, "Test input >= other.")
less = renaming("less(input: Any, other: Any)", ops.less, "Test input < other.")
lt = renaming("lt(input: Any, other: Any)", ops.less, "Test input < other.")
floor_divide = renaming("floor_divide(input: Any, other: Any)", ops.floor_divide, "input / other, rounded down.")
fmod = renaming("fmod(input: Any, other: Any)", ops.fmod, "The remainder of input / other truncated: it has the sign of `input`.")
remainder = renaming(
    "remainder(input: Any, other: Any)", ops.remainder, "The remainder of input / other rounded down: it has the sign of `other`.",
)


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
    if isinstance(min, T) != isinstance(max, T) and min is not None and max is not None:
        return torch.clamp(torch.clamp(input, min=min), max=max)
    return torch.clamp(input, min, max)


@bridged(wide=Widening(compares=True))
def clip(input: T, min: Any = None, max: Any = None) -> T:
    """Clip x to the range from `min` to `max`, numbers or Tensors."""
    if isinstance(min, T) != isinstance(max, T) and min is not None and max is not None:
        return torch.clamp(torch.clamp(input, min=min), max=max)
    return torch.clamp(input, min, max)


lerp = forwarding("lerp(input: T, end: T, weight: Any)", torch.lerp, "input + weight * (end - input).")
addcdiv = forwarding("addcdiv(input: T, tensor1: T, tensor2: T, *, value: Any = 1)", torch.addcdiv, "input + value * tensor1 / tensor2.")
addcmul = forwarding("addcmul(input: T, tensor1: T, tensor2: T, *, value: Any = 1)", torch.addcmul, "input + value * tensor1 * tensor2.")
bitwise_not = forwarding("bitwise_not(input: T)", torch.bitwise_not, "Invert all bits; for bools, logical not.")


@bridged
def clone(input: T) -> T:
    """A copy that passes gradients."""
    return input.clone()


frac = forwarding("frac(input: T)", torch.frac, "The fractional part, with the sign of x.")
sqrt = forwarding("sqrt(input: T)", torch.sqrt, "The square root, float32 for integers.")
isnan = forwarding("isnan(tensor: T)", torch.isnan, "Test whether each element is NaN.")
real = forwarding("real(input: T)", torch.real, "The real part; a real Tensor is returned unchanged.")


@bridged
def imag(input: T) -> T:
    """The imaginary part of a complex Tensor, zeros for a real one."""
    return torch.imag(input) if input.is_complex() else torch.zeros_like(input)


fix = forwarding("fix(input: T)", torch.trunc, "Round towards 0.")
trunc = forwarding("trunc(input: T)", torch.trunc, "Round towards 0.")


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


npu_gelu = forwarding(
    'npu_gelu(input: T, approximate: str = "none")', torch.nn.functional.gelu,
    "x * Phi(x), approximated with `approximate` 'tanh'.", by_name=("approximate",),
)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` is true, else `other`; with `condition` alone, the indexes where it is true, one Tensor per axis."""
    if input is None and other is None:
        return _true_indexes(condition)
    return ops.where(condition, input, other)


@part_of("where")
def _true_indexes(condition: T) -> Any:
    return torch.nonzero(condition, as_tuple=True)


float_power = forwarding("float_power(input: Any, exponent: Any)", torch.float_power, "input ** exponent, computed in float64.")


@bridged
def item(input: T) -> Any:
    """Return the only element as a number."""
    return input.item()


polar = forwarding("polar(abs: T, angle: T)", torch.polar, "Complex numbers with these absolute values and angles.")
isneginf = forwarding("isneginf(input: T)", torch.isneginf, "Test whether each element is minus infinity.")
