"""The dtypes and constants of `mindspore.numpy`."""
from __future__ import annotations

from math import inf, nan, pi

from torchspore.engine.tensors.dtypes import bool_, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

int_, uint, float_ = int32, uint32, float32
PINF, NINF = inf, -inf
numeric_types = [
    "int_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float_", "float16", "float32", "float64", "bool_",
]
"""The names of the dtypes of arrays."""

__all__ = [
    "NINF", "PINF", "bool_", "float16", "float32", "float64", "float_", "inf", "int16", "int32", "int64", "int8", "int_", "nan",
    "numeric_types", "pi", "uint", "uint16", "uint32", "uint64", "uint8",
]
