"""Polynomials as coefficients, the highest power first."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.mindspore.numpy.utils import floating, function, pair, to_tensor, together

T = torch.Tensor


def _coefficients(value: Any) -> T:
    t = to_tensor(value)
    if t.ndim > 1:
        raise ValueError(f"coefficients of shape {tuple(t.shape)}: expected a number or one axis.")
    return t.reshape(-1)


def _aligned(a1: Any, a2: Any) -> list[T]:
    a, b = pair(_coefficients(a1), _coefficients(a2))
    longest = max(a.shape[0], b.shape[0])
    return [torch.nn.functional.pad(t, (longest - t.shape[0], 0)) for t in (a, b)]


@function
def polyadd(a1: Any, a2: Any) -> T:
    """The sum of two polynomials."""
    a, b = _aligned(a1, a2)
    return a + b


@function
def polysub(a1: Any, a2: Any) -> T:
    """The first polynomial minus the second."""
    a, b = _aligned(a1, a2)
    return a - b


@function
def polymul(a1: Any, a2: Any) -> T:
    """The product of two polynomials."""
    a, b = pair(_coefficients(a1), _coefficients(a2))
    width = a.shape[0] + b.shape[0] - 1
    rows = [torch.nn.functional.pad(a[i] * b, (i, width - b.shape[0] - i)) for i in range(a.shape[0])]
    return torch.stack(rows).sum(0).to(a.dtype)


@function
def polyval(p: Any, x: Any) -> T:
    """The values of the polynomial p at x, float32 for integers."""
    coefficients, points = together(floating(_coefficients(p)), floating(to_tensor(x)))
    out = torch.zeros_like(points)
    for i in range(coefficients.shape[0]):
        out = out * points + coefficients[i]
    return out


def _order(m: Any, operation: str) -> int:
    if not is_int(m):
        raise TypeError(message(f"m={m!r}", "an int"))
    if m < 0:
        raise ValueError(f"m={m}: expected an order of the {operation} of at least 0.")
    return m


@function
def polyder(p: Any, m: int = 1) -> T:
    """The m-th derivative of the polynomial p; no coefficients if nothing remains; float32 for empty ones."""
    t = _coefficients(p)
    if _order(m, "derivative") >= t.shape[0]:
        return torch.zeros(0, dtype=torch.float32, device=t.device)
    for _ in range(m):
        powers = torch.arange(t.shape[0] - 1, 0, -1, device=t.device, dtype=t.dtype)
        t = t[:-1] * powers
    return t


_MOST_INTEGRALS = 10_000
"""Above this order, every coefficient except the last ones is 0 in any dtype."""


@function
def polyint(p: Any, m: int = 1, k: Any = None) -> T:
    """The m-th integral of the polynomial p with the constants `k`, one number or m of them; None means 0; float32 for integers."""
    t = _coefficients(p)
    if _order(m, "integral") == 0:
        return t.clone()
    if m > _MOST_INTEGRALS:
        raise ValueError(f"m={m}: expected an order of the integral of at most {_MOST_INTEGRALS}.")
    t = floating(t)
    constants = torch.zeros(m, dtype=t.dtype, device=t.device) if k is None else to_tensor(k).reshape(-1).to(t.dtype)
    constants = constants.expand(m) if constants.shape[0] == 1 else constants
    if constants.shape[0] < m:
        raise ValueError(f"k of {constants.shape[0]} values: expected one, or {m}, one for each integral.")
    for i in range(m):
        powers = torch.arange(t.shape[0], 0, -1, device=t.device, dtype=t.dtype)
        t = torch.cat([t / powers, constants[i:i + 1]])
    return t
