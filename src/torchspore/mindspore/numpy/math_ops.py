"""Arithmetic and elementary functions, element by element; and the names of functions in the other mathematical files."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.formulas import quotients
from torchspore.mindspore.numpy.utils import cast, floating, function, pair, promote, to_tensor, together
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.elementwise.unary import arccosh_of

T = torch.Tensor
_HALF = frozenset({torch.bool, torch.int8, torch.uint8})


def _unary(name: str, compute: Callable[[T], T], doc: str, argument: str = "x", wide: Widening | None = None) -> Callable[..., T]:
    def of_x(x: Any, dtype: Any = None) -> T:
        return cast(compute(to_tensor(x)), dtype)

    def of_a(a: Any, dtype: Any = None) -> T:
        return of_x(a, dtype)

    def of_input(input: Any, dtype: Any = None) -> T:
        return of_x(input, dtype)

    body = {"x": of_x, "a": of_a, "input": of_input}[argument]
    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"{doc} In `dtype`, if it is set."
    return function(body, wide=wide)


def _trigonometric(t: T) -> T:
    """Convert bools and 8-bit integers to float16, other integers to float32."""
    return t if t.is_floating_point() or t.is_complex() else t.to(torch.float16 if t.dtype in _HALF else torch.float32)


def _of_trigonometric(compute: Callable[[T], T]) -> Callable[[T], T]:
    return lambda t: compute(_trigonometric(t))


def _of_floating(compute: Callable[[T], T]) -> Callable[[T], T]:
    return lambda t: compute(floating(t))


def _keeping_bool(compute: Callable[[T], T]) -> Callable[[T], T]:
    """Compute bools as integers, and convert the result back."""
    return lambda t: compute(t.to(torch.uint8)).to(torch.bool) if t.dtype is torch.bool else compute(t)


def _cube_root(t: T) -> T:
    t = t.to(torch.float32) if t.dtype is not torch.float64 else t
    return torch.sign(t) * torch.pow(torch.abs(t), 1 / 3)


def _single(compute: Callable[[T], T], keeps: tuple[torch.dtype, ...] = (torch.float32,)) -> Callable[[T], T]:
    return lambda t: compute(t if t.dtype in keeps else t.to(torch.float32))


def _reciprocal(t: T) -> T:
    return torch.reciprocal(t) if t.is_floating_point() or t.is_complex() else quotients.truncate_divide(torch.ones_like(t), t)


abs = _unary("abs", _keeping_bool(torch.abs), "The absolute value, in the dtype of x.")
absolute = _unary("absolute", _keeping_bool(torch.abs), "The absolute value, in the dtype of x.")
fabs = _unary("fabs", _keeping_bool(torch.abs), "The absolute value, in the dtype of x.")
arccos = _unary("arccos", _of_trigonometric(torch.acos), "The inverse cosine.", "input")
arccosh = _unary("arccosh", _of_trigonometric(arccosh_of), "The inverse hyperbolic cosine.")
arcsin = _unary("arcsin", _of_trigonometric(torch.asin), "The inverse sine.")
arcsinh = _unary("arcsinh", _of_trigonometric(torch.asinh), "The inverse hyperbolic sine.")
arctan = _unary("arctan", _of_trigonometric(torch.atan), "The inverse tangent.")
arctanh = _unary("arctanh", _of_trigonometric(torch.atanh), "The inverse hyperbolic tangent.")
cos = _unary("cos", _of_trigonometric(torch.cos), "The cosine.")
cosh = _unary("cosh", _of_trigonometric(torch.cosh), "The hyperbolic cosine.")
sin = _unary("sin", _of_trigonometric(torch.sin), "The sine.")
sinh = _unary("sinh", _of_trigonometric(torch.sinh), "The hyperbolic sine.")
tan = _unary("tan", _of_trigonometric(torch.tan), "The tangent.")
tanh = _unary("tanh", _of_trigonometric(torch.tanh), "The hyperbolic tangent.")
invert = _unary("invert", torch.bitwise_not, "All bits inverted.", wide=Widening())
bitwise_not = _unary("bitwise_not", torch.bitwise_not, "All bits inverted.")
cbrt = _unary("cbrt", _cube_root, "The cube root, float64 for float64 and else float32.")
ceil = _unary("ceil", _single(torch.ceil), "The smallest integer not below x, float32.")
trunc = _unary("trunc", _single(torch.trunc, (torch.float32, torch.float16)), "x without its fraction, float16 or float32.")
floor = _unary("floor", _of_floating(torch.floor), "The largest integer not above x.")
rint = _unary("rint", _of_floating(torch.round), "The nearest integer, halves to the even one.")
deg2rad = _unary("deg2rad", _of_floating(torch.deg2rad), "Degrees to radians.")
radians = _unary("radians", _of_floating(torch.deg2rad), "Degrees to radians.")
rad2deg = _unary("rad2deg", _of_floating(torch.rad2deg), "Radians to degrees.")
exp = _unary("exp", _of_floating(torch.exp), "e to the power x.")
exp2 = _unary("exp2", lambda t: torch.pow(2, t), "2 to the power x; integers stay integers.")
expm1 = _unary("expm1", _of_floating(torch.expm1), "exp(x) - 1.")
log = _unary("log", _of_floating(torch.log), "The natural logarithm.")
log10 = _unary("log10", _of_floating(torch.log10), "The logarithm to base 10.")
log1p = _unary("log1p", _of_floating(torch.log1p), "log(1 + x).")
log2 = _unary("log2", _of_floating(torch.log2), "The logarithm to base 2.")
negative = _unary("negative", torch.neg, "The negative.", "a", wide=Widening())
positive = _unary("positive", lambda t: t.clone(), "x itself.", "a")
reciprocal = _unary("reciprocal", _reciprocal, "1 / x; truncated for integers.")
sqrt = _unary("sqrt", _of_floating(torch.sqrt), "The square root.")
square = _unary("square", torch.square, "x * x.", wide=Widening())


@function
def sign(x: Any, dtype: Any = None) -> T:
    """-1, 0 or 1, in float32 for integers. In `dtype`, if it is set. Raises TypeError for bools."""
    t = to_tensor(x)
    if t.dtype is torch.bool:
        raise TypeError("expected numbers, got truth values.")
    t = floating(t)
    return cast(torch.where(torch.isnan(t), t, torch.sign(t)), dtype)


@function
def fix(x: Any) -> T:
    """x truncated, float16 for float16 and else float32."""
    t = to_tensor(x)
    return torch.trunc(t if t.dtype is torch.float16 else t.to(torch.float32))


def _binary(name: str, compute: Callable[[T, T], T], doc: str) -> Callable[..., T]:
    def body(x1: Any, x2: Any, dtype: Any = None) -> T:
        return cast(compute(*pair(x1, x2)), dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"{doc} In `dtype`, if it is set."
    return function(body)


def _counted(compute: Callable[[T, T], T]) -> Callable[[T, T], T]:
    """Compute bools as integers, and convert the result back."""
    return lambda a, b: compute(a.to(torch.uint8), b.to(torch.uint8)).to(torch.bool) if a.dtype is torch.bool else compute(a, b)


def _numbers(compute: Callable[[T, T], T]) -> Callable[[T, T], T]:
    def checked(a: T, b: T) -> T:
        if a.dtype is torch.bool:
            raise TypeError("expected numbers, got truth values.\n\nhint: write logical_or, logical_and or logical_xor.")
        return compute(a, b)

    return checked


def _greatest_divisor(a: T, b: T) -> T:
    """Euclid's algorithm, which also supports fractions: torch.gcd supports only integers."""
    if not a.is_floating_point():
        return torch.gcd(a, b)
    a, b = torch.broadcast_tensors(torch.abs(a), torch.abs(b))
    # The loop would not end for NaN and infinity.
    is_odd = ~(torch.isfinite(a) & torch.isfinite(b))
    odd = torch.where(torch.isnan(a), a, torch.where(torch.isnan(b), torch.where(a == 0, b, a), torch.minimum(a, b)))
    a, b = torch.where(is_odd, odd, a), torch.where(is_odd, torch.zeros_like(b), b)
    while bool((b != 0).any()):
        a, b = torch.where(b == 0, a, b), torch.where(b == 0, b, quotients.fmod(a, torch.where(b == 0, torch.ones_like(b), b)))
    return a


def _least_multiple(a: T, b: T) -> T:
    if not a.is_floating_point():
        return torch.lcm(a, b)
    divisor = _greatest_divisor(a, b)
    return torch.where(divisor == 0, divisor, torch.abs(a * b) / torch.where(divisor == 0, torch.ones_like(divisor), divisor))


def _step(a: T, b: T) -> T:
    return torch.where(a < 0, torch.zeros_like(b), torch.where(a > 0, torch.ones_like(b), b))


def _ratio(a: T, b: T) -> T:
    return torch.div(floating(a), floating(b))


def _quotient(name: str) -> Callable[..., T]:
    def body(x1: Any, x2: Any, dtype: Any = None) -> T:
        a, b = to_tensor(x1), to_tensor(x2)
        if not {a.dtype, b.dtype} & {torch.float16, torch.float32} and not (a.is_complex() or b.is_complex()):
            a, b = a.to(torch.float32), b.to(torch.float32)              # also float64, as in MindSpore
        return cast(_ratio(*pair(a, b)), dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = "x1 / x2, float32 for integers and float64. In `dtype`, if it is set."
    return function(body)


add = _binary("add", _numbers(torch.add), "x1 + x2.")
subtract = _binary("subtract", _numbers(torch.sub), "x1 - x2.")
multiply = _binary("multiply", torch.mul, "x1 * x2.")
divide = _quotient("divide")
true_divide = _quotient("true_divide")
power = _binary("power", _numbers(torch.pow), "x1 to the power x2; integers stay integers.")
floor_divide = _binary("floor_divide", _counted(quotients.floor_divide), "x1 / x2, rounded down.")
fmod = _binary("fmod", _counted(quotients.fmod), "The remainder of x1 / x2, with the sign of x1.")
mod = _binary("mod", _counted(quotients.remainder), "The remainder of x1 / x2, with the sign of x2.")
remainder = _binary("remainder", _counted(quotients.remainder), "The remainder of x1 / x2, with the sign of x2.")
gcd = _binary("gcd", _counted(_greatest_divisor), "The greatest common divisor.")
lcm = _binary("lcm", _counted(_least_multiple), "The least common multiple.")
heaviside = _binary("heaviside", _step, "0 where x1 < 0, x2 where it is 0, 1 where it is above.")
bitwise_and = _binary("bitwise_and", torch.bitwise_and, "Bitwise and.")
bitwise_or = _binary("bitwise_or", torch.bitwise_or, "Bitwise or.")
bitwise_xor = _binary("bitwise_xor", torch.bitwise_xor, "Bitwise exclusive or.")
hypot = _binary("hypot", lambda a, b: torch.sqrt(floating(a * a + b * b)), "sqrt(x1 ** 2 + x2 ** 2).")
logaddexp = _binary(
    "logaddexp", lambda a, b: torch.log(torch.exp(floating(a)) + torch.exp(floating(b))),
    "log(exp(x1) + exp(x2)); it overflows as exp.",
)
logaddexp2 = _binary("logaddexp2", lambda a, b: torch.log2(torch.exp2(floating(a)) + torch.exp2(floating(b))), "log2(2 ** x1 + 2 ** x2).")


@function
def divmod(x1: Any, x2: Any, dtype: Any = None) -> Any:
    """x1 / x2 rounded down, and the remainder with the sign of x2. Both in `dtype`, if it is set."""
    a, b = pair(x1, x2)
    return cast(_counted(quotients.floor_divide)(a, b), dtype), cast(_counted(quotients.remainder)(a, b), dtype)


@function
def float_power(x1: Any, x2: Any, dtype: Any = None) -> T:
    """x1 to the power x2 in float32. In `dtype`, if it is set."""
    return cast(torch.pow(to_tensor(x1).to(torch.float32), to_tensor(x2).to(torch.float32)), dtype)


@function
def arctan2(x1: Any, x2: Any, dtype: Any = None) -> T:
    """The angle of the point (x2, x1), in radians. In `dtype`, if it is set."""
    return cast(torch.atan2(*together(_trigonometric(to_tensor(x1)), _trigonometric(to_tensor(x2)))), dtype)


@function
def copysign(x1: Any, x2: Any, dtype: Any = None) -> T:
    """|x1| with the sign of x2, in the dtype of x1. In `dtype`, if it is set. Raises TypeError for bools."""
    a, b = to_tensor(x1), to_tensor(x2)
    if torch.bool in (a.dtype, b.dtype):
        raise TypeError("expected numbers, got truth values.")
    size = torch.abs(a)
    return cast(torch.where(b < 0, -size, size), dtype)


def _extreme(compute: Callable[[T, T], T], x1: Any, x2: Any, dtype: Any) -> T:
    a, b = to_tensor(x1), to_tensor(x2)
    common = promote(a.dtype, b.dtype) if (a.ndim == 0) == (b.ndim == 0) else a.dtype if a.ndim else b.dtype
    return cast(compute(_bound_in_range(a, common).to(common), _bound_in_range(b, common).to(common)), dtype)


@function
def maximum(x1: Any, x2: Any, dtype: Any = None) -> T:
    """The larger of the two; one without axes takes the dtype of the other. In `dtype`, if it is set."""
    return _extreme(torch.maximum, x1, x2, dtype)


@function
def minimum(x1: Any, x2: Any, dtype: Any = None) -> T:
    """The smaller of the two; one without axes takes the dtype of the other. In `dtype`, if it is set."""
    return _extreme(torch.minimum, x1, x2, dtype)


@function(wide=Widening(compares=True))
def clip(x: Any, xmin: Any, xmax: Any, dtype: Any = None) -> T:
    """Clip x to [xmin, xmax]; one of them may be None. In `dtype`, if it is set. Raises ValueError if both are None."""
    t = to_tensor(x)
    if xmin is None and xmax is None:
        raise ValueError("xmin=None, xmax=None: expected one of them at least.")
    for compute, bound in ((torch.maximum, xmin), (torch.minimum, xmax)):
        if bound is not None:
            limit = _bound_in_range(to_tensor(bound), t.dtype)
            t = compute(*pair(t, limit)) if limit.ndim else compute(t, limit.to(t.dtype))
    return cast(t, dtype)


def _bound_in_range(bound: T, dtype: torch.dtype) -> T:
    """Return an integer bound, limited to the range of the integers of `dtype`."""
    if bound.ndim or bound.is_floating_point() or dtype.is_floating_point or bound.dtype is torch.bool or dtype is torch.bool:
        return bound
    info = torch.iinfo(dtype)
    return bound.clamp(info.min, info.max) if info.bits < 64 else bound


@function
def around(a: Any, decimals: int = 0) -> T:
    """a rounded to `decimals` digits, halves to the even one; integers stay integers, and bools become int64 if `decimals` > 0.

    Raises ValueError if `decimals` < 0.
    """
    t = to_tensor(a)
    if decimals < 0:
        raise ValueError(f"decimals={decimals}: expected at least 0.")
    if not t.is_floating_point():
        return t.to(torch.int64) if decimals and t.dtype is torch.bool else t.clone()
    scale = math.pow(10, decimals)
    return torch.round(t * scale) / scale if decimals else torch.round(t)


round = around

from torchspore.mindspore.numpy.polynomials import polyadd, polyder, polyint, polymul, polysub, polyval  # noqa: E402
from torchspore.mindspore.numpy.products import (  # noqa: E402
    cross,
    dot,
    inner,
    kron,
    matmul,
    matrix_power,
    multi_dot,
    norm,
    outer,
    tensordot,
)
from torchspore.mindspore.numpy.reductions import (  # noqa: E402
    amax,
    amin,
    argmax,
    argmin,
    average,
    count_nonzero,
    cumprod,
    cumsum,
    mean,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanstd,
    nansum,
    nanvar,
    ptp,
    std,
    var,
)
from torchspore.mindspore.numpy.series import (  # noqa: E402
    convolve,
    correlate,
    diff,
    digitize,
    ediff1d,
    gradient,
    interp,
    searchsorted,
    trapz,
    unwrap,
)
from torchspore.mindspore.numpy.statistics import bincount, corrcoef, cov, histogram, histogram2d, histogramdd  # noqa: E402
from torchspore.mindspore.numpy.types import promote_types, ravel_multi_index, result_type  # noqa: E402

__all__ = [
    "absolute", "add", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin",
    "around", "average", "bincount", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clip", "convolve",
    "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "deg2rad", "diff",
    "digitize", "divide", "dot", "ediff1d", "exp", "exp2", "expm1", "fabs", "fix", "float_power", "floor", "floor_divide",
    "fmod", "gcd", "gradient", "heaviside", "histogram", "histogram2d", "histogramdd", "hypot", "inner", "interp", "invert", "kron",
    "lcm", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "matmul", "matrix_power", "maximum", "mean",
    "minimum", "mod", "multi_dot", "multiply", "nancumsum", "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar", "negative",
    "norm", "outer", "polyadd", "polyder", "polyint", "polymul", "polysub", "polyval", "positive", "power", "promote_types", "ptp",
    "rad2deg", "radians", "ravel_multi_index", "reciprocal", "remainder", "result_type", "rint", "searchsorted", "sign", "sin",
    "sinh", "sqrt", "square", "std", "subtract", "tan", "tanh", "tensordot", "trapz", "true_divide", "trunc", "unwrap", "var",
]
