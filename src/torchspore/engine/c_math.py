"""The C library's functions on NumPy arrays, bit for bit.

NumPy's and torch's vectorised functions may differ from the C library's in the last place. MindSpore's kernels call the C library.
"""
from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _apply(function: Callable[[float], float], values: Array) -> Array:
    flat = np.fromiter(map(function, values.ravel().tolist()), values.dtype, values.size)
    return flat.reshape(values.shape)


def log(values: Array) -> Array:
    """The natural logarithms of floats from 0 on, in their dtype; -inf of 0, NaN of NaN. float16 is computed in float32."""
    if values.dtype == np.float64:
        return _apply(_log, values)
    return _apply(_float_function("logf", _log), values.astype(np.float32)).astype(values.dtype)


def exp(values: Array) -> Array:
    """The exponentials of floats that are not large, in their dtype. float16 is computed in float32."""
    if values.dtype == np.float64:
        return _apply(math.exp, values)
    return _apply(_float_function("expf", math.exp), values.astype(np.float32)).astype(values.dtype)


def sin_and_cos(values: Array) -> tuple[Array, Array]:
    """The sines and cosines of finite float64 numbers."""
    return _apply(math.sin, values), _apply(math.cos, values)


def power(bases: Array, exponents: Array) -> Array:
    """float64 `bases` from 0 to 1 to the power of positive `exponents`."""
    return np.fromiter(map(math.pow, bases.tolist(), exponents.tolist()), np.float64, bases.size)


def lgamma(value: float) -> float:
    """The float64 logarithm of the gamma function of a positive number. Python's own `math.lgamma` is not the C library's."""
    return _library_function("lgamma", ctypes.c_double, math.lgamma)(value)


def log1p_float32(value: float) -> float:
    """The float32 logarithm of 1 plus a float32 number above -1."""
    return _float_function("log1pf", math.log1p)(value)


def expm1_float32(value: float) -> float:
    """The float32 exponential of a float32 number that is not large, less 1."""
    return _float_function("expm1f", math.expm1)(value)


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf


def _float_function(name: str, otherwise: Callable[[float], float]) -> Callable[[float], float]:
    return _library_function(name, ctypes.c_float, otherwise)


@functools.cache
def _library_function(name: str, number: Any, otherwise: Callable[[float], float]) -> Callable[[float], float]:
    """The C library's function of one number of a C type. Where it is not found, `otherwise`, whose result the caller rounds."""
    try:
        function = getattr(ctypes.CDLL("libm.so.6"), name)
    except (OSError, AttributeError):
        return otherwise
    function.restype, function.argtypes = number, [number]
    return function
