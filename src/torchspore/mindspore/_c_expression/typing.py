"""`mindspore._c_expression.typing`: the classes of dtypes, including C++'s names."""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.dtypes import BFloat, Bool, Complex, Float, Int, Number, String, Type, UInt
from torchspore.engine.tensors.structured_types import (
    COOTensorType,
    CSRTensorType,
    Dict,
    EnvType,
    External,
    Function,
    List,
    RefKeyType,
    RefType,
    RowTensorType,
    Slice,
    SymbolicKeyType,
    TensorType,
    Tuple,
    TypeEllipsis,
    TypeNone,
    TypeNull,
    TypeType,
    UndeterminedType,
    list_,
    str_to_type,
    tensor_type,
    tuple_,
    type_none,
)

kBool, kString, kNumber, kTypeNone = dtypes.bool_, dtypes.string, dtypes.number, type_none
kList, kTuple = list_, tuple_
kInt8, kInt16, kInt32, kInt64 = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64
kUInt8, kUInt16, kUInt32, kUInt64 = dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64
kFloat16, kFloat32, kFloat64, kBFloat16 = dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16
kComplex64, kComplex128, kTensorType = dtypes.complex64, dtypes.complex128, tensor_type


def is_subclass(kind_or_type: Any, other: Any) -> bool:
    """Return whether the dtype or class of dtypes `kind_or_type` is of the kind `other`."""
    kind = other if isinstance(other, type) else type(other)
    return issubclass(kind_or_type, kind) if isinstance(kind_or_type, type) else isinstance(kind_or_type, kind)


def type_size_in_bytes(dtype: Type) -> Any:
    """Return the size of one element in bytes."""
    return dtype.itemsize


__all__ = [
    "BFloat", "Bool", "COOTensorType", "CSRTensorType", "Complex", "Dict", "EnvType", "External", "Float", "Function", "Int", "List",
    "Number", "RefKeyType", "RefType", "RowTensorType", "Slice", "String", "SymbolicKeyType", "TensorType", "Tuple", "Type", "TypeEllipsis",
    "TypeNone", "TypeNull", "TypeType", "UInt", "UndeterminedType", "is_subclass", "str_to_type",
    "type_size_in_bytes",
]
