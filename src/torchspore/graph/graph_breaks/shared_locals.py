"""Local names that a function shares with functions defined in it: they stay in its frame, where all see each other's writes."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType

from torchspore.graph.control_flow.source import Definition
from torchspore.graph.control_flow.syntax import stored

_MANY = 2
_AT_ONCE = {"sum", "any", "all", "tuple", "list", "set", "frozenset", "dict", "max", "min", "sorted", "join"}
"""Functions that run a generator to its end before they come back."""


def shared(definition: Definition, code: CodeType) -> set[str]:
    """Return the names that a nested function reads after its definition, or writes: both functions must see the same value.

    A name that is bound once, before such a function is made, is the same wherever it is kept.
    """
    names = set(code.co_cellvars)
    if not names:
        return names
    nested = [node for node in _inside(definition) if _runs_later(node)]
    first = {name: min((_position_of(node) for node in nested if name in _mentioned(node)), default=None) for name in names}
    bound: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.arg in bound:
            bound[argument.arg].append((0, 0))
    if not isinstance(definition, ast.Lambda):
        for statement in definition.body:
            _bindings(statement, bound, 1)
    written_names = {name for node in nested for part in ast.walk(node) if isinstance(part, ast.Nonlocal) for name in part.names}
    return {
        name for name, position in first.items()
        if position is not None and (name in written_names or len(bound[name]) >= _MANY or any(at > position for at in bound[name]))
    }


def mentions(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement, or a function made in it, names one of `names`."""
    return bool(names) and not names.isdisjoint(_mentioned(statement))


def _mentioned(node: ast.AST) -> set[str]:
    names: set[str] = set(stored([node]))
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Nonlocal):
            names.update(part.names)
    return names


def _inside(definition: Definition) -> Iterator[ast.AST]:
    """All parts of a function, with the functions defined in it and their parts."""
    at_once: set[int] = set()
    for part in ast.walk(definition):
        if isinstance(part, ast.Call) and getattr(part.func, "id", getattr(part.func, "attr", "")) in _AT_ONCE:
            at_once.update(id(argument) for argument in part.args)
        if part is not definition and id(part) not in at_once:
            yield part


def _runs_later(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp))


def _bindings(node: ast.AST, bound: dict[str, list[tuple[int, int]]], times: int) -> None:
    """Adds where names are bound in a statement; in a loop they are bound many times."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        names = {node.name}
    elif isinstance(node, (ast.stmt, ast.expr, ast.ExceptHandler, ast.pattern)):
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))]
        names = stored([node]) - stored(inner)
    else:
        names = set()
    for name in names & bound.keys():
        bound[name] += [_position_of(node)] * times
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            _bindings(child, bound, _MANY if isinstance(node, (ast.For, ast.While)) else times)


def _position_of(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
