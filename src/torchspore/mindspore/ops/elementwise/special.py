"""Special functions and properties of single numbers: gamma and Bessel functions, signs, bits."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import apart
from torchspore.errors import NotFinite
from torchspore.mindspore.ops.declaration.arguments import as_dtype, several
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.mindspore.ops.elementwise.binary import two
from torchspore.mindspore.ops.elementwise.unary import arccosh_of, unary

T = torch.Tensor
S = torch.special


class _Sloped(torch.autograd.Function):
    """Compute an element-wise function with a derivative that torch lacks; higher derivatives are those of `slope`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: T, value: Callable[[T], T], _: Any) -> T:  # type: ignore[override]
        return value(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, _output: T) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.slope = inputs[2]

    @staticmethod
    def backward(ctx: Any, gradient: T) -> Any:  # type: ignore[override]
        return gradient * ctx.slope(*ctx.saved_tensors), None, None


class _SlopedByFirst(torch.autograd.Function):
    """Compute a function of two tensors that torch differentiates only by the second; `slope` is the derivative by the first."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: T, x: T, value: Callable[[T, T], T], _: Any) -> T:  # type: ignore[override]
        return value(a, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, _output: T) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.slope = inputs[3]

    @staticmethod
    def backward(ctx: Any, gradient: T) -> Any:  # type: ignore[override]
        return gradient * ctx.slope(*ctx.saved_tensors), None, None, None


def _with_slope_by_first(value: Callable[[T, T], T]) -> Callable[[T, T], T]:
    """Return `value` with a derivative by its first argument, from central differences in float64."""

    def function(a: T, x: T) -> T:
        if not (a.requires_grad and torch.is_grad_enabled()):
            return value(a, x)
        by_first = apart(_SlopedByFirst, a, x.detach(), value, slope)
        by_second = value(a.detach(), x)
        return by_first + (by_second - by_second.detach())

    def slope(a: T, x: T) -> T:
        wide = a.double()
        step = torch.clamp(wide.detach().abs(), min=1.0) * 1e-5
        change = function(wide + step, x.double()) - function(wide - step, x.double())
        return (change / (2 * step)).to(a.dtype)

    return function


def _with_slope(value: Callable[[T], T], slope: Callable[[T], T]) -> Callable[[T], T]:
    def function(x: T) -> T:
        if not (x.requires_grad and torch.is_grad_enabled()):
            return value(x)
        if x.dtype in (torch.float16, torch.bfloat16):               # torch has no kernels of 16 bits for most of these
            return function(x.float()).to(x.dtype)
        return apart(_Sloped, x, value, slope)

    return function


def _over(y: T, x: T, limit: float) -> T:
    """Return y / x, and `limit` where x is 0."""
    return torch.where(x == 0, limit, y / torch.where(x == 0, 1, x))


def _from_zero(value: Callable[[T], T], limit: float) -> Callable[[T], T]:
    """Return `value`, but `limit`, its value at 0, for negative numbers, as MindSpore does."""
    return lambda x: torch.where(x <= 0, limit, value(x))


# Derivatives: DLMF 10.6 and 10.29.
_i0 = _with_slope(S.i0, lambda x: _i1(x))
_i1 = _with_slope(S.i1, lambda x: _i0(x) - _over(_i1(x), x, 0.5))
_i0e = _with_slope(S.i0e, lambda x: _i1e(x) - torch.sign(x) * _i0e(x))
_i1e = _with_slope(S.i1e, lambda x: _i0e(x) - _i1e(x) * torch.sign(x) - _over(_i1e(x), x, 0.5))
_j0 = _with_slope(S.bessel_j0, lambda x: -_j1(x))
_j1 = _with_slope(S.bessel_j1, lambda x: _j0(x) - _over(_j1(x), x, 0.5))
_y0 = _with_slope(_from_zero(S.bessel_y0, -math.inf), lambda x: -_y1(x))
_y1 = _with_slope(_from_zero(S.bessel_y1, -math.inf), lambda x: _y0(x) - _y1(x) / x)
_k0 = _with_slope(_from_zero(S.modified_bessel_k0, math.inf), lambda x: -_k1(x))
_k1 = _with_slope(_from_zero(S.modified_bessel_k1, math.inf), lambda x: -_k0(x) - _k1(x) / x)
_k0e = _with_slope(_from_zero(S.scaled_modified_bessel_k0, math.inf), lambda x: _k0e(x) - _k1e(x))
_k1e = _with_slope(_from_zero(S.scaled_modified_bessel_k1, math.inf), lambda x: _k1e(x) * (1 - 1 / x) - _k0e(x))


def _bessel(name: str, primitive: str, compute: Callable[[T], T], doc: str) -> Callable[[T], T]:
    def body(x: T) -> T:
        return compute(x)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return op(primitive=primitive, methods=(name,) if name.endswith(("0", "1")) else ())(body)


bessel_i0 = _bessel("bessel_i0", "BesselI0", _i0, "The modified Bessel function of the first kind of order 0.")
bessel_i1 = _bessel("bessel_i1", "BesselI1", _i1, "The modified Bessel function of the first kind of order 1.")
bessel_i0e = _bessel("bessel_i0e", "BesselI0e", _i0e, "exp(-|x|) times `bessel_i0`.")
bessel_i1e = _bessel("bessel_i1e", "BesselI1e", _i1e, "exp(-|x|) times `bessel_i1`.")
bessel_j0 = _bessel("bessel_j0", "BesselJ0", _j0, "The Bessel function of the first kind of order 0.")
bessel_j1 = _bessel("bessel_j1", "BesselJ1", _j1, "The Bessel function of the first kind of order 1.")
bessel_y0 = _bessel("bessel_y0", "BesselY0", _y0, "The Bessel function of the second kind of order 0.")
bessel_y1 = _bessel("bessel_y1", "BesselY1", _y1, "The Bessel function of the second kind of order 1.")
bessel_k0 = _bessel("bessel_k0", "BesselK0", _k0, "The modified Bessel function of the second kind of order 0.")
bessel_k1 = _bessel("bessel_k1", "BesselK1", _k1, "The modified Bessel function of the second kind of order 1.")
bessel_k0e = _bessel("bessel_k0e", "BesselK0e", _k0e, "exp(x) times `bessel_k0`.")
bessel_k1e = _bessel("bessel_k1e", "BesselK1e", _k1e, "exp(x) times `bessel_k1`.")


@op(methods=("i0",))
def i0(input: T) -> T:
    """The modified Bessel function of the first kind of order 0."""
    return _i0(input)


sinc = unary("sinc", torch.sinc, "sin(pi x) / (pi x), and 1 at 0.", "Sinc")
sgn = unary(
    "sgn", lambda x: torch.sgn(x) if x.is_complex() else torch.sign(x), "The sign; of a complex number, x / |x|.")
signbit = unary("signbit", torch.signbit, "Tests whether the sign is negative.")
isneginf = unary("isneginf", torch.isneginf, "Tests whether x is minus infinity.")
isposinf = unary("isposinf", torch.isposinf, "Tests whether x is plus infinity.")
isreal = unary("isreal", torch.isreal, "Tests whether the imaginary part is 0.")
positive = unary("positive", lambda x: x.clone(), "x itself.")
angle = unary("angle", torch.angle, "The angle of a complex number in radians; pi for a negative real number.", "Angle")
arccosh = unary("arccosh", arccosh_of, "The inverse hyperbolic cosine.")
arcsinh = unary("arcsinh", torch.asinh, "The inverse hyperbolic sine.")
arctanh = unary("arctanh", torch.atanh, "The inverse hyperbolic tangent.")
tensor_expm1 = unary("tensor_expm1", torch.expm1, "exp(x) - 1.", methods=())
_complex_abs = unary("_complex_abs", torch.abs, "The absolute value of complex numbers.", "ComplexAbs", ())


@op(methods=("frac",))
def frac(x: T) -> T:
    """x minus x truncated."""
    if x.is_floating_point() or x.is_complex():
        return torch.frac(x)
    return torch.zeros_like(x, dtype=torch.int64 if x.dtype is torch.bool else x.dtype)


@op(primitive="Rint")
def _rint(input_x: T) -> T:
    """Round to the nearest integer, halves to the even one."""
    return torch.round(input_x)


@op(primitive="Inv", methods=("inv",))
def inv(x: T) -> T:
    """1 / x; for integers it is truncated, so only 1 and -1 give nonzero values. Raises ZeroDivisionError for an integer 0."""
    if x.is_floating_point() or x.is_complex():
        return torch.reciprocal(x)
    return torch.div(torch.ones_like(x), x, rounding_mode="trunc")


@op(primitive="Invert", methods=("invert",), wide=Widening())
def invert(x: T) -> T:
    """Invert all bits of integers."""
    if x.is_floating_point() or x.dtype is torch.bool:
        raise TypeError(f"expected integers, got {FROM_TORCH[x.dtype]}.\n\nhint: ops.logical_not inverts truth values.")
    return torch.bitwise_not(x)


@op(methods=("bitwise_not",))
def _bitwise_not(input: T) -> T:
    """Invert all bits of integers; for bools, logical not."""
    return torch.bitwise_not(input)


@op(primitive="PopulationCount")
def population_count(input_x: T) -> T:
    """The number of 1 bits of each integer, as uint8."""
    bits = torch.iinfo(input_x.dtype).bits
    positions = torch.arange(bits, device=input_x.device)
    wide = input_x.to(torch.int64).unsqueeze(-1)
    return (wide >> positions & 1).sum(-1).to(torch.uint8)


@op(primitive="Eps")
def eps(x: T) -> T:
    """The distance from 1 to the next number of x's dtype, in x's shape."""
    return torch.full_like(x, torch.finfo(x.dtype).eps)


@op(methods=("numel",))
def numel(input: T) -> int:
    """The number of elements."""
    return input.numel()


@op(methods=("is_complex",))
def is_complex(input: T) -> bool:
    """Test whether the dtype is complex."""
    return input.is_complex()


@op(methods=("is_floating_point",))
def is_floating_point(input: T) -> bool:
    """Test whether the dtype is a real floating-point dtype."""
    return input.is_floating_point()


@op()
def is_nonzero(input: T) -> bool:
    """Test whether the only number of a Tensor is not zero. Raises ValueError unless there is exactly one."""
    if input.numel() != 1:
        raise ValueError(f"expected a Tensor of one element, got shape {tuple(input.shape)}.")
    return bool(input.item())                              # `!= 0` of a symbolic bool in a capture would be True


@op(methods=("nan_to_num",), primitive="NanToNum", init=("nan", "posinf", "neginf"))
def nan_to_num(input: T, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> T:
    """Replace NaN (by 0) and the infinities (by the largest and the smallest number of the dtype)."""
    return torch.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)


@op(methods=("logit",))
def logit(input: T, eps: float | None = None) -> T:
    """log(x / (1 - x)); with `eps`, x is first clipped to [eps, 1 - eps]."""
    return torch.logit(input, eps)


@op(primitive="Logit", init=("eps",))
def _logit(input: T, eps: float = -1.0) -> T:
    """log(x / (1 - x)); unless `eps` is negative, x is first clipped to [eps, 1 - eps]."""
    return torch.logit(input, None if eps < 0 else eps)


igamma = two(
    "igamma", _with_slope_by_first(torch.igamma), "The regularized lower incomplete gamma function.", "Igamma", methods=("igamma",),
    alike=True,
)
igammac = two(
    "igammac", _with_slope_by_first(torch.igammac), "The regularized upper incomplete gamma function.", "Igammac", methods=("igammac",),
    alike=True,
)
zeta = two("zeta", _with_slope_by_first(S.zeta), "The Hurwitz zeta function.", "Zeta", alike=True)


@op(primitive="Polygamma")
def polygamma(n: Any, input: T) -> T:
    """The n-th derivative of the digamma function."""
    return torch.polygamma(int(n), input)


@op(primitive="Mvlgamma", init=("p",), methods=("mvlgamma",))
def mvlgamma(input: T, p: int) -> T:
    """The logarithm of the multivariate gamma function of dimension p."""
    if bool((input <= (p - 1) / 2).any()):
        raise ValueError(f"expected numbers above (p - 1) / 2, {(p - 1) / 2}.")
    return torch.mvlgamma(input, p)


@op(primitive="Betainc")
def _betainc(a: T, b: T, x: T) -> T:
    """The regularized incomplete beta function."""
    a64, b64, x64 = (t.to(torch.float64) for t in torch.broadcast_tensors(a, b, x))
    swapped = x64 > (a64 + 1) / (a64 + b64 + 2)          # the mirrored fraction converges fast where this one is slow
    first, second = torch.where(swapped, b64, a64), torch.where(swapped, a64, b64)
    at = torch.where(swapped, 1 - x64, x64).clamp(0, 1)
    front = torch.exp(
        torch.lgamma(first + second) - torch.lgamma(first) - torch.lgamma(second) + torch.xlogy(first, at) + torch.xlogy(second, 1 - at)
    ) / first
    out = front / _beta_fraction(first, second, at)
    return torch.where(swapped, 1 - out, out).to(x.dtype)


def _beta_fraction(a: T, b: T, x: T) -> T:
    """The continued fraction of DLMF 8.17.22, by the method of Lentz: 200 terms, of which float64 needs fewer."""
    tiny = 1e-300
    value = torch.ones_like(x)
    c, d = torch.ones_like(x), torch.zeros_like(x)
    for term in range(1, 201):
        m, odd = divmod(term, 2)
        if odd:
            factor = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            factor = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 + factor * d
        d = 1 / torch.where(d == 0, tiny, d)
        c = 1 + factor / c
        c = torch.where(c == 0, tiny, c)
        value = value * c * d
    return value


@op(methods=("view_as_real",))
def view_as_real(input: T) -> T:
    """Complex numbers as pairs of real ones: a new last axis of length 2."""
    return torch.view_as_real(input).clone()


@op(primitive="CheckNumerics")
def _check_numerics(x: T) -> T:
    """Return x. Raises NotFinite if an element is NaN or infinite."""
    if not bool(torch.isfinite(x).all()):
        raise NotFinite("expected finite numbers, got NaN or infinity.")
    return x.clone()


@op(methods=("fills",))
def fills(x: T, value: Any) -> T:
    """Fill x's shape with `value`, in x's dtype."""
    return torch.full_like(x, value.item() if isinstance(value, T) else value)


@op(primitive="Fills")
def _fills(x: T, value: Any) -> T:
    """Fill x's shape with `value`, in x's dtype."""
    return torch.full_like(x, value.item() if isinstance(value, T) else value)


@op(primitive="IdentityN")
def _identity_n(x: Any) -> Any:
    """Return the Tensors of a tuple or list unchanged."""
    return tuple(t.view_as(t) for t in several(x))


@op(primitive="_VirtualDataset")
def _virtual_dataset(*inputs: Any) -> Any:
    """Return the inputs unchanged: MindSpore's mark for values split over processes, of which there is one."""
    return inputs[0] if len(inputs) == 1 else inputs


@op(primitive="DataFormatDimMap", init=("src_format", "dst_format"))
def _data_format_dim_map(input_x: T, src_format: str = "NHWC", dst_format: str = "NCHW") -> T:
    """Return, for each axis number in `dst_format`, the position of that axis in `src_format`."""
    table = constant([src_format.index(axis) for axis in dst_format], input_x.device, input_x.dtype)
    return table[torch.remainder(input_x, len(src_format)).long()]


@op(primitive="DataFormatVecPermute", init=("src_format", "dst_format"))
def _data_format_vec_permute(input_x: T, src_format: str = "NHWC", dst_format: str = "NCHW") -> T:
    """Permute a vector (or rows) with a number for each axis from the order `src_format` to `dst_format`."""
    if input_x.shape[0] == 2:                      # only height and width
        src_format, dst_format = ("".join(c for c in word if c in "HW") for word in (src_format, dst_format))
    return input_x[constant([src_format.index(axis) for axis in dst_format], input_x.device)]


@op(numbers=("start", "end", "steps"))
def logspace(start: Any, end: Any, steps: int, base: int = 10, *, dtype: Any = torch.float32) -> T:
    """`steps` powers of `base` with exponents evenly spaced from `start` to `end`."""
    return torch.logspace(float(start), float(end), int(steps), base, dtype=as_dtype(dtype))


@op(primitive="LogSpace", init=("steps", "base", "dtype"))
def _logspace(start: T, end: T, steps: int = 10, base: int = 10, dtype: Any = torch.float32) -> T:
    """`steps` powers of `base` with exponents evenly spaced from `start` to `end`."""
    return torch.pow(float(base), torch.linspace(float(start), float(end), steps, device=start.device)).to(as_dtype(dtype))

