"""Functions of one Tensor, element by element."""
from __future__ import annotations

from collections.abc import Callable

import torch

from torchspore.engine.autograd import integer_gradients
from torchspore.engine.formulas import clamping
from torchspore.engine.native.operators import has_short_path
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def unary(
    name: str, compute: Callable[[T], T], doc: str, primitive: str | None = None, methods: tuple[str, ...] | None = None,
    wide: Widening | None = None, plain: Callable[[T], T] | None = None,
) -> Callable[[T], T]:
    """Declare the operator `name`. `plain` is that of `op`: by default `compute`, if it has a short path."""
    if plain is None and has_short_path(compute):
        plain = compute

    def body(input: T) -> T:
        return compute(input)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return op(primitive=primitive, methods=(name,) if methods is None else methods, wide=wide, plain=plain)(body)


def arccosh_of(x: T) -> T:
    """The inverse hyperbolic cosine. Below 1 the gradient is NaN, like the value; torch returns a number below -1."""
    if x.is_complex() or not x.requires_grad:
        return torch.acosh(x)
    return torch.acosh(x * torch.where(x < 1, torch.nan, 1.0))


abs = unary(
    "abs", lambda x: x.clone() if x.dtype is torch.bool else torch.abs(x), "The absolute value.", "Abs", ("abs", "absolute", "__abs__"),
    plain=torch.abs,
)
absolute = abs
neg = unary("neg", torch.neg, "The negative.", "Neg", ("neg", "negative", "__neg__"), wide=Widening())
negative = neg
exp = unary("exp", torch.exp, "e to the power x.", "Exp")
expm1 = unary("expm1", torch.expm1, "exp(x) - 1.", "Expm1")
log = unary("log", torch.log, "The natural logarithm.", "Log")
log1p = unary("log1p", torch.log1p, "log(1 + x).", "Log1p")
log2 = unary("log2", torch.log2, "The logarithm to base 2.")
log10 = unary("log10", torch.log10, "The logarithm to base 10.")


@op(primitive="Sqrt", methods=("sqrt",), plain=torch.sqrt)
def sqrt(x: T) -> T:
    """The square root."""
    return torch.sqrt(x)


@op(methods=("deg2rad",))
def deg2rad(x: T) -> T:
    """Degrees to radians."""
    return torch.deg2rad(x)


@op(methods=("rad2deg",))
def rad2deg(x: T) -> T:
    """Radians to degrees."""
    return torch.rad2deg(x)


@op()
def arcsin(x: T) -> T:
    """The inverse sine."""
    return torch.asin(x)


rsqrt = unary("rsqrt", torch.rsqrt, "1 / sqrt(x).", "Rsqrt")
square = unary("square", torch.square, "x * x.", "Square", wide=Widening())
reciprocal = unary("reciprocal", torch.reciprocal, "1 / x.", "Reciprocal")
floor = unary("floor", torch.floor, "The largest integer not above x.", "Floor")
ceil = unary("ceil", torch.ceil, "The smallest integer not below x.", "Ceil")
trunc = unary("trunc", lambda x: x.clone() if x.dtype is torch.bool else torch.trunc(x), "x without its fraction.", "Trunc")
sign = unary("sign", lambda x: torch.sgn(x) if x.is_complex() else torch.sign(x), "-1, 0 or 1; x / |x| of complex numbers.", "Sign")
sin = unary("sin", torch.sin, "The sine.", "Sin")
cos = unary("cos", torch.cos, "The cosine.", "Cos")
tan = unary("tan", torch.tan, "The tangent.", "Tan")
asin = unary("asin", torch.asin, "The inverse sine.", "Asin", ("asin", "arcsin"))
acos = unary("acos", torch.acos, "The inverse cosine.", "ACos", ("acos", "arccos"))
atan = unary("atan", torch.atan, "The inverse tangent.", "Atan", ("atan", "arctan"))
sinh = unary("sinh", torch.sinh, "The hyperbolic sine.", "Sinh")
cosh = unary("cosh", torch.cosh, "The hyperbolic cosine.", "Cosh")
asinh = unary("asinh", torch.asinh, "The inverse hyperbolic sine.", "Asinh")
acosh = unary("acosh", arccosh_of, "The inverse hyperbolic cosine.", "Acosh")
atanh = unary("atanh", torch.atanh, "The inverse hyperbolic tangent.", "Atanh")
erf = unary("erf", torch.erf, "The error function.", "Erf")
erfc = unary("erfc", torch.erfc, "1 - erf(x).", "Erfc")
erfinv = unary("erfinv", torch.erfinv, "The inverse error function.", "Erfinv")
lgamma = unary("lgamma", torch.lgamma, "The logarithm of |gamma(x)|.", "Lgamma")
digamma = unary("digamma", torch.digamma, "The derivative of lgamma.", "Digamma")
isnan = unary("isnan", torch.isnan, "Tests whether x is not a number.", "IsNan")
isinf = unary("isinf", torch.isinf, "Tests whether x is infinite.", "IsInf")
isfinite = unary("isfinite", torch.isfinite, "Tests whether x is finite.", "IsFinite")
logical_not = unary(
    "logical_not", torch.logical_not, "Logical not, element by element.", "LogicalNot", ("logical_not", "__invert__"), wide=Widening(),
)
real = unary("real", lambda x: torch.real(x).clone(), "The real part.", "Real")
imag = unary("imag", lambda x: torch.imag(x).clone() if x.is_complex() else torch.zeros_like(x), "The imaginary part.", "Imag")
conj = unary("conj", lambda x: torch.conj_physical(x), "The complex conjugate.", "Conj")


@op(methods=("round",))
def round(input: T, *, decimals: int = 0) -> T:
    """Round to the nearest integer, halves to the even one; with `decimals`, to that many digits."""
    if not (input.is_floating_point() or input.is_complex()) and decimals >= 0:
        return input.clone()
    return torch.round(input, decimals=decimals) if decimals else torch.round(input)


@op(primitive="Round")
def _round(input_x: T) -> T:
    """Round to the nearest integer, halves to the even one."""
    return torch.round(input_x)


@op(methods=("clamp",), wide=Widening(compares=True))
def clamp(input: T, min: T | float | None = None, max: T | float | None = None) -> T:
    """Clip x to the range from `min` to `max`, numbers or Tensors."""
    return clamping.clamp_numbers(input, min, max)


@op(methods=("clip",), wide=Widening(compares=True))
def clip(input: T, min: T | float | None = None, max: T | float | None = None) -> T:
    """The same as `clamp`."""
    return clamping.clamp_numbers(input, min, max)


@op(wide=Widening(compares=True))
def clip_by_value(x: T, clip_value_min: T | float | None = None, clip_value_max: T | float | None = None) -> T:
    """Clip x to the range between the two values, numbers or Tensors; also accepts tuples and lists of Tensors.

    Raises ValueError if both values are None.
    """
    if clip_value_min is None and clip_value_max is None:
        raise ValueError("at least one of 'clip_value_min' or 'clip_value_max' must not be None.")
    if isinstance(x, (list, tuple)):
        return tuple(_clamp_tensors(item, clip_value_min, clip_value_max) for item in x)
    return _clamp_tensors(x, clip_value_min, clip_value_max)


def _clamp_tensors(x: T, low: T | float | None, high: T | float | None) -> T:
    if low is not None:
        x = torch.maximum(x, constant(low, x.device).to(x.dtype))
    if high is not None:
        x = torch.minimum(x, constant(high, x.device).to(x.dtype))
    return x


@op(primitive="Cast", methods=())
def cast(input: T, dtype: object) -> T:
    """Cast to another dtype."""
    from torchspore.engine.tensors.dtypes import to_torch

    return integer_gradients.cast(input if isinstance(input, T) else torch.as_tensor(input), to_torch(dtype))
