"""`mindspore.common.dtype`: the dtype objects with MindSpore's names, and conversions between them, NumPy's and Python's types."""
from __future__ import annotations

import types
from typing import Any

import numpy as np

from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import dtypes as _engine
from torchspore.engine.tensors.dtypes import (
    Bool,
    Complex,
    Float,
    Int,
    Number,
    String,
    Type,
    UInt,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    float_,
    int8,
    int16,
    int32,
    int64,
    int_,
    number,
    string,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
)
from torchspore.engine.tensors.structured_types import (
    Function,
    List,
    Slice,
    TensorType,
    Tuple,
    TypeNone,
    coo_tensor,
    csr_tensor,
    env_type,
    function,
    index_slices,
    list_,
    symbolic_key,
    tensor_type,
    tuple_,
    type_none,
    type_refkey,
    type_type,
    undetermined,
)
from torchspore.engine.tensors.tensor import TensorBase

bool = bool_
half, single, double, float = float16, float32, float64, float32
byte, short, intc, long, intp, int = int8, int16, int32, int64, int64, int32
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64
cfloat, cdouble = complex64, complex128

int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16, float8_e4m3fn, float8_e5m2)
complex_type = (complex64, complex128)
signed_type = (
    int8, byte, int16, short, int32, intc, int64, intp, float16, half, float32, single, float64, double, bfloat16, complex64, complex128,
)
number_type = (*int_type, *uint_type, float16, float32, float64, bfloat16, complex64, complex128, float8_e4m3fn, float8_e5m2)
all_types = (bool_, *number_type)


_CONTAINERS = ((list, list_), (tuple, tuple_), (type(None), type_none))


def dtype_to_nptype(type_: Type) -> Any:
    """Return the NumPy type of a dtype. Raises TypeError if there is none."""
    return _engine.to_numpy(type_)


def pytype_to_dtype(obj: Any) -> Type:
    """Return the dtype for a Python or NumPy type. Raises TypeError for anything else."""
    return next((type_ for python, type_ in _CONTAINERS if obj is python), None) or _engine.from_python(obj)


def dtype_to_pytype(type_: Type) -> Any:
    """Return the Python type of a dtype's values: `float` for every floating-point dtype, `int` for integers, `bool`, `complex`."""
    from builtins import bool as python_bool
    from builtins import float as python_float
    from builtins import int as python_int

    kinds = (
        (Bool, python_bool), ((Int, UInt), python_int), (Complex, complex), (String, str), (List, list), (Tuple, tuple),
        (TypeNone, type(None)),
    )
    return next((python for kind, python in kinds if isinstance(type_, kind)), python_float)


def type_size_in_bytes(dtype: Type) -> Any:
    """Return the size of one element in bytes."""
    return dtype.itemsize


def get_py_obj_dtype(obj: Any) -> Type:
    """Return the MindSpore type of a Python type or value: `1.5` and `float` are float64, a list is list_, None type_none.

    A Tensor has a tensor type, a function, a Cell and a primitive `function`, a dtype `type_type`. Raises NotImplementedError for types
    without one.
    """
    from builtins import bool as python_bool
    from builtins import float as python_float
    from builtins import int as python_int

    if not isinstance(obj, type):
        if isinstance(obj, TensorBase):
            return TensorType(obj.dtype)
        if isinstance(obj, Type):
            return type_type
        if isinstance(obj, (types.FunctionType, FRONT.primitive or ())) or hasattr(obj, "construct"):
            return function
    kind = obj if isinstance(obj, type) else type(obj)
    for python, dtype in (
        (python_bool, bool_), (python_int, int64), (python_float, float64), (complex, complex128), (str, string), (list, list_),
        (tuple, tuple_), (type(None), type_none),
    ):
        if kind is python:
            return dtype
    if isinstance(obj, type) and issubclass(obj, np.generic):
        return _engine.from_python(obj)
    raise NotImplementedError(f"get_py_obj_dtype({obj!r:.40}): expected a number, a text, a list, a tuple, None, or a type of these.")


def _issubclass_(type_: Any, dtype: Any) -> Any:
    """Return whether a dtype or type of MindSpore is `dtype` or a kind of it: float32 is a number and a Float."""
    if isinstance(dtype, type):
        return isinstance(type_, dtype) or (isinstance(type_, type) and issubclass(type_, dtype))
    return isinstance(type_, type(dtype)) if dtype in (number, float_, int_, uint, tensor_type, tuple_, list_) else type_ == dtype


_dtype_to_nptype, _dtype_to_pytype = dtype_to_nptype, dtype_to_pytype
_pytype_to_dtype, _get_py_obj_dtype = pytype_to_dtype, get_py_obj_dtype


__all__ = [
    "Bool", "Complex", "Float", "Function", "Int", "List", "Number", "Slice", "String", "TensorType", "Tuple", "Type",
    "all_types", "bfloat16", "bool_", "byte", "cdouble", "cfloat", "complex64", "complex128", "complex_type",
    "coo_tensor", "csr_tensor", "double", "env_type", "function", "index_slices", "symbolic_key", "type_refkey", "type_type",
    "undetermined",
    "dtype_to_nptype", "dtype_to_pytype", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float_", "float_type",
    "get_py_obj_dtype",
    "half", "int16", "int32", "int64", "int8", "int_", "int_type", "intc", "intp", "list_", "long", "number", "number_type",
    "pytype_to_dtype", "short", "signed_type", "single", "string", "tensor_type", "tuple_", "type_none", "type_size_in_bytes", "ubyte",
    "uint",
    "uint16", "uint32", "uint64", "uint8", "uint_type", "uintc", "uintp", "ushort",
]
"""Without `bool`, `float` and `int`, as in MindSpore: `from mindspore.common.dtype import *` leaves Python's types alone."""
