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

_LARGEST_EXPONENT = 709.7


def _apply(function: Callable[[float], float], values: Array) -> Array:
    flat = np.fromiter(map(function, values.ravel().tolist()), values.dtype, values.size)
    return flat.reshape(values.shape)


def rounded(values: Array, dtype: Any) -> Array:
    """float64 values in a dtype of floats. C++ rounds to float32 before float16. A number beyond the dtype becomes infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(dtype) if dtype == np.float16 else values.astype(dtype)


def log(values: Array) -> Array:
    """The natural logarithms of floats from 0 on, in their dtype; -inf of 0, NaN of NaN. float16 is computed in float32."""
    if values.dtype == np.float64:
        return _apply(lambda value: math.log(value) if value else -math.inf, values)
    single = values.astype(np.float32)
    is_zero = single == 0
    return np.where(is_zero, np.float32(-np.inf), log_float32(np.where(is_zero, np.float32(1), single))).astype(values.dtype)


def exp(values: Array) -> Array:
    """The exponentials of floats, in their dtype. float16 is computed in float32."""
    if values.dtype == np.float64:
        return _apply(lambda value: math.inf if value > _LARGEST_EXPONENT else math.exp(value), values)
    with np.errstate(over="ignore"):
        return exp_float32(values.astype(np.float32)).astype(values.dtype)


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


def _float_function(name: str, otherwise: Callable[[float], float]) -> Callable[[float], float]:
    return _library_function(name, ctypes.c_float, otherwise)


@functools.cache
def _library_function(name: str, number: Any, otherwise: Callable[[float], float]) -> Callable[[float], float]:
    """Return the C library's function of one number of a C type; `otherwise` if it is missing, whose result the caller rounds."""
    try:
        function = getattr(ctypes.CDLL("libm.so.6"), name)
    except (OSError, AttributeError):
        return otherwise
    function.restype, function.argtypes = number, [number]
    return function


# ---- float32, after Szabolcs Nagy (Arm Optimized Routines), whose functions glibc has


_LOG_OFFSET = 0x3F330000
_LOG_TABLE = np.array([float.fromhex(number) for number in """
    0x1.661ec79f8f3bep+0 -0x1.57bf7808caadep-2 0x1.571ed4aaf883dp+0 -0x1.2bef0a7c06ddbp-2 0x1.49539f0f010bp+0 -0x1.01eae7f513a67p-2
    0x1.3c995b0b80385p+0 -0x1.b31d8a68224e9p-3 0x1.30d190c8864a5p+0 -0x1.6574f0ac07758p-3 0x1.25e227b0b8eap+0 -0x1.1aa2bc79c81p-3
    0x1.1bb4a4a1a343fp+0 -0x1.a4e76ce8c0e5ep-4 0x1.12358f08ae5bap+0 -0x1.1973c5a611cccp-4 0x1.0953f419900a7p+0 -0x1.252f438e10c1ep-5
    0x1p+0 0x0p+0 0x1.e608cfd9a47acp-1 0x1.aa5aa5df25984p-5 0x1.ca4b31f026aap-1 0x1.c5e53aa362eb4p-4
    0x1.b2036576afce6p-1 0x1.526e57720db08p-3 0x1.9c2d163a1aa2dp-1 0x1.bc2860d22477p-3 0x1.886e6037841edp-1 0x1.1058bc8a07ee1p-2
    0x1.767dcf5534862p-1 0x1.4043057b6ee09p-2""".split()]).reshape(16, 2)
_LOG_POLYNOMIAL = tuple(map(float.fromhex, ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2")))
_LOG_TWO = float.fromhex("0x1.62e42fefa39efp-1")


def log_float32(values: Array) -> Array:
    """The natural logarithms that glibc's `logf` gives of positive normal float32 numbers.

    `logf` does not round correctly, so that no other logarithm gives its last bit. It takes the logarithm of one of 16 numbers near the
    significand from a table, and a polynomial for the rest, in float64.
    """
    bits = values.view(np.int32)
    steps = bits - np.int32(_LOG_OFFSET)
    rows = steps >> np.int32(19)
    rows &= np.int32(15)
    exponents = steps >> np.int32(23)
    significands = (bits - (steps & np.int32(-0x800000))).view(np.float32).astype(np.float64)
    rest = significands * _LOG_TABLE[:, 0].take(rows)
    rest -= 1.0
    start = exponents * _LOG_TWO
    start += _LOG_TABLE[:, 1].take(rows)
    start += rest
    square = rest * rest
    result = rest * _LOG_POLYNOMIAL[1]
    result += _LOG_POLYNOMIAL[2]
    result += square * _LOG_POLYNOMIAL[0]
    result *= square
    result += start
    return result.astype(np.float32)


_EXP_STEPS = 32
_EXP_TABLE = np.array([2.0 ** (step / _EXP_STEPS) for step in range(_EXP_STEPS)]).view(np.int64) - (np.arange(_EXP_STEPS) << 47)
_EXP_POLYNOMIAL = tuple(
    float.fromhex(number) / _EXP_STEPS**power
    for power, number in ((3, "0x1.c6af84b912394p-5"), (2, "0x1.ebfce50fac4f3p-3"), (1, "0x1.62e42ff0c52d6p-1"))
)
_EXP_SCALE = float.fromhex("0x1.71547652b82fep+0") * _EXP_STEPS


def exp_float32(values: Array) -> Array:
    """The exponentials that glibc's `expf` gives of float32 numbers.

    It takes the power of two next to the result, in steps of a 32nd of the exponent, from a table, and a polynomial for the rest.
    """
    with np.errstate(all="ignore"):
        scaled = np.clip(values.astype(np.float64), -105.0, 89.0) * _EXP_SCALE
        integer_part = np.rint(scaled)
        rest = scaled - integer_part
        exponent = integer_part.astype(np.int64)
        power = (_EXP_TABLE[exponent % _EXP_STEPS] + (exponent << 47)).view(np.float64)
        cubic, square, linear = _EXP_POLYNOMIAL
        factor = (cubic * rest + square) * (rest * rest) + (linear * rest + 1.0)
        return (factor * power).astype(np.float32)
