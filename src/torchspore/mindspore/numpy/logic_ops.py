"""Comparisons, truth values and membership."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchspore.mindspore.numpy.utils import axes_of, cast, function, only_tensor, pair, to_tensor, together

T = torch.Tensor


def _compared(name: str, compute: Callable[[T, T], T], doc: str) -> Callable[..., T]:
    def body(x1: Any, x2: Any, dtype: Any = None) -> T:
        return cast(compute(*pair(x1, x2)), dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"{doc} In `dtype`, if one is given."
    return function(body)


def _asked(name: str, compute: Callable[[T], T], doc: str) -> Callable[..., T]:
    def body(x: Any, dtype: Any = None) -> T:
        return cast(compute(to_tensor(x)), dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"{doc} In `dtype`, if one is given."
    return function(body)


equal = _compared("equal", torch.eq, "Whether the two are equal.")
not_equal = _compared("not_equal", torch.ne, "Whether the two differ.")
less = _compared("less", torch.lt, "Whether x1 < x2.")
less_equal = _compared("less_equal", torch.le, "Whether x1 <= x2.")
greater = _compared("greater", torch.gt, "Whether x1 > x2.")
greater_equal = _compared("greater_equal", torch.ge, "Whether x1 >= x2.")
logical_and = _compared("logical_and", torch.logical_and, "Whether both are true.")
logical_or = _compared("logical_or", torch.logical_or, "Whether one of the two is true.")
logical_xor = _compared("logical_xor", torch.logical_xor, "Whether just one of the two is true.")
isfinite = _asked("isfinite", torch.isfinite, "Whether x is finite.")
isinf = _asked("isinf", torch.isinf, "Whether x is infinite.")
isnan = _asked("isnan", torch.isnan, "Whether x is not a number.")
signbit = _asked("signbit", lambda t: t < 0 if t.dtype is not torch.bool else torch.zeros_like(t), "Whether x < 0; -0.0 is not.")


@function
def logical_not(a: Any, dtype: Any = None) -> T:
    """Whether `a` is false. In `dtype`, if one is given."""
    return cast(torch.logical_not(to_tensor(a)), dtype)


@function
def isneginf(x: Any) -> T:
    """Whether x is minus infinity."""
    return torch.isneginf(only_tensor(x, "x"))


@function
def isposinf(x: Any) -> T:
    """Whether x is plus infinity."""
    return torch.isposinf(only_tensor(x, "x"))


def isscalar(element: Any) -> bool:
    """Whether `element` is a number or a text: no Tensor, no sequence."""
    return isinstance(element, (bool, int, float, str, np.generic))


@function
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> T:
    """Whether the two differ by at most atol + rtol * |b|; NaN is close to NaN only with `equal_nan`."""
    left, right = pair(a, b)
    if left.dtype is torch.bool:
        return left == right
    return torch.isclose(left, right, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _same(a: T, b: T, equal_nan: bool) -> T:
    is_same = a == b
    if equal_nan:
        is_same = is_same | (torch.isnan(a) & torch.isnan(b))
    return is_same.all()


@function
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> T:
    """Whether the two have one shape and equal values (a Tensor without axes); NaN equals NaN only with `equal_nan`."""
    a, b = pair(a1, a2)
    return _same(a, b, equal_nan) if a.shape == b.shape else torch.zeros((), dtype=torch.bool, device=a.device)


@function
def array_equiv(a1: Any, a2: Any) -> T:
    """Whether the two, stretched to one shape, have equal values (a Tensor without axes)."""
    a, b = pair(a1, a2)
    fits = all(m == n or 1 in (m, n) for m, n in zip(reversed(a.shape), reversed(b.shape)))
    return _same(a, b, False) if fits else torch.zeros((), dtype=torch.bool, device=a.device)


@function
def sometrue(a: Any, axis: Any = None, keepdims: bool = False) -> T:
    """Whether a value over `axis`, an int, a tuple or None for all, is true."""
    t = to_tensor(a)
    return torch.sum(t != 0, axes_of(axis, t.ndim), keepdim=keepdims) > 0


def _member(element: Any, test_elements: Any, invert: bool) -> T:
    a, b = together(to_tensor(element), to_tensor(test_elements).reshape(-1))
    found = (a.unsqueeze(-1) == b).any(-1)
    return ~found if invert else found


@function
def isin(element: Any, test_elements: Any, invert: bool = False) -> T:
    """Whether each value is one of `test_elements`, in the shape of `element`; with `invert`, whether it is none."""
    return _member(element, test_elements, invert)


@function
def in1d(ar1: Any, ar2: Any, invert: bool = False) -> T:
    """Whether each value of the flat `ar1` is one of `ar2`; with `invert`, whether it is none."""
    return _member(to_tensor(ar1).reshape(-1), ar2, invert)


@function
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> T:
    """The values of `ar1` that `ar2` has not, in order and once each; as they stand with `assume_unique`."""
    flat = to_tensor(ar1).reshape(-1)
    flat = flat if assume_unique else torch.unique(flat)
    return flat[_member(flat, ar2, True)]


__all__ = [
    "array_equal", "array_equiv", "equal", "greater", "greater_equal", "in1d", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isscalar", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "setdiff1d",
    "signbit", "sometrue",
]
