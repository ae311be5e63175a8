"""MindSpore's types of values other than numbers: Tensors, containers, functions. They list their contents: `Tuple[Int64,String]`.

Classes, texts and equality were read from MindSpore 2.10.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.dtypes import Type
from torchspore.engine.tensors.tensor import TensorBase, raw


class StructuredType(Type):
    """A type with the types of its parts, which decide its text and whether it equals another one."""

    name = ""
    """The text after `mindspore.` in the `repr` of the type without parts."""

    def __init__(self, *parts: Any) -> None:
        self._name, self._title, self._parts = self.name, self._describe(parts), parts

    def _describe(self, parts: tuple[Any, ...]) -> str:
        del parts
        return type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, str(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


class TensorType(StructuredType):
    """The type of Tensors, with the dtype of their elements if it is known."""

    name = "tensor"

    def __init__(self, element: Type | None = None) -> None:
        super().__init__(*(() if element is None else (element,)))

    def _describe(self, parts: tuple[Any, ...]) -> str:
        return f"Tensor[{parts[0]}]" if parts else "Tensor"

    def __repr__(self) -> str:
        return f"mindspore.tensor[{self._parts[0]._name}]" if self._parts else "mindspore.tensor"

    def __instancecheck__(self, value: object) -> bool:
        """Let `isinstance(typeof(x), mstype.tensor_type)` work, because `tensor_type` was this class in MindSpore 1.x."""
        return isinstance(value, TensorType)

    def element_type(self) -> Type | None:
        """Return the dtype of the elements, or None if it is not known."""
        return self._parts[0] if self._parts else None


class RefType(TensorType):
    """The type of Parameters."""

    def _describe(self, parts: tuple[Any, ...]) -> str:
        return f"Ref[{super()._describe(parts)}]"


class SequenceType(StructuredType):
    """A sequence, with the types of its items if they are known."""

    def __init__(self, items: Sequence[Type] | None = None) -> None:
        super().__init__(*(() if items is None else (tuple(items),)))

    def _describe(self, parts: tuple[Any, ...]) -> str:
        if not parts:
            return type(self).__name__
        items = parts[0]
        is_uniform = len(items) > 1 and all(item == items[0] for item in items)
        return f"{type(self).__name__}[{f'{items[0]}*{len(items)}' if is_uniform else ','.join(map(str, items))}]"


class Tuple(SequenceType):
    """A tuple."""

    name = "tuple_"


class List(SequenceType):
    """A list."""

    name = "list_"


class Dict(StructuredType):
    """A dictionary, with its keys and the types of its values."""

    name = "Dictionary"

    def __init__(self, items: Mapping[Any, Type] | None = None) -> None:
        super().__init__(*(() if items is None else (dict(items),)))

    def _describe(self, parts: tuple[Any, ...]) -> str:
        if not parts:
            return "Dictionary"
        return f"Dictionary[[{''.join(f'{key},' for key in parts[0])}],[{','.join(map(str, parts[0].values()))}]]"

    def __repr__(self) -> str:
        return f"mindspore.{self}"


class Slice(StructuredType):
    """A slice, with the types of start, stop and step."""

    name = "Slice"

    def _describe(self, parts: tuple[Any, ...]) -> str:
        return f"Slice[{' : '.join(map(str, parts))}]" if parts else "Slice"


class _SparseType(StructuredType):
    """A sparse Tensor, with the types of its parts."""

    def _describe(self, parts: tuple[Any, ...]) -> str:
        return f"{self.name}[{''.join(f'{part},' for part in parts)}]" if parts else self.name


class COOTensorType(_SparseType):
    """The type of a COOTensor."""

    name = "COOTensor"


class CSRTensorType(_SparseType):
    """The type of a CSRTensor."""

    name = "CSRTensor"


class RowTensorType(_SparseType):
    """The type of a RowTensor."""

    name = "RowTensor"


class _PlainType(StructuredType):
    """A type without parts."""

    title = ""

    def _describe(self, parts: tuple[Any, ...]) -> str:
        return self.title or self.name


class TypeNone(_PlainType):
    """The type of None."""

    name, title = "type_none", "None"


class TypeNull(_PlainType):
    """No type."""

    name = "Null"


class Function(_PlainType):
    """The type of functions, Cells and primitives."""

    name, title = "function", "Func"


class TypeType(_PlainType):
    """The type of types."""

    name, title = "type_type", "TypeType"


class TypeEllipsis(_PlainType):
    """The type of `...`."""

    name = "Ellipsis"


class External(_PlainType):
    """The type of Python objects that MindSpore has no type for."""

    name = "External"


class UndeterminedType(_PlainType):
    """A type that is not known yet."""

    name = "Undetermined"


class EnvType(_PlainType):
    """The type of MindSpore's environments of gradients."""

    name, title = "env_type", "Object:EnvType"


class RefKeyType(_PlainType):
    """The type of keys of references."""

    name, title = "type_refkey", "Object:RefKey"


class SymbolicKeyType(_PlainType):
    """The type of symbolic keys."""

    name, title = "symbolic_key", "Object:SymbolicKey"


list_, tuple_, tensor_type, type_none, null = List(), Tuple(), TensorType(), TypeNone(), TypeNull()
function, type_type, index_slices, csr_tensor, coo_tensor = Function(), TypeType(), RowTensorType(), CSRTensorType(), COOTensorType()
undetermined, env_type, type_refkey, symbolic_key = UndeterminedType(), EnvType(), RefKeyType(), SymbolicKeyType()

_NAMED: dict[str, Type] = {str(type_): type_ for type_ in (
    *dtypes.STORED, dtypes.number, dtypes.int_, dtypes.uint, dtypes.float_, dtypes.bfloat, dtypes.complex_, dtypes.string, tensor_type,
    list_, tuple_, type_none, type_type, index_slices, csr_tensor, coo_tensor, Dict(), Slice(), TypeEllipsis(),
)} | {"Function": function, "EnvType": env_type} | {dtype._name: dtype for dtype in dtypes.STORED}
_CONTAINERS: dict[str, Any] = {"Tensor": lambda items: TensorType(*items), "List": List, "Tuple": Tuple}


def str_to_type(type_name: str) -> Type:
    """Return the type of this name: `'Tensor'`, `'Number'`, `'Int32'` or `'int32'`, `'Tuple[Int32,Float32]'`.

    Raises:
        RuntimeError: no type has this name.
    """
    name, bracket, content = type_name.strip().partition("[")
    if bracket and name in _CONTAINERS and content.endswith("]"):
        return _CONTAINERS[name]([str_to_type(item) for item in content[:-1].split(",")])
    if bracket or name not in _NAMED:
        raise RuntimeError(f"the type {type_name!r}: expected a name such as Tensor, Number, Int32, Tuple or List[Int32].")
    return _NAMED[name]


_CONSTANTS: tuple[tuple[type, Type], ...] = (
    (bool, dtypes.bool_), (np.bool_, dtypes.bool_), (int, dtypes.int64), (float, dtypes.float32), (np.float32, dtypes.float32),
    (str, dtypes.string), (type(None), type_none), (type(...), TypeEllipsis()), (Type, type_type),
)


def type_of(value: Any, sparse: Mapping[type, Any] | None = None) -> Type:
    """Return the MindSpore type of a value, as `ops.typeof` does. Python objects without a type are External.

    `sparse` maps classes of sparse Tensors to functions that return their type.
    """
    for kind, type_ in _CONSTANTS:
        if isinstance(value, kind):
            return type_
    for kind, describe in (sparse or {}).items():
        if isinstance(value, kind):
            return describe(value)
    if isinstance(value, TensorBase):
        element = dtypes.FROM_TORCH[raw(value).dtype]
        return RefType(element) if hasattr(type(value), "layerwise_parallel") else TensorType(element)
    if isinstance(value, (tuple, list)):
        return (Tuple if isinstance(value, tuple) else List)([type_of(item, sparse) for item in value])
    if isinstance(value, dict):
        return Dict({key: type_of(item, sparse) for key, item in value.items()})
    if isinstance(value, slice):
        return Slice(*(type_of(part) for part in (value.start, value.stop, value.step)))
    return function if callable(value) and not isinstance(value, (BuiltinFunctionType, type)) else External()
