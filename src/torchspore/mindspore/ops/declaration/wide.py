"""uint16, uint32 and uint64 in operators that torch lacks for them: widened to int64, computed, and narrowed.

Only operators that MindSpore 2.10 computes declare a `Widening` (`@op(wide=...)`); it refuses others with TypeError, and so does torch.
A uint64 from 2^63 on has the bits of a negative int64: sums and products are right anyway; for comparisons, the highest bit is inverted.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

T = torch.Tensor
WIDE = frozenset({torch.uint16, torch.uint32, torch.uint64})

_TOP = -(1 << 63)
"""The highest bit: with it inverted, the bits of uint64 have the order of int64."""


@dataclass(frozen=True)
class Widening:
    """How an operator computes wide unsigned integers.

    `values` are the positions of the results that contain values; the other results are indexes. `compares` is set if the operator
    compares elements, so that the order of uint64 matters.
    """

    values: tuple[int, ...] = (0,)
    compares: bool = False


_SCALARS = frozenset({bool, int, float, type(None)})
"""Classes of arguments that contain no Tensor."""
_BOUNDS = frozenset({"min", "max", "initial", "clip_value_min", "clip_value_max"})
"""Arguments that are numbers to compare with."""


def widened(body: Callable[..., Any], widening: Widening | None) -> Callable[..., Any]:
    """Return a form of `body` that also accepts wide unsigned integers; `body` itself without a `widening`."""
    if widening is None:
        return body
    values, compares = widening.values, widening.compares

    @functools.wraps(body)
    def operator(*arguments: Any, **keywords: Any) -> Any:
        if 0 < len(arguments) <= 2 and not keywords and (first := arguments[0]).__class__ is torch.Tensor and first.dtype not in WIDE:
            if len(arguments) == 1:
                return body(first)
            second = arguments[1]
            if second.dtype is first.dtype if second.__class__ is torch.Tensor else second.__class__ in _SCALARS:
                return body(first, second)
        for argument in (*arguments, *keywords.values()) if keywords else arguments:
            if argument.__class__ in (tuple, list) and argument:
                argument = argument[0]                                       # choices, of one dtype
            if isinstance(argument, torch.Tensor) and argument.dtype in WIDE:
                ordered = argument.dtype is torch.uint64 and compares and not _has_reals(arguments, keywords)
                out = _in_order(body, arguments, keywords) if ordered else body(
                    *map(_wider, arguments), **{key: _wider(value) for key, value in keywords.items()}
                )
                narrow = from_order if ordered else functools.partial(_narrowed, dtype=argument.dtype)
                if isinstance(out, torch.Tensor):
                    return narrow(out) if values else out
                return tuple(narrow(item) if i in values else item for i, item in enumerate(out))
        return body(*arguments, **keywords)

    return operator


def in_order(t: T) -> T:
    """Convert uint64 to int64 of the same order."""
    return t.view(torch.int64) ^ _TOP


def from_order(t: T) -> T:
    """Undo `in_order`."""
    return (t ^ _TOP).view(torch.uint64) if t.dtype is torch.int64 else t


def _in_order(body: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Compute the operator for uint64 in the order of int64; bounds that are numbers are converted too."""
    bound = inspect.signature(body).bind(*arguments, **keywords)
    for name, value in bound.arguments.items():
        if isinstance(value, torch.Tensor) and value.dtype is torch.uint64:
            bound.arguments[name] = in_order(value)
        elif name in _BOUNDS and type(value) is int:
            bound.arguments[name] = min(max(value, 0), 2**64 - 1) + _TOP
    return body(*bound.args, **bound.kwargs)


def quotient(a: T, b: T) -> T:
    """uint64 // uint64. A divisor from 2^63 on fits once or never; for others, half the dividend is divided, which fits int64."""
    x, y = a.view(torch.int64), b.view(torch.int64)
    small = torch.where(y < 0, 1, y)
    half = torch.div((x >> 1) & ~_TOP, small, rounding_mode="floor") * 2
    small_quotient = half + (((x - half * small) ^ _TOP) >= (small ^ _TOP))
    return torch.where(y < 0, ((x ^ _TOP) >= (y ^ _TOP)).to(torch.int64), small_quotient).view(torch.uint64)


def rest(a: T, b: T) -> T:
    """uint64 % uint64."""
    return (a.view(torch.int64) - quotient(a, b).view(torch.int64) * b.view(torch.int64)).view(torch.uint64)


def _has_reals(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    return any(type(value) is float for value in (*arguments, *keywords.values()))


def _wider(value: Any) -> Any:
    if value.__class__ in (tuple, list):
        return value.__class__(map(_wider, value))
    return value.to(torch.int64) if isinstance(value, torch.Tensor) and value.dtype in WIDE else value


def _narrowed(t: T, dtype: torch.dtype) -> T:
    return t.to(dtype) if t.dtype is torch.int64 else t
