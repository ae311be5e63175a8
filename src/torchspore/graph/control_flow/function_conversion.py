"""Converts a function to one that does the same, with its control flow as calls of helpers that may put it into a graph.

The new function has the globals, the cells of free variables, the defaults, the file and the lines of the old one. Each code object is
converted once.
"""
from __future__ import annotations

import ast
import copy
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from torchspore.graph.capture.converted_code import SOURCES
from torchspore.graph.control_flow import source, syntax
from torchspore.graph.control_flow.expression_conversion import Expressions
from torchspore.graph.control_flow.fixed_conditions import FixedConditions
from torchspore.graph.control_flow.source import NoSource
from torchspore.graph.control_flow.statement_conversion import converted as converted_definition

_conversions: dict[CodeType, CodeType | str] = {}
"""For each code object the converted one, or why there is none."""


def converted(function: FunctionType) -> FunctionType:
    """Return `function` with its control flow as calls of helpers; unchanged if it is converted already or cannot be."""
    code = function.__code__
    if code in SOURCES:
        return function
    if code not in _conversions:
        _conversions[code] = _code(function)
    new = _conversions[code]
    if not isinstance(new, CodeType):
        return function
    converted = FunctionType(new, function.__globals__, function.__name__, function.__defaults__, _closure(function, new))
    converted.__kwdefaults__, converted.__qualname__, converted.__module__ = (
        function.__kwdefaults__,
        function.__qualname__,
        function.__module__,
    )
    converted.__dict__.update(function.__dict__)
    converted.__dict__.pop("source", None)
    return converted


def why_not(function: Any) -> str | None:
    """Why `function` could not be converted, or None."""
    reason = _conversions.get(getattr(getattr(function, "__func__", function), "__code__", None))  # type: ignore[arg-type]
    return reason if isinstance(reason, str) else None


def reasons(codes: Any) -> dict[CodeType, str]:
    """Return the reason for each of `codes` that could not be converted."""
    return {code: reason for code in codes if isinstance(reason := _conversions.get(code), str)}


def bound(method: MethodType) -> MethodType:
    """The method with its function converted."""
    function = method.__func__
    return MethodType(converted(function), method.__self__) if isinstance(function, FunctionType) else method


def _closure(function: FunctionType, code: CodeType) -> tuple[CellType, ...]:
    from torchspore.graph.control_flow import runtime_helpers

    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    return tuple(cells[name] if name in cells else CellType(runtime_helpers) for name in code.co_freevars)


def _code(function: FunctionType) -> CodeType | str:
    code = function.__code__
    try:
        node = source.definition(function)
    except NoSource as reason:
        return str(reason)
    except RecursionError:
        return "it is nested too deeply"
    if not syntax.can_convert(node):
        return "it is a generator, or looks at its own local names"
    node = FixedConditions().visit(copy.deepcopy(node))
    if isinstance(node, ast.Lambda):
        changed: Any = Expressions(None, converted_definition).visit(node)
    else:
        changed = converted_definition(node)
        changed.args.defaults = [ast.Constant(None) for _ in changed.args.defaults]
        changed.args.kw_defaults = [value and ast.Constant(None) for value in changed.args.kw_defaults]
    for argument in (*changed.args.posonlyargs, *changed.args.args, *changed.args.kwonlyargs, changed.args.vararg, changed.args.kwarg):
        if argument is not None:
            argument.annotation = None
    try:
        new = source.compiled(changed, code, source.class_of(function), (*code.co_freevars, "_cf"))
    except (SyntaxError, RecursionError) as error:
        return f"its conversion fails ({error})"
    if new is None:
        return "its source is not at hand"
    new = _named(new, code)
    SOURCES.update(dict.fromkeys(source.codes(new), code))
    return new


def _named(new: CodeType, old: CodeType) -> CodeType:
    """`new` whose parts bear the name of the user's function, so that tracebacks show that."""
    constants = tuple(_named(c, old) if isinstance(c, CodeType) else c for c in new.co_consts)
    if not new.co_name.startswith("_cf_"):
        return new.replace(co_consts=constants)
    return new.replace(co_consts=constants, co_name=old.co_name)
