"""NumPy arrays that a call computes from constants alone, as in `Tensor(np.array([1, 2]))`: a graph may hold their values.

The expression is judged from its source. It may call NumPy's constructors on numbers, text, dtypes and shapes, and read names and
attributes with such values. It may not read an array, whose contents can change without notice, nor draw random numbers.
"""
from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from torchspore.base.frames import is_user_file

_CONSTRUCTORS = frozenset({
    "array", "asarray", "ascontiguousarray", "ones", "zeros", "full", "arange", "eye", "identity", "linspace", "logspace", "tri", "tril",
    "triu", "stack", "concatenate", "reshape", "repeat", "tile", "transpose", "expand_dims", "squeeze", "diag", "sqrt", "exp", "log", "sin",
    "cos", "abs", "power", "prod", "sum",
})
_METHODS = frozenset({"astype", "reshape", "transpose", "copy", "flatten", "ravel", "repeat", "tolist", "squeeze"})
_MAKERS = frozenset({"Tensor", "tensor"})
_PLAIN = (bool, int, float, complex, str, type(None), np.dtype, type, np.number, np.bool_, slice)
_MISSING = object()


def is_constant() -> bool:
    """Return whether every `Tensor(...)` on the user's innermost line is computed from constants alone."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return False
    calls = [call for call in _tensor_calls(frame.f_code.co_filename) if call.lineno <= frame.f_lineno <= (call.end_lineno or call.lineno)]
    return bool(calls) and all(call.args and _is_constant(call.args[0], frame) for call in calls)


@functools.lru_cache(maxsize=64)
def _tensor_calls(filename: str) -> list[ast.Call]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _MAKERS
    ]


def _is_constant(node: ast.expr, frame: FrameType) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        return _is_pure(node.func, frame) and all(_is_constant(argument, frame) for argument in arguments)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _is_plain(_value_of(node, frame))
    if isinstance(node, (ast.List, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Slice, ast.Starred)):
        return all(_is_constant(child, frame) for child in _operands(node))
    return False


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def _is_pure(function: ast.expr, frame: FrameType) -> bool:
    """Return whether a call of `function` depends on its arguments alone: a constructor of NumPy, a dtype, a method of a constant."""
    if isinstance(function, ast.Attribute) and function.attr in _METHODS and isinstance(function.value, (ast.Call, ast.BinOp)):
        return _is_constant(function.value, frame)
    value = _value_of(function, frame)
    if isinstance(value, type):
        return issubclass(value, (np.generic, int, float, bool, complex, list, tuple, range))
    name = getattr(value, "__name__", "")
    return name in _CONSTRUCTORS and getattr(np, name, None) is value


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, text or dtype, or a tuple of these: no array, whose contents may change."""
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))


def _value_of(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of a name or of attributes of one, without running code of the program; _MISSING where that is not possible."""
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(__import__("builtins"))):
            if node.id in names:
                return names[node.id]
        return _MISSING
    if isinstance(node, ast.Attribute):
        owner = _value_of(node.value, frame)
        if isinstance(owner, ModuleType):
            return vars(owner).get(node.attr, _MISSING)
        if owner is _MISSING or isinstance(owner, FunctionType):
            return _MISSING
        attributes = getattr(owner, "__dict__", {})
        return (
            attributes[node.attr]
            if node.attr in attributes
            else owner.shape
            if node.attr == "shape" and hasattr(owner, "asnumpy")
            else _MISSING
        )
    return _MISSING
