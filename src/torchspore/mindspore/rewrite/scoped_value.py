"""Values in statements of a network: names, constants, and other expressions."""
from __future__ import annotations

import ast
import enum
from typing import Any

from torchspore.base.text import message, short


class ValueType(enum.Enum):
    """The kind of a ScopedValue."""

    ConstantValue = 0
    NamingValue = 1
    TupleValue = 2
    ListValue = 3
    DictValue = 4
    CustomObjValue = 5
    UnsupportedValue = 6


_KINDS = {tuple: ValueType.TupleValue, list: ValueType.ListValue, dict: ValueType.DictValue}


class ScopedValue:
    """A value, or a name with its scope: `self.x` is the name x in the scope self."""

    def __init__(self, arg_type: ValueType, scope: str = "", value: Any = None) -> None:
        if not isinstance(arg_type, ValueType):
            raise TypeError(message(f"ScopedValue({short(arg_type)})", f"a ValueType, got {type(arg_type).__name__}"))
        self.type, self.scope, self.value = arg_type, scope, value

    @classmethod
    def create_variable_value(cls, value: Any) -> ScopedValue:
        """Returns a ScopedValue of a constant."""
        if isinstance(value, (int, float, str, bool, complex, bytes, type(None))):
            return cls(ValueType.ConstantValue, "", value)
        return cls(_KINDS.get(type(value), ValueType.CustomObjValue), "", value)

    @classmethod
    def create_naming_value(cls, name: str, scope: str = "") -> ScopedValue:
        """Returns a ScopedValue of a name. Raises TypeError unless it is a str."""
        for key, text in (("name", name), ("scope", scope)):
            if not isinstance(text, str):
                raise TypeError(message(f"create_naming_value({key}={short(text)})", f"a str, got {type(text).__name__}"))
        return cls(ValueType.NamingValue, scope, name)

    @staticmethod
    def create_name_values(names: Any, scopes: Any = None) -> list[ScopedValue]:
        """Returns a ScopedValue of each name in these scopes. Raises TypeError unless they are lists of str, ValueError for two lengths."""
        for key, items in (("names", names), ("scopes", scopes)):
            if not isinstance(items, (list, tuple)) and not (key == "scopes" and items is None):
                raise TypeError(message(f"create_name_values({key}={short(items)})", f"a list of str, got {type(items).__name__}"))
        if scopes is not None and len(scopes) != len(names):
            raise ValueError(message(f"create_name_values of {len(names)} names and {len(scopes)} scopes", "a scope for each name"))
        return [ScopedValue.create_naming_value(name, scope) for name, scope in zip(names, scopes or [""] * len(names))]

    def __str__(self) -> str:
        if self.type is ValueType.NamingValue:
            return f"{self.scope}.{self.value}" if self.scope else str(self.value)
        return ast.unparse(self.value) if isinstance(self.value, ast.AST) else str(self.value)

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScopedValue) and (self.type, self.scope, str(self)) == (other.type, other.scope, str(other))

    def __hash__(self) -> int:
        return hash((self.type, self.scope, str(self)))


def of_expression(expression: ast.expr) -> ScopedValue:
    """Return the ScopedValue of an expression in a statement."""
    if isinstance(expression, ast.Constant):
        return ScopedValue.create_variable_value(expression.value)
    if isinstance(expression, ast.Name):
        return ScopedValue.create_naming_value(expression.id)
    if isinstance(expression, ast.Attribute):
        scope = ast.unparse(expression.value)
        if scope.replace(".", "").replace("_", "").isalnum():
            return ScopedValue.create_naming_value(expression.attr, scope)
    return ScopedValue(ValueType.UnsupportedValue, "", expression)


def expression_of(value: ScopedValue) -> ast.expr:
    """Return the expression of a ScopedValue in a statement. Raises ValueError for an object without a source form."""
    if isinstance(value.value, ast.expr):
        return value.value
    if value.type is ValueType.NamingValue:
        return ast.parse(str(value), mode="eval").body
    if value.type is ValueType.CustomObjValue:
        raise ValueError(message(f"the value {short(value.value)}", "a name, a number, a text, or a tuple, list or dict of them"))
    return ast.parse(repr(value.value), mode="eval").body
