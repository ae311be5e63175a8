"""Comparisons, logic and membership."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchspore.mindspore.numpy.utils import axes_of, cast, function, only_tensor, pair, to_tensor, together
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _compared(name: str, compute: Callable[[T, T], T], doc: str) -> Callable[..., T]:
    def body(x1: Any, x2: Any, dtype: Any = None) -> T:
        return cast(compute(*pair(x1, x2)), dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"{doc} In `dtype`, if it is set."
    return function(body)


def _predicate(name: str, compute: Callable[[T], T], doc: str) -> Callable[..., T]:
    def body(x: Any, dtype: Any = None) -> T:
        return cast(compute(to_tensor(x)), dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"{doc} In `dtype`, if it is set."
    return function(body)


equal = _compared("equal", torch.eq, "Tests for equality.")
not_equal = _compared("not_equal", torch.ne, "Tests for inequality.")
less = _compared("less", torch.lt, "Tests x1 < x2.")
less_equal = _compared("less_equal", torch.le, "Tests x1 <= x2.")
greater = _compared("greater", torch.gt, "Tests x1 > x2.")
greater_equal = _compared("greater_equal", torch.ge, "Tests x1 >= x2.")
logical_and = _compared("logical_and", torch.logical_and, "Logical and.")
logical_or = _compared("logical_or", torch.logical_or, "Logical or.")
logical_xor = _compared("logical_xor", torch.logical_xor, "Logical exclusive or.")
isfinite = _predicate("isfinite", torch.isfinite, "Tests whether x is finite.")
isinf = _predicate("isinf", torch.isinf, "Tests whether x is infinite.")
isnan = _predicate("isnan", torch.isnan, "Tests whether x is not a number.")
signbit = _predicate("signbit", lambda t: t < 0 if t.dtype is not torch.bool else torch.zeros_like(t), "Tests x < 0, false for -0.0.")


@function(wide=Widening())
def logical_not(a: Any, dtype: Any = None) -> T:
    """Logical not. In `dtype`, if it is set."""
    return cast(torch.logical_not(to_tensor(a)), dtype)


@function
def isneginf(x: Any) -> T:
    """Test whether x is minus infinity."""
    return torch.isneginf(only_tensor(x, "x"))


@function
def isposinf(x: Any) -> T:
    """Test whether x is plus infinity."""
    return torch.isposinf(only_tensor(x, "x"))


def isscalar(element: Any) -> bool:
    """Test whether `element` is a number or a string, not a Tensor or a sequence."""
    return isinstance(element, (bool, int, float, str, np.generic))


@function
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> T:
    """Test whether the two differ by at most atol + rtol * |b|; NaN is close to NaN only with `equal_nan`."""
    left, right = pair(a, b)
    if left.dtype is torch.bool:
        return left == right
    return torch.isclose(left, right, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _equal_values(a: T, b: T, equal_nan: bool) -> T:
    is_equal = a == b
    if equal_nan:
        is_equal = is_equal | (torch.isnan(a) & torch.isnan(b))
    return is_equal.all()


@function
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> T:
    """Test whether the two have one shape and equal values (a Tensor without axes); NaN equals NaN only with `equal_nan`."""
    a, b = pair(a1, a2)
    return _equal_values(a, b, equal_nan) if a.shape == b.shape else torch.zeros((), dtype=torch.bool, device=a.device)


@function
def array_equiv(a1: Any, a2: Any) -> T:
    """Test whether the two, broadcast to one shape, have equal values (a Tensor without axes)."""
    a, b = pair(a1, a2)
    fits = all(m == n or 1 in (m, n) for m, n in zip(reversed(a.shape), reversed(b.shape)))
    return _equal_values(a, b, False) if fits else torch.zeros((), dtype=torch.bool, device=a.device)


@function
def sometrue(a: Any, axis: Any = None, keepdims: bool = False) -> T:
    """Test whether any value over `axis`, an int, a tuple or None for all, is true."""
    t = to_tensor(a)
    return torch.sum(t != 0, axes_of(axis, t.ndim), keepdim=keepdims) > 0


def _member(element: Any, test_elements: Any, invert: bool) -> T:
    a, b = together(to_tensor(element), to_tensor(test_elements).reshape(-1))
    is_member = (a.unsqueeze(-1) == b).any(-1)
    return ~is_member if invert else is_member


@function
def isin(element: Any, test_elements: Any, invert: bool = False) -> T:
    """Test whether each value is in `test_elements`, in the shape of `element`; with `invert`, whether it is not."""
    return _member(element, test_elements, invert)


@function
def in1d(ar1: Any, ar2: Any, invert: bool = False) -> T:
    """Test whether each value of the flat `ar1` is in `ar2`; with `invert`, whether it is not."""
    return _member(to_tensor(ar1).reshape(-1), ar2, invert)


@function
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> T:
    """The values of `ar1` that are not in `ar2`, sorted and without repetitions; with `assume_unique`, in their order."""
    flat = to_tensor(ar1).reshape(-1)
    flat = flat if assume_unique else torch.unique(flat)
    return flat[_member(flat, ar2, True)]


__all__ = [
    "array_equal", "array_equiv", "equal", "greater", "greater_equal", "in1d", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isscalar", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "setdiff1d",
    "signbit", "sometrue",
]
