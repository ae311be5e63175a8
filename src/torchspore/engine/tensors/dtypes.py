"""MindSpore's dtype objects and their torch and NumPy counterparts.

A dtype is an instance of `Float` < `Number` < `Type`, never a `torch.dtype`: it prints as `mindspore.float32`, its `str` is `Float32`, and
equality compares the named dtype. Names, classes and texts were read from MindSpore 2.10.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch


class Type:
    """A type as MindSpore names it: a name for `repr`, a title for `str`, and, if it can be stored, a torch dtype."""

    _name: str
    _title: str
    _bits: int = 0
    _torch: torch.dtype | None = None
    _numpy: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        if cls is Type:
            raise TypeError("Type(): expected one of its classes, such as Int(32).")
        return object.__new__(cls)

    def __repr__(self) -> str:
        return f"mindspore.{self._name}"

    def __str__(self) -> str:
        return self._title

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and self._name == other._name)

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (named, (self._name,))

    def __copy__(self) -> Type:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Type:
        return self

    @property
    def is_floating_point(self) -> bool:
        """True if this is a real floating-point dtype."""
        return isinstance(self, (Float, BFloat))

    @property
    def is_complex(self) -> bool:
        """True if this is a complex dtype."""
        return isinstance(self, Complex)

    @property
    def is_signed(self) -> bool:
        """True if values of this dtype can be negative."""
        return isinstance(self, (Int, Float, BFloat, Complex))

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return max(1, self._bits // 8)


class SimpleType(Type):
    """A type without parts. The call of a class returns its only instance of a width: `Int(32)` is int32, and `Int()` the generic type.

    The class of a package that derives from one has instances of its own, which are equal to MindSpore's.

    Raises:
        RuntimeError: there is no type of this width.
    """

    def __new__(cls, nbits: int = 0) -> Any:
        kind = next(base for base in cls.__mro__ if base.__module__ == __name__)
        dtype = _BY_WIDTH.get((kind, nbits))
        if dtype is None:
            widths = ", ".join(str(width) for base, width in _BY_WIDTH if base is kind and width)
            raise RuntimeError(f"{kind.__name__}({nbits!r}): expected {f'one of {widths} bits' if widths else 'no width'}.")
        if cls is kind:
            return dtype
        instance = object.__new__(cls)
        vars(instance).update(vars(dtype))
        return instance

    def __init__(self, nbits: int = 0) -> None:
        del nbits


class Number(SimpleType):
    """A type of numbers."""


class Bool(Number):
    """Truth values."""


class Int(Number):
    """Signed integers."""


class UInt(Number):
    """Unsigned integers."""


class Float(Number):
    """Floating-point numbers; `Float` of no width is the generic one, which no Tensor can have."""


class BFloat(Number):
    """Brain floating-point numbers."""


class Complex(Number):
    """Complex numbers."""


class String(SimpleType):
    """Text."""


_BY_WIDTH: dict[tuple[type, int], Any] = {}


def _define(
    kind: type, title: str, stored: torch.dtype | None = None, numpy: Any = None, *, name: str = "", width: int | None = None,
) -> Any:
    """Create the only instance of a type. `width` is the argument of its class, or -1 if the class has none for it."""
    dtype: Any = object.__new__(kind)
    dtype._name, dtype._title, dtype._torch, dtype._numpy = name or title.lower(), title, stored, numpy
    dtype._bits = 0 if stored is None else stored.itemsize * 8
    width = dtype._bits if width is None else width
    if width >= 0:
        _BY_WIDTH[kind, width] = dtype
    return dtype


bool_: Bool = _define(Bool, "Bool", torch.bool, np.bool_, width=0)
int8: Int = _define(Int, "Int8", torch.int8, np.int8)
int16: Int = _define(Int, "Int16", torch.int16, np.int16)
int32: Int = _define(Int, "Int32", torch.int32, np.int32)
int64: Int = _define(Int, "Int64", torch.int64, np.int64)
uint8: UInt = _define(UInt, "UInt8", torch.uint8, np.uint8)
uint16: UInt = _define(UInt, "UInt16", torch.uint16, np.uint16)
uint32: UInt = _define(UInt, "UInt32", torch.uint32, np.uint32)
uint64: UInt = _define(UInt, "UInt64", torch.uint64, np.uint64)
float16: Float = _define(Float, "Float16", torch.float16, np.float16)
float32: Float = _define(Float, "Float32", torch.float32, np.float32)
float64: Float = _define(Float, "Float64", torch.float64, np.float64)
bfloat16: BFloat = _define(BFloat, "BFloat16", torch.bfloat16)
complex64: Complex = _define(Complex, "Complex64", torch.complex64, np.complex64)
complex128: Complex = _define(Complex, "Complex128", torch.complex128, np.complex128)
float8_e4m3fn: Float = _define(Float, "Float8E4M3FN", torch.float8_e4m3fn, name="float8_e4m3fn", width=-1)
float8_e5m2: Float = _define(Float, "Float8E5M2", torch.float8_e5m2, name="float8_e5m2", width=-1)

number: Number = _define(Number, "Number")
int_: Int = _define(Int, "Int")
uint: UInt = _define(UInt, "UInt")
float_: Float = _define(Float, "Float")
bfloat: BFloat = _define(BFloat, "BFloat")
complex_: Complex = _define(Complex, "Complex")
string: String = _define(String, "String", name="string_")

STORED: tuple[Number, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, bfloat16, complex64, complex128,
    float8_e4m3fn, float8_e5m2,
)
"""Every dtype that a Tensor can have."""

_BY_NAME: dict[str, Type] = {t._name: t for t in (*STORED, number, int_, uint, float_, string)}
_GENERIC: dict[str, Type] = {t._name: t for t in (bfloat, complex_)}
FROM_TORCH: dict[torch.dtype, Number] = {t._torch: t for t in STORED if t._torch is not None}
_FROM_NUMPY: dict[np.dtype[Any], Number] = {np.dtype(t._numpy): t for t in STORED if t._numpy is not None}
_FROM_PYTHON: dict[type, Type] = {bool: bool_, int: int64, float: float64, complex: complex128, str: string}


def named(name: str) -> Type:
    """Return the dtype with this `name` (`'float32'`, `'bool'`, …). Raises TypeError if none has it."""
    aliases = {"bool_": "bool", "half": "float16", "single": "float32", "double": "float64", "string": "string_"}
    dtype = _BY_NAME.get(aliases.get(name, name)) or _GENERIC.get(name)
    if dtype is None:
        raise TypeError(f"dtype {name!r}: expected one of {', '.join(str(t._name) for t in STORED)}.")
    return dtype


def to_torch(dtype: Any) -> torch.dtype:
    """The torch dtype for a MindSpore dtype, a name, a NumPy or Python type.

    Raises TypeError where a Tensor can't hold it (`ms.float_`, `ms.string`, …).
    """
    if isinstance(dtype, Type):
        if dtype._torch is not None:
            return dtype._torch
    elif isinstance(dtype, torch.dtype):
        return dtype
    elif isinstance(dtype, str):
        return to_torch(named(dtype))
    elif dtype is float:
        return torch.float32
    elif dtype is None:  # NumPy would take it for float64
        pass
    elif isinstance(dtype, type) and dtype in _FROM_PYTHON:
        return to_torch(_FROM_PYTHON[dtype])
    else:
        try:
            return to_torch(_FROM_NUMPY[np.dtype(dtype)])
        except (TypeError, KeyError):
            pass
    raise TypeError(f"dtype {dtype!r}: a Tensor can't hold it; expected a dtype such as mindspore.float32.")


_CAST = {
    "byte": "int8", "short": "int16", "intc": "int32", "int": "int64", "int_": "int64", "intp": "int64", "long": "int64", "ubyte": "uint8",
    "ushort": "uint16", "uintc": "uint32", "uint": "uint64", "uintp": "uint64", "float": "float64", "float_": "float64",
    "cfloat": "complex64", "cdouble": "complex128",
}


def of_cast(dtype: Any) -> torch.dtype:
    """The torch dtype that `Tensor.astype(wanted)` means: small or capital letters, NumPy's names, 64 bits for `int` and `float`.

    Raises TypeError where a Tensor can't hold it.
    """
    if isinstance(dtype, str) and not isinstance(dtype, Type):
        name = dtype.lower()
        return to_torch(_CAST.get(name, name) if name in _BY_NAME or name in _CAST else dtype)
    return torch.float64 if dtype is float else to_torch(dtype)


def fitting(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a result in the dtype of the Tensor into which it is written.

    Raises TypeError if that dtype cannot represent it: fractions in integers, numbers in bools, complex numbers in other dtypes.
    """
    if value.dtype is dtype:
        return value
    if not torch.can_cast(value.dtype, dtype):
        raise TypeError(
            f"expected a result that {FROM_TORCH[dtype]} can hold, got {FROM_TORCH[value.dtype]}."
            f"\n\nhint: write x = x.astype(mindspore.{FROM_TORCH[value.dtype]._name}) before.",
        )
    return value.to(dtype)


def to_numpy(dtype: Type) -> Any:
    """Return the NumPy scalar type for a MindSpore dtype; bfloat16 is `ml_dtypes.bfloat16` if that package is loaded, else float32."""
    if isinstance(dtype, Type) and dtype._numpy is not None:
        return dtype._numpy
    if dtype is bfloat16:
        ml_dtypes = sys.modules.get("ml_dtypes")
        return ml_dtypes.bfloat16 if ml_dtypes is not None else np.float32
    raise TypeError(f"dtype {dtype!r}: expected one that NumPy has, such as mindspore.float32.")


def from_python(value: Any) -> Type:
    """The MindSpore dtype for a Python or NumPy type: `int` -> int64, `float` -> float64, `np.float32` -> float32.

    Raises TypeError for anything else.
    """
    if isinstance(value, Type):
        return value
    if isinstance(value, type) and value in _FROM_PYTHON:
        return _FROM_PYTHON[value]
    try:
        return _FROM_NUMPY[np.dtype(value)]
    except (TypeError, KeyError):
        raise TypeError(f"{value!r}: expected a Python or NumPy type such as float or np.float32.") from None
