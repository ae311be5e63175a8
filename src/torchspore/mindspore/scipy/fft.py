"""`mindspore.scipy.fft`: cosine transforms of type II.

The formula is SciPy's for norm='ortho': y[k] = f(k) * sum over n of x[n] * cos(pi * k * (2n + 1) / (2N)), with f(0) = sqrt(1/N) and else
sqrt(2/N). The result is float32, from integers too; float64 and complex numbers keep their dtype.
"""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import bridged
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = ["dct", "dctn", "idct", "idctn"]

T = torch.Tensor
_RESULT_DTYPES = frozenset({torch.float64, torch.complex64, torch.complex128})
"""Dtypes that the result preserves; for complex numbers, both parts are transformed."""


def _check(type: Any, norm: Any) -> None:
    if type != 2:
        raise ValueError(f"type={type!r}: expected 2; MindSpore supports no other type.")
    if norm not in (None, "ortho"):
        raise ValueError(f"norm={norm!r}: expected 'ortho' or None, which is equal to it.")


def _along(x: T, n: Any, axis: int, inverse: bool) -> T:
    """Transform one axis, truncated or zero-padded to length n first, by the matrix of cosines."""
    input_length = x.shape[axis]
    length = input_length if n is None else n
    if not isinstance(length, int) or length < 1:
        raise ValueError(f"n={n!r}: expected a length from 1 on.")
    x = x.movedim(axis, -1).to(x.dtype if x.dtype in _RESULT_DTYPES else torch.float32)
    x = x[..., :length] if length <= input_length else torch.nn.functional.pad(x, (0, length - input_length))
    steps = torch.arange(length, dtype=torch.float64, device=x.device)
    cosines = torch.cos(math.pi / (2 * length) * steps[:, None] * (2 * steps + 1)) * math.sqrt(2 / length)
    cosines[0] /= math.sqrt(2)
    return (x @ (cosines if inverse else cosines.mT).to(x.dtype)).movedim(-1, axis)


def _along_all(x: T, s: Any, axes: Any, inverse: bool) -> T:
    chosen = tuple(range(x.ndim)) if axes is None else tuple(axes)
    lengths = (None,) * len(chosen) if s is None else tuple(s)
    if axes is None and s is not None:
        chosen = chosen[-len(lengths):]
    if len(lengths) != len(chosen):
        raise ValueError(f"s={s!r}: expected one length for each of the axes {chosen}.")
    for axis, length in zip(chosen, lengths, strict=True):
        x = _along(x, length, axis, inverse)
    return x


@bridged
def dct(x: T, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> T:
    """The cosine transform along `axis`, truncated or zero-padded to length n. Raises ValueError for a type other than 2."""
    _check(type, norm)
    return _along(x, n, axis, False)


@bridged
def idct(x: T, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> T:
    """The inverse of `dct`."""
    _check(type, norm)
    return _along(x, n, axis, True)


@bridged
def dctn(x: T, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None) -> T:
    """`dct` along `axes`, or all axes; `s` has one length for each, or for the last axes."""
    _check(type, norm)
    return _along_all(x, s, axes, False)


@bridged
def idctn(x: T, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None) -> T:
    """The inverse of `dctn`."""
    _check(type, norm)
    return _along_all(x, s, axes, True)
