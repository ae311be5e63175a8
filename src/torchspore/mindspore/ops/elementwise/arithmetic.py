"""Arithmetic, comparison and logic of two operands with MindSpore's promotion, including the operators of Tensor (`+`, `<`, …).

These operators run most often. Each is one function, with a short path for two Tensors of one dtype that needs no second frame.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.execution import pynative
from torchspore.engine.execution.precision import ruled
from torchspore.engine.formulas import quotients
from torchspore.engine.native import operators as native_operators
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number, is_marked
from torchspore.engine.tensors.tensor import Composite, TensorBase, raw, wrap
from torchspore.mindspore.ops.declaration.declare import explaining, op
from torchspore.mindspore.ops.declaration.explain import explain
from torchspore.mindspore.ops.declaration.extremes import Extremes
from torchspore.mindspore.ops.declaration.promote import is_wide, pair, widened
from torchspore.mindspore.ops.declaration.wide import WIDE

_new = object.__new__
# torch cannot compare a number with a Tensor in this operand order.
_SEEN_FROM_THE_OTHER: dict[Any, Any] = {
    torch.eq: torch.eq, torch.ne: torch.ne, torch.lt: torch.gt, torch.gt: torch.lt, torch.le: torch.ge, torch.ge: torch.le,
}


def _beyond(compute: Callable[..., torch.Tensor], x: Any, y: Any) -> Any:
    """Return the result of a comparison with an int outside the range of the Tensor's dtype, or None if the int is inside the range."""
    t, number = (x, y) if isinstance(x, TensorBase) else (y, x)
    if number.__class__ is not int or not isinstance(t, TensorBase) or t._t.dtype not in _INTEGERS:
        return None
    if type(number) is not int and t._t.dtype in (torch.int32, torch.int64):
        return None                                # a symbolic int of a graph: reading it would fix its value
    limits = torch.iinfo(t._t.dtype)
    if limits.min <= number <= limits.max:
        return None
    if t is y:
        compute = _SEEN_FROM_THE_OTHER[compute]
    is_true = compute is torch.ne or compute in ((torch.lt, torch.le) if number > limits.max else (torch.gt, torch.ge))
    return wrap(torch.full_like(raw(t), is_true, dtype=torch.bool))


_FLOATS = frozenset({torch.float32, torch.float64})
_INTEGERS = frozenset({
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
})


def apply_complete_rule(function: Callable[..., Any], compute: Callable[..., torch.Tensor], x: Any, y: Any, family: str) -> Any:
    """Apply the complete rule: frames, promotion, wide unsigned integers, errors."""
    if isinstance(y, Composite) and function in (add, sub, mul):
        if function is mul:
            return y * x                            # stays sparse: the Tensor's other elements do not matter
        return y + x if function is add else -(y - x)
    if x.__class__ is Extremes or y.__class__ is Extremes:
        x, y = (v[0] if v.__class__ is Extremes else v for v in (x, y))
    if compute in _SEEN_FROM_THE_OTHER:
        comparison = _beyond(compute, x, y)
        if comparison is not None:
            return comparison
    try:
        plain = _plain_pair(x, y)
        if plain is not None:
            if not engine.active:
                return wrap(compute(*plain))
            out = ruled(compute, function.__name__)(*plain)
            if engine.observers:
                pynative.after(out)
            return wrap(out)
        a, b = pair(x, y, family)
        if not isinstance(a, torch.Tensor) and compute in _SEEN_FROM_THE_OTHER:
            compute, a, b = _SEEN_FROM_THE_OTHER[compute], b, a
        if engine.active:
            compute = ruled(compute, function.__name__)
        out = widened(compute, a, b) if is_wide(a, b) else compute(a, b)
        if engine.observers:
            pynative.after(out)
        return wrap(out)
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        if isinstance(error, RuntimeError) and not isinstance(error, RecursionError) and pynative.bring((x, y)):
            return function(x, y)
        raise explain(function, (x, y), {}, error) from None


def _plain_pair(x: Any, y: Any) -> tuple[torch.Tensor, Any] | None:
    """Return operands that need no promotion: two Tensors of one dtype, or a Tensor of floating-point numbers and a number; else None."""
    if not isinstance(x, TensorBase) or type(x) is Number:
        return None
    around = engine.thread_state.frame                   # `raw`, without its call
    lookup = None if around is None else around.lookup
    a, kind = x._t if around is None else around.resolve(x) if lookup is None else lookup(id(x), x._t), type(y)
    if kind is float or kind is int:
        return (a, y) if a.dtype in _FLOATS and not is_marked(a) else None
    if not isinstance(y, TensorBase) or kind is Number:
        return None
    b = y._t if around is None else around.resolve(y) if lookup is None else lookup(id(y), y._t)
    return (a, b) if a.dtype is b.dtype and a.dtype not in WIDE else None


def binary(
    name: str, compute: Callable[..., torch.Tensor], doc: str, family: str = "add", plain: Callable[..., torch.Tensor] | None = None,
) -> Callable[[Any, Any], Any]:
    """Build the operator `name` of two operands from torch's `compute`.

    `plain` computes the same for two Tensors of one dtype, and for a Tensor of floating-point numbers and a number, or raises TypeError or
    RuntimeError; `compute` by default.
    """
    short = plain or compute

    def run_in_python(input: Any, other: Any) -> Any:
        t = None
        try:
            if not engine.active:
                a = input._t
                kind = type(other)
                if kind is float or kind is int:
                    if a.dtype in _FLOATS:
                        t = short(a, other)
                elif a.dtype is (b := other._t).dtype:
                    t = short(a, b)
            elif (operands := _plain_pair(input, other)) is not None:
                t = ruled(short, name)(*operands)
        except (AttributeError, RuntimeError, TypeError, OverflowError):     # the complete rule explains it
            pass
        if t is None:
            return apply_complete_rule(operator, compute, input, other, family)
        if engine.observers:
            pynative.after(t)
        out = _new(engine.tensor_class)
        out._t = t
        return out

    short_path = native_operators.short_path(short)
    if short_path is None:
        operator = run_in_python
    else:
        def operator(input: Any, other: Any) -> Any:
            out = short_path(input, other)
            return run_in_python(input, other) if out is None else out

        operator.in_python = run_in_python  # type: ignore[attr-defined]
        native_operators.intercept(operator, short)
    for function in (run_in_python, operator):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        function.__module__ = __name__
    return operator


def _power(a: Any, b: Any) -> torch.Tensor:
    """Raise integers to a negative power: the result is 0, or ±1 if the base is ±1."""
    base = a if isinstance(a, torch.Tensor) else None
    if base is not None and not base.dtype.is_floating_point and not base.dtype.is_complex:
        if isinstance(b, int) and b < 0:
            return torch.where(base == 1, 1, torch.where(base == -1, -1 if b % 2 else 1, 0)).to(base.dtype)
    if a.__class__ is bool and b.dtype is not torch.bool:              # torch's gradient fails for a bool
        a = int(a)
    return torch.pow(a, b)


def _subtract(a: Any, b: Any) -> torch.Tensor:
    """Subtract. torch refuses bools; MindSpore subtracts them as numbers, and takes exclusive or of two bools."""
    bools = _is_bool(a) + _is_bool(b)
    if not bools:
        return torch.sub(a, b)
    if bools == 2:
        return torch.logical_xor(*as_tensors(a, b))
    common = torch.result_type(a, b)
    return torch.sub(*(v.to(common) if isinstance(v, torch.Tensor) else int(v) if isinstance(v, bool) else v for v in (a, b)))


def _floor_divide(a: Any, b: Any) -> torch.Tensor:
    if _is_bool(a) and _is_bool(b):
        return torch.logical_and(*as_tensors(a, b))
    return quotients.floor_divide(a, b)


def _larger(a: Any, b: Any) -> torch.Tensor:
    return torch.maximum(*as_tensors(a, b))


def _smaller(a: Any, b: Any) -> torch.Tensor:
    return torch.minimum(*as_tensors(a, b))


def _is_bool(value: Any) -> bool:
    return value.dtype is torch.bool if isinstance(value, torch.Tensor) else isinstance(value, bool)


add = op(primitive="Add", raw_arguments=True)(binary("add", torch.add, "Adds `other` to `input`, element by element, with broadcasting."))
sub = op(primitive="Sub", raw_arguments=True)(
    binary("sub", _subtract, "Subtracts `other` from `input`, element by element.", plain=torch.sub)
)
mul = op(primitive="Mul", raw_arguments=True)(binary("mul", torch.mul, "Multiplies `input` and `other`, element by element.", "mul"))
divided = binary("div", torch.true_divide, "Divides `input` by `other`; integers give float32.", "div")
floor_divide = op(primitive="FloorDiv", raw_arguments=True)(
    binary("floor_divide", _floor_divide, "Divides and rounds towards minus infinity.")
)
remainder = op(raw_arguments=True)(binary("remainder", quotients.remainder, "The remainder with the sign of the divisor."))
modulo = binary("floor_mod", quotients.remainder, "The remainder with the sign of the divisor.")
power = binary("pow", _power, "Raises `input` to a power; a negative power of an integer is 0.")
fmod = op(primitive="Mod", raw_arguments=True)(binary("fmod", quotients.fmod, "The remainder with the sign of the dividend."))
maximum = op(primitive="Maximum", raw_arguments=True)(
    binary("maximum", _larger, "The larger of the two, element by element.", plain=torch.maximum)
)
minimum = op(primitive="Minimum", raw_arguments=True)(
    binary("minimum", _smaller, "The smaller of the two, element by element.", plain=torch.minimum)
)
equal = op(primitive="Equal", raw_arguments=True)(binary("equal", torch.eq, "Tests for equality, element by element.", "equal"))
not_equal = op(primitive="NotEqual", raw_arguments=True)(
    binary("not_equal", torch.ne, "Tests for inequality, element by element.", "compare")
)
less = op(primitive="Less", raw_arguments=True)(binary("less", torch.lt, "Tests `input` < `other`, element by element.", "compare"))
less_equal = op(primitive="LessEqual", raw_arguments=True)(
    binary("less_equal", torch.le, "Tests `input` <= `other`, element by element.", "compare")
)
greater = op(primitive="Greater", raw_arguments=True)(
    binary("greater", torch.gt, "Tests `input` > `other`, element by element.", "compare")
)
greater_equal = op(primitive="GreaterEqual", raw_arguments=True)(
    binary("greater_equal", torch.ge, "Tests `input` >= `other`, element by element.", "compare")
)
logical_and = op(primitive="LogicalAnd", raw_arguments=True)(
    binary("logical_and", lambda a, b: torch.logical_and(*as_tensors(a, b)), "Logical and, element by element.")
)
logical_or = op(primitive="LogicalOr", raw_arguments=True)(
    binary("logical_or", lambda a, b: torch.logical_or(*as_tensors(a, b)), "Logical or, element by element.")
)
logical_xor = op(primitive="LogicalXor", raw_arguments=True)(
    binary("logical_xor", lambda a, b: torch.logical_xor(*as_tensors(a, b)), "Logical exclusive or, element by element.")
)

bitwise_and = op(primitive="BitwiseAnd", raw_arguments=True)(
    binary("bitwise_and", lambda a, b: torch.bitwise_and(a, b), "Bitwise and; logical and for bools.")
)
bitwise_or = op(primitive="BitwiseOr", raw_arguments=True)(
    binary("bitwise_or", lambda a, b: torch.bitwise_or(a, b), "Bitwise or; logical or for bools.")
)
bitwise_xor = op(primitive="BitwiseXor", raw_arguments=True)(
    binary("bitwise_xor", lambda a, b: torch.bitwise_xor(a, b), "Bitwise exclusive or.")
)


def as_tensors(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both operands as tensors, for torch functions that do not accept numbers."""
    like = a if isinstance(a, torch.Tensor) else b
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dtype is b.dtype:
        return a, b
    dtype = torch.result_type(a, b)
    a, b = (v if isinstance(v, torch.Tensor) else torch.full((), v, dtype=dtype, device=like.device) for v in (a, b))
    return a.to(dtype), b.to(dtype)


@op(primitive="Div", raw_arguments=True)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Divides `input` by `other`; with `rounding_mode` 'floor' or 'trunc' the quotient is rounded that way."""
    if rounding_mode is None:
        return divided(input, other)
    if not isinstance(rounding_mode, str) or rounding_mode not in ("floor", "trunc"):
        raise explain(div, (input, other), {"rounding_mode": rounding_mode}, ValueError("expected rounding_mode None, 'floor' or 'trunc'."))
    return floor_divide(input, other) if rounding_mode == "floor" else _truncated(input, other)


_truncated = binary("div", quotients.truncate_divide, "Divides and rounds towards zero.")


@op(primitive="Pow", raw_arguments=True)
def pow(input: Any, exponent: Any) -> Any:
    """Raises `input` to the power `exponent`; a negative power of an integer is 0."""
    return power(input, exponent)


@op(primitive="FloorMod", raw_arguments=True)
def floor_mod(x: Any, y: Any) -> Any:
    """The remainder with the sign of the divisor."""
    return modulo(x, y)


@op(raw_arguments=True)
def tensor_mod(x: Any, y: Any) -> Any:
    """The remainder with the sign of the divisor."""
    return modulo(x, y)


@op(raw_arguments=True)
def floor_div(x: Any, y: Any) -> Any:
    """Divides and rounds towards minus infinity."""
    return floor_divide(x, y)


@op(primitive="RealDiv", raw_arguments=True)
def tensor_div(x: Any, y: Any) -> Any:
    """Divides x by y; integers give integers, rounded towards zero."""
    return _truncated(x, y) if _is_integer(x) and _is_integer(y) else divided(x, y)


def _is_integer(value: Any) -> bool:
    """Return whether a number or a Tensor has an integer type."""
    if isinstance(value, TensorBase):
        dtype = value._t.dtype
        return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
    return isinstance(value, int) and not isinstance(value, bool)


@op(raw_arguments=True)
def true_divide(dividend: Any, divisor: Any) -> Any:
    """Divides; integers give float32."""
    return divided(dividend, divisor)


@op(raw_arguments=True)
def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other."""
    if alpha == 1 and all(_is_bool(getattr(v, "_t", v)) for v in (input, other)):
        return sub(mul(input, 1), other)                       # alpha is an int, so the result is one too
    return sub(input, other if alpha == 1 else mul(other, alpha))


@op(primitive="ScalarCast", raw_arguments=True)
@explaining
def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A Python number converted to the Python type of the dtype `input_y`."""
    from torchspore.mindspore.common.dtype import dtype_to_pytype

    try:
        return dtype_to_pytype(input_y)(input_x)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError("expected a number and a dtype.") from None


def reflected(
    function: Callable[[Any, Any], Any], plain: Callable[..., torch.Tensor] | None = None, short: str = "",
) -> Callable[[Any, Any], Any]:
    """Return the operator with swapped operands, for `2 - x`; `plain(t, number)` computes it for floating-point numbers.

    `short` is the name of its short path; by default it is that of `plain`.
    """
    short_path = native_operators.short_path(short or plain)

    def operator(self: Any, other: Any) -> Any:
        kind = type(other)
        if short_path is not None and (kind is float or kind is int) and (out := short_path(self, other)) is not None:
            return out
        if plain is not None and not engine.active and (kind is float or kind is int) and self._t.dtype in _FLOATS:
            try:
                return wrap(plain(self._t, other))
            except OverflowError:                          # the complete rule explains it
                pass
        return function(other, self)

    return operator


_COMPARED = (TensorBase, int, float, torch.Tensor, torch.SymInt, torch.SymFloat)


def _comparison(function: Callable[[Any, Any], Any], otherwise: bool) -> Callable[[Any, Any], Any]:
    """`==` and `!=` of a Tensor. As in MindSpore they return `otherwise` for all but Tensors, ints and floats: lists, arrays, complex."""

    def operator(self: Any, other: Any) -> Any:
        return function(self, other) if isinstance(other, _COMPARED) else otherwise

    return operator


DUNDERS: dict[str, Callable[..., Any]] = {
    "__add__": add, "__sub__": sub, "__mul__": mul, "__truediv__": divided, "__floordiv__": floor_divide, "__mod__": modulo,
    "__pow__": power, "__radd__": reflected(add, torch.add),
    "__rsub__": reflected(sub, torch.rsub), "__rmul__": reflected(mul, torch.mul),
    "__rtruediv__": reflected(divided, lambda t, number: torch.true_divide(number, t), "rdiv"),
    "__rfloordiv__": reflected(floor_divide), "__rmod__": reflected(modulo), "__rpow__": reflected(power),
    "__lt__": less, "__le__": less_equal, "__gt__": greater, "__ge__": greater_equal,
    "__eq__": _comparison(equal, False), "__ne__": _comparison(not_equal, True),
}
"""The operators of the Tensor class. `x += y` is absent, so Python rebinds the name, as in MindSpore."""
