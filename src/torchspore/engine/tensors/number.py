"""A Python number that a graph computes: it has Python's arithmetic, in 64 bits, and a Tensor takes it as it takes a Python number."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.tensors.tensor import TensorBase, frame, raw, tensors

_SAMPLES: dict[torch.dtype, bool | int | float] = {torch.bool: True, torch.int64: 1, torch.float64: 1.0}


LARGEST = 2 ** 31
"""The largest absolute value of ints that enter a graph; larger ones have graphs of their own, as Python's have no end."""
_EXACT, _END = 2 ** 53, 2 ** 63


class Number(TensorBase):
    """Contains one int (int64), float (float64) or bool as a 0-d torch tensor. After the graph has run it is a Python number.

    `bound` is the largest absolute value of an int: arithmetic that may exceed 64 bits needs the value.
    """

    __slots__ = ()

    def __init__(self, t: torch.Tensor, bound: int = LARGEST) -> None:
        self._t, self.bound = t, bound

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The Python type that it represents, for `isinstance`; `type()` returns the real class."""
        return KINDS[self._t.dtype]

    def __hash__(self) -> int:
        return id(self) if frame() is None else hash(self._value())

    def __repr__(self) -> str:
        return f"{KINDS[self._t.dtype].__name__} of a graph" if frame() is None else repr(self._value())

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, form: str) -> str:
        return format(self._value(), form)

    def _value(self) -> Any:
        around = frame()
        return (self._t if around is None else around.host(self)).item()

    def __bool__(self) -> bool:
        return bool(self._value())

    def __int__(self) -> int:
        return int(self._value())

    def __float__(self) -> float:
        return float(self._value())

    def __index__(self) -> int:
        return operator.index(self._value())

    def __neg__(self) -> Number:
        return Number(-_counted(raw(self)), self.bound)

    def __pos__(self) -> Number:
        return Number(_counted(raw(self)), self.bound)

    def __abs__(self) -> Number:
        return Number(_counted(raw(self)).abs(), self.bound)


KINDS: dict[torch.dtype, type] = {torch.bool: bool, torch.int64: int, torch.float64: float}
"""Return the Python type that a Number of this dtype represents."""


def number(value: bool | int | float) -> Number:
    """A Number that holds `value`."""
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    return Number(torch.full((), value, dtype=dtype), max(LARGEST, _bound(value)))


def is_large(value: Any) -> bool:
    """Return whether `value` is an int too large to be computed with in 64 bits."""
    return type(value) is int and not -LARGEST <= value <= LARGEST


def is_plain(value: Any) -> bool:
    """Return whether `value` is a Python number that a Number can stand for."""
    return type(value) in (bool, int, float)


def as_operand(value: Number, other: torch.Tensor) -> torch.Tensor:
    """Return the operand for `value` with `other`: it promotes as a Python number does."""
    t = raw(value)
    return t.to(torch.result_type(other, _SAMPLES[t.dtype]))


def natural(value: Number) -> torch.Tensor:
    """A Tensor's values made of `value` alone: float32 of a float, as of a Python number."""
    t = raw(value)
    return t.to(torch.float32) if t.dtype is torch.float64 else t


def operand_for(value: Number, arguments: Any, keywords: Any) -> torch.Tensor:
    """Return the operand for `value` among these arguments: a float does not promote others to float64, an int not to int64."""
    t = raw(value)
    operands = (*arguments, *keywords.values())
    others = [raw(other) for other in tensors(operands) if type(other) is not Number]
    if t.dtype is not torch.float64:
        kinds = [other.dtype for other in others if other.dtype is not torch.bool]
        return t.to(functools.reduce(torch.promote_types, kinds)) if kinds and all(other.ndim == 0 for other in others) else t
    wants_float64 = any(getattr(other, "_torch", None) is torch.float64 for other in operands if not isinstance(other, TensorBase))
    if wants_float64 or any(other.dtype in (torch.float64, torch.complex128) for other in others):
        return t
    floats = [other.dtype for other in others if other.is_floating_point()]
    if floats and all(other.ndim == 0 for other in others):
        return t.to(functools.reduce(torch.promote_types, floats))
    return t.to(torch.float32)


def _counted(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.int64) if t.dtype is torch.bool else t


def _torch(value: Any) -> torch.Tensor | None:
    if isinstance(value, Number):
        return raw(value)
    return raw(number(value)) if is_plain(value) else None


def _is_float(value: Any) -> bool:
    return value._t.dtype is torch.float64 if isinstance(value, Number) else isinstance(value, float)


def _fits(a: Number, right: Any, to_float: bool) -> bool:
    """Return whether `right` can be computed with as it stands: torch then comes to the dtype that Python's rules give."""
    return is_plain(right) and not isinstance(right, bool) and (to_float or a._t.dtype is torch.float64 or isinstance(right, int))


def _bound(value: Any) -> int:
    """Return the largest absolute value of an int operand; 0 for a float."""
    if isinstance(value, Number):
        return 0 if value._t.dtype is torch.float64 else 1 if value._t.dtype is torch.bool else value.bound
    return abs(int(value)) if isinstance(value, int) else 0


def _bounded(sign: str, left: Any, right: Any) -> int:
    """Return the largest absolute value of the result of two ints."""
    a, b = _bound(left), _bound(right)
    if sign == "pow":
        return 1 if a <= 1 else a ** b if b <= 64 else _END
    if sign == "mul":
        return a * b
    if sign in ("add", "sub"):
        return a + b
    return b if sign == "mod" else a + 1 if sign == "floordiv" else 1


_PYTHONS: dict[str, Callable[[Any, Any], Any]] = {
    sign: getattr(operator, sign) for sign in ("add", "sub", "mul", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne", "floordiv", "truediv")
}


def _define(sign: str, compute: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], to_float: bool = False) -> None:
    def apply(left: Any, right: Any) -> Any:
        if is_plain(left if isinstance(right, Number) else right) and (is_large(left) or is_large(right)):
            return _PYTHONS[sign](*[v._value() if isinstance(v, Number) else v for v in (left, right)])
        a, b = _torch(left), right if isinstance(left, Number) and _fits(left, right, to_float) else _torch(right)
        if a is None or b is None:
            return NotImplemented
        is_float = to_float or any(_is_float(v) for v in (left, right))
        bound = max(_bound(left), _bound(right)) if is_float else _bounded(sign, left, right)
        if bound > (_EXACT if is_float else _END - 1):          # Python's answer is not the one of 64 bits
            return _PYTHONS[sign](*[v._value() if isinstance(v, Number) else v for v in (left, right)])
        a, b = _refusing(sign, a, b, right)
        common = torch.float64 if to_float or torch.float64 in (a.dtype, getattr(b, "dtype", None)) else torch.int64
        result = compute(a.to(common), b.to(common) if isinstance(b, torch.Tensor) else b)
        return Number(_finite(result, a, b) if sign == "pow" and common is torch.float64 else result, bound)

    setattr(Number, f"__{sign}__", lambda self, other: apply(self, other))
    if sign not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Number, f"__r{sign}__", lambda self, other: apply(other, self))


_DIVIDES = ("truediv", "floordiv", "mod")


def _refusing(sign: str, a: torch.Tensor, b: Any, right: Any) -> tuple[torch.Tensor, Any]:
    """The operands of a division or power, of which the graph refuses those for which Python raises or gives a complex number."""
    if sign in _DIVIDES:
        if is_plain(right):
            if right == 0:
                raise ZeroDivisionError("division by zero")
            return a, b
        return a, _only(b, b == 0)
    if sign == "pow" and is_plain(right) and (right < 0 or right % 1 != 0):
        return _only(a, (a == 0) if right % 1 == 0 else (a < 0) | ((a == 0) & (right < 0))), b
    return a, b


def _finite(power: torch.Tensor, a: torch.Tensor, b: Any) -> torch.Tensor:
    """Raise a float to a power; the graph refuses powers without a float result, for which Python raises or returns a complex number."""
    other = b if isinstance(b, torch.Tensor) else torch.full((), b, dtype=torch.float64, device=a.device)
    is_lost = (power.isinf() & a.isfinite() & other.isfinite()) | (power.isnan() & ~a.isnan() & ~other.isnan())
    return _only(power, is_lost)


def _only(t: torch.Tensor, is_refused: torch.Tensor) -> torch.Tensor:
    """Return `t`; the graph fails if `is_refused` holds, by an index out of range, and PyNative mode explains the error."""
    unit = torch.ones(1, dtype=t.dtype, device=t.device)
    return t * unit.index_select(0, is_refused.reshape(1).to(torch.int64)).reshape(())


def _mod(a: torch.Tensor, b: Any) -> torch.Tensor:
    """The remainder; one that is 0 has the sign of the divisor, as Python's."""
    remainder = torch.remainder(a, b)
    if remainder.dtype is not torch.float64:
        return remainder
    divisor = b if isinstance(b, torch.Tensor) else torch.full((), b, dtype=torch.float64, device=a.device)
    return torch.where(remainder == 0, torch.copysign(remainder, divisor), remainder)


def _power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.pow(a, b)


_Compute = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_COMPUTE: dict[str, _Compute] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "mod": _mod, "pow": _power, "lt": torch.lt, "le": torch.le,
    "gt": torch.gt, "ge": torch.ge, "eq": torch.eq, "ne": torch.ne,
    "floordiv": functools.partial(torch.div, rounding_mode="floor"),
}
for _sign, _compute in _COMPUTE.items():
    _define(_sign, _compute)
_define("truediv", torch.div, to_float=True)


NUMBER_MARK = "_may_be_number"


def is_marked(t: torch.Tensor) -> bool:
    """Return whether a tensor of a trace may be a Python number in PyNative mode, as a branch or loop on a Tensor decides."""
    return hasattr(t, NUMBER_MARK)


def decided(a: Any, b: Any, family: str) -> None:
    """End a trace if one of two operands may be a number or a Tensor and the other makes that distinction matter."""
    if family in ("compare", "equal") or not (is_marked(a) or is_marked(b)):
        return
    marked, other = (a, b) if is_marked(a) else (b, a)
    around = frame()
    if around is not None and (not isinstance(other, torch.Tensor) or is_marked(other) or _differs(marked, other)):
        around.acts_beside("computes with a value that is a Tensor or a Python number, depending on a Tensor")


def _differs(marked: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether a Tensor of the dtype of `marked` makes another dtype of `other` than a number that it may be."""
    kinds = (1, 1.0) if marked.is_floating_point() else (1, 1.0, 1j) if marked.is_complex() else (_SAMPLES.get(marked.dtype, 1),)
    common = torch.promote_types(marked.dtype, other.dtype)
    return any(torch.result_type(other, kind) is not common for kind in kinds)


class MutableInt(int):
    """An int that `mutable` marks: an input of the graph from the first call on."""

    __ms_mutable__ = True


class MutableFloat(float):
    """A float that `mutable` marks: an input of the graph from the first call on."""

    __ms_mutable__ = True


MUTABLE = (MutableInt, MutableFloat)
