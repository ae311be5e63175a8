"""Element-wise mathematics of two or more operands, with MindSpore's promotion: from `atan2` to bit shifts."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.formulas import quotients
from torchspore.engine.formulas.quotients import truncate_divide
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.explain import explain
from torchspore.mindspore.ops.declaration.older_keywords import renamed_keywords
from torchspore.mindspore.ops.declaration.promote import mixed
from torchspore.mindspore.ops.elementwise.arithmetic import apply_complete_rule, as_tensors

T = torch.Tensor


def two(
    name: str, compute: Callable[[T, T], T], doc: str, primitive: str | None = None, names: tuple[str, str] = ("input", "other"),
    methods: tuple[str, ...] = (), family: str = "add", alike: bool = False,
) -> Callable[..., Any]:
    """Build the operator `name` of two operands with the parameters `names`; `compute` takes two tensors of one dtype.

    `alike` refuses Tensors of different dtypes, for functions where MindSpore does not promote.
    """
    signature = inspect.Signature([inspect.Parameter(parameter_name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for parameter_name in names])

    def operator(*arguments: Any, **keywords: Any) -> Any:
        try:
            if keywords or len(arguments) != 2:
                arguments = signature.bind(*arguments, **keywords).args
            x, y = arguments
            if alike and isinstance(x, TensorBase) and isinstance(y, TensorBase) and x._t.dtype is not y._t.dtype:
                raise mixed(x._t, y._t)
        except TypeError as error:
            older_spelling = renamed_keywords(operator, error, arguments, keywords)
            if older_spelling is not None:
                return operator(*arguments, **older_spelling)
            raise explain(operator, arguments, keywords, error) from None
        return apply_complete_rule(operator, lambda a, b: compute(*as_tensors(a, b)), x, y, family)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__, operator.__module__ = doc, __name__
    operator.__signature__ = signature  # type: ignore[attr-defined]
    operator.gated = True  # type: ignore[attr-defined]
    return op(primitive=primitive, methods=methods, raw_arguments=True)(operator)


def floats(t: T) -> T:
    """Convert integers and bools to float32; leave other dtypes unchanged."""
    return t if t.is_floating_point() or t.is_complex() else t.to(torch.float32)


def _floats_only(function: Callable[[T, T], T]) -> Callable[[T, T], T]:
    """Wrap `function` so that it refuses integers, as MindSpore does here."""

    def compute(a: T, b: T) -> T:
        if not a.is_floating_point():
            raise TypeError(f"expected real numbers, got {FROM_TORCH[a.dtype]}.\n\nhint: write x.astype(mindspore.float32).")
        return function(a, b)

    return compute


def _in_floats(function: Callable[[T, T], T]) -> Callable[[T, T], T]:
    """Wrap `function` so that integers are computed as float32."""
    return lambda a, b: function(floats(a), floats(b))


def _only_integers(function: Callable[[T, T], T]) -> Callable[[T, T], T]:
    """Wrap `function` so that it accepts only integers."""

    def compute(a: T, b: T) -> T:
        if a.is_floating_point() or a.is_complex() or a.dtype is torch.bool:
            raise TypeError(f"expected integers, got {FROM_TORCH[a.dtype]}.\n\nhint: write x.astype(mindspore.int32).")
        return function(a, b)

    return compute


def _div_no_nan(a: T, b: T) -> T:
    is_zero = b == 0
    return torch.where(is_zero, 0, a / torch.where(is_zero, 1, b)).to(a.dtype)


def _mul_no_nan(a: T, b: T) -> T:
    if not b.requires_grad:
        return torch.where(b == 0, 0, a * b)
    number = torch.where((b == 0) & ~torch.isfinite(a), 0, a)          # the gradient for b is a, even where b is 0
    return number * b


def _xdivy(a: T, b: T) -> T:
    is_zero = a == 0
    return torch.where(is_zero, 0, a / torch.where(is_zero, 1, b)).to(a.dtype)


_XY = ("x", "y")
atan2 = two("atan2", _floats_only(torch.atan2), "The angle of the point (other, input), in radians.", "Atan2", methods=("atan2", "arctan2"))
hypot = two("hypot", _floats_only(torch.hypot), "sqrt(input**2 + other**2).", "Hypot", methods=("hypot",))
fmax = two("fmax", torch.fmax, "The larger of the two; if one is NaN, the other.", "Fmax", methods=("fmax",))
fmin = two("fmin", torch.fmin, "The smaller of the two; if one is NaN, the other.", "Fmin", methods=("fmin",))
nextafter = two(
    "nextafter", _floats_only(torch.nextafter), "The next number after `input` towards `other`.", "NextAfter", methods=("nextafter",),
    alike=True,
)
def _squared_difference(a: T, b: T) -> T:
    difference = a - b
    return difference * difference.conj() if difference.is_complex() else torch.square(difference)


gcd = two("gcd", _only_integers(torch.gcd), "The greatest common divisor.", "Gcd", methods=("gcd",))
lcm = two("lcm", _only_integers(torch.lcm), "The least common multiple.", "Lcm", methods=("lcm",))
logaddexp = two("logaddexp", _floats_only(torch.logaddexp), "log(exp(input) + exp(other)).", methods=("logaddexp",))
logaddexp2 = two("logaddexp2", _floats_only(torch.logaddexp2), "log2(2**input + 2**other).", methods=("logaddexp2",))
heaviside = two(
    "heaviside", torch.heaviside, "0 where `input` is negative, 1 where it is positive, `values` where it is 0.", "Heaviside",
    names=("input", "values"), methods=("heaviside",), alike=True,
)


@op(methods=("copysign",))
def copysign(x: Any, other: Any) -> T:
    """The size of x with the sign of `other`, in the dtype of x; float32 for integers."""
    x = floats(torch.as_tensor(x))
    return torch.copysign(x, other.to(x.dtype) if isinstance(other, torch.Tensor) else other)


xdivy = two("xdivy", _in_floats(_xdivy), "x / y, and 0 where x is 0.", "Xdivy", _XY, ("xdivy",))
xlogy = two("xlogy", _in_floats(torch.xlogy), "input * log(other), and 0 where `input` is 0.", "Xlogy", methods=("xlogy",))
_div_no_nan_op = two("_div_no_nan", _div_no_nan, "x / y, and 0 where y is 0.", "DivNoNan", ("x", "y"))
_mul_no_nan_op = two("_mul_no_nan", _mul_no_nan, "x * y, and 0 where y is 0, whatever x is.", "MulNoNan", _XY)
squared_difference = two(
    "_squared_difference", _squared_difference, "(x - y) squared; of complex numbers, |x - y| squared.", "SquaredDifference", _XY,
)
truncate_div = two("truncate_div", quotients.truncate_divide, "x / y rounded towards zero.", "TruncateDiv", _XY, ("truncate_div",))
truncate_mod = two("truncate_mod", quotients.fmod, "The remainder with the sign of x.", "TruncateMod", _XY, ("truncate_mod",))
left_shift = two(
    "bitwise_left_shift", _only_integers(torch.bitwise_left_shift), "The bits of `input` shifted to the left.",
    methods=("bitwise_left_shift", "__lshift__"), family="shift",
)
right_shift = two(
    "bitwise_right_shift", _only_integers(torch.bitwise_right_shift), "The bits of `input` shifted to the right, with the sign preserved.",
    methods=("bitwise_right_shift", "__rshift__"), family="shift",
)
_left_shift = two("_left_shift", _only_integers(torch.bitwise_left_shift), "The bits of x1 shifted to the left.", "LeftShift", ("x1", "x2"))
_right_shift = two(
    "_right_shift", _only_integers(torch.bitwise_right_shift), "The bits of x shifted to the right, with the sign preserved.", "RightShift",
    ("input_x", "input_y"),
)


@op(methods=("ldexp",))
def ldexp(x: Any, other: Any) -> T:
    """x * 2**other; one of them may be a number."""
    like = x if isinstance(x, T) else other
    left, right = (v if isinstance(v, T) else constant(v, like.device) for v in (x, other))
    return torch.ldexp(left, right.to(torch.int64) if right.dtype is torch.bool else right)


@op(methods=("float_power",))
def float_power(input: Any, exponent: Any) -> T:
    """`input` to the power `exponent`, computed and returned in float64 (complex128)."""
    return torch.float_power(input, exponent)


@op(methods=("exp2",))
def exp2(input: T) -> T:
    """2 to the power x; integers give float32."""
    return torch.exp2(input.float() if input.dtype is torch.bfloat16 else input)


@op(primitive="Lerp", methods=("lerp",))
def lerp(input: T, end: T, weight: Any) -> T:
    """input + weight * (end - input), with a number or a Tensor as weight."""
    _check_lerp(input)
    return torch.lerp(input, end, weight)


@op(primitive="LerpScalar")
def _lerp_scalar(input: T, end: T, weight: float) -> T:
    """input + weight * (end - input), with a number as weight."""
    _check_lerp(input)
    return torch.lerp(input, end, weight)


def _check_lerp(t: T) -> None:
    if not (t.is_floating_point() or t.is_complex()):
        raise TypeError(f"expected real numbers, got {FROM_TORCH[t.dtype]}.\n\nhint: write x.astype(mindspore.float32).")


def _scaled(value: Any, t: T) -> T:
    """Multiply `t` by `value` in the dtype of `t`: for integers, a number is truncated."""
    if isinstance(value, T):
        return t * value.to(t.dtype)
    return t * (int(value) if isinstance(value, float) and not (t.is_floating_point() or t.is_complex()) else value)


@op(primitive="Addcmul", methods=("addcmul",))
def addcmul(input: T, tensor1: T, tensor2: T, value: Any = 1) -> T:
    """input + value * tensor1 * tensor2."""
    return input + _scaled(value, tensor1 * tensor2)


@op(primitive="Addcdiv", methods=("addcdiv",))
def addcdiv(input: T, tensor1: T, tensor2: T, value: Any = 1) -> T:
    """input + value * tensor1 / tensor2; the quotient of integers is truncated."""
    if any(t.is_floating_point() or t.is_complex() for t in (input, tensor1, tensor2)):
        return input + _scaled(value, tensor1 / tensor2)
    if isinstance(value, float) or (isinstance(value, T) and value.is_floating_point()):
        hint = "cast the Tensors, for example with astype(mindspore.float32)."
        raise TypeError(f"expected an integer as value, because the Tensors have integers.\n\nhint: {hint}")
    return input + truncate_divide(_scaled(value, tensor1), tensor2)


@op(primitive="IsClose", init=("rtol", "atol", "equal_nan"), methods=("isclose",))
def isclose(input: T, other: T, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> T:
    """Test |input - other| <= atol + rtol * |other|, element by element; two NaNs are close if `equal_nan`."""
    if input.dtype is not other.dtype:
        raise mixed(input, other)
    return torch.isclose(input, other, float(rtol), float(atol), equal_nan)


@op(primitive="ApproximateEqual", init=("tolerance",), methods=("approximate_equal",))
def approximate_equal(x: T, y: T, tolerance: float = 1e-05) -> T:
    """Test |x - y| < tolerance, element by element."""
    return torch.abs(x - y) < tolerance


@op(primitive="EqualCount")
def _equal_count(x: T, y: T) -> T:
    """The number of equal elements: shape (1,), in x's dtype."""
    return (x == y).sum().to(x.dtype).reshape(1)


@op(primitive="SquareSumAll")
def _square_sum_all(x: T, y: T) -> tuple[T, T]:
    """The sums of the squares of x and of y."""
    return torch.square(x).sum(), torch.square(y).sum()


@op(primitive="Complex")
def _complex(real: T, imag: T) -> T:
    """real + i * imag: complex64 for float32, complex128 for float64."""
    return torch.complex(real, imag)


@op(primitive="Polar")
def polar(abs: T, angle: T) -> T:
    """The complex number with this absolute value and angle in radians."""
    return torch.polar(abs, angle)


@op(primitive="CompareAndBitpack")
def _compare_and_bitpack(x: T, threshold: T) -> T:
    """Eight comparisons x > threshold along the last axis as one uint8, the first as the highest bit."""
    bits = (x > threshold).reshape(*x.shape[:-1], -1, 8).to(torch.int32)
    return (bits << torch.arange(7, -1, -1, dtype=torch.int32, device=x.device)).sum(-1).to(torch.uint8)
