"""A Python number that a graph computes: it has Python's arithmetic, in 64 bits, and a Tensor takes it as it takes a Python number."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.tensor import TensorBase, frame, raw

_SAMPLES: dict[torch.dtype, bool | int | float] = {torch.bool: True, torch.int64: 1, torch.float64: 1.0}


class Number(TensorBase):
    """Holds one int (int64), float (float64) or bool as a 0-d torch tensor. After the graph has run it is a Python number."""

    __slots__ = ()

    def __init__(self, t: torch.Tensor) -> None:
        self._t = t

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The Python type that it stands for, as `isinstance` sees it; `type()` tells the truth."""
        return KINDS[self._t.dtype]

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{KINDS[self._t.dtype].__name__} of a graph"

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
        return Number(-_counted(raw(self)))

    def __pos__(self) -> Number:
        return Number(_counted(raw(self)))

    def __abs__(self) -> Number:
        return Number(_counted(raw(self)).abs())


KINDS: dict[torch.dtype, type] = {torch.bool: bool, torch.int64: int, torch.float64: float}
"""Which Python type a Number of this dtype stands for."""


def number(value: bool | int | float) -> Number:
    """A Number that holds `value`."""
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    return Number(torch.full((), value, dtype=dtype))


def is_plain(value: Any) -> bool:
    """Whether `value` is a Python number that a Number can stand for."""
    return type(value) in (bool, int, float)


def as_operand(value: Number, other: torch.Tensor) -> torch.Tensor:
    """What to compute with for `value` beside `other`: it promotes as a Python number does."""
    t = raw(value)
    return t.to(torch.result_type(other, _SAMPLES[t.dtype]))


def _counted(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.int64) if t.dtype is torch.bool else t


def _torch(value: Any) -> torch.Tensor | None:
    if isinstance(value, Number):
        return raw(value)
    return raw(number(value)) if is_plain(value) else None


def _fits(left: Number, right: Any, to_float: bool) -> bool:
    """Whether `right` can be computed with as it stands: torch then comes to the dtype that Python's rules give."""
    return is_plain(right) and not isinstance(right, bool) and (to_float or left._t.dtype is torch.float64 or isinstance(right, int))


def _define(sign: str, compute: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], to_float: bool = False) -> None:
    def apply(left: Any, right: Any) -> Any:
        a, b = _torch(left), right if isinstance(left, Number) and _fits(left, right, to_float) else _torch(right)
        if a is None or b is None:
            return NotImplemented
        common = torch.float64 if to_float or torch.float64 in (a.dtype, getattr(b, "dtype", None)) else torch.int64
        if not isinstance(b, torch.Tensor):
            return Number(compute(a.to(common), b))
        return Number(compute(a.to(common), b.to(common)))

    setattr(Number, f"__{sign}__", lambda self, other: apply(self, other))
    if sign not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Number, f"__r{sign}__", lambda self, other: apply(other, self))


def _power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.pow(a, b)


_Compute = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_COMPUTE: dict[str, _Compute] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "mod": torch.remainder, "pow": _power, "lt": torch.lt, "le": torch.le,
    "gt": torch.gt, "ge": torch.ge, "eq": torch.eq, "ne": torch.ne,
    "floordiv": functools.partial(torch.div, rounding_mode="floor"),
}
for _sign, _compute in _COMPUTE.items():
    _define(_sign, _compute)
_define("truediv", torch.div, to_float=True)


class MutableInt(int):
    """An int that `mutable` marks: an input of the graph from the first call on."""


class MutableFloat(float):
    """A float that `mutable` marks: an input of the graph from the first call on."""


MUTABLE = (MutableInt, MutableFloat)
