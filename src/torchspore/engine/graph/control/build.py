"""Small pieces of syntax trees, as the converter writes them."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def helper(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of one of our helpers, which converted code knows as `_cf`."""
    return ast.Call(ast.Attribute(name("_cf"), function, ast.Load()), list(arguments), [])


def is_helper(node: ast.Call) -> bool:
    """Whether a call is one that the converter wrote."""
    return isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "_cf"


def later(expression: ast.expr) -> ast.Lambda:
    """`lambda: expression`."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)


def strings(values: Iterable[str]) -> ast.Tuple:
    """A tuple of strings."""
    return ast.Tuple([ast.Constant(value) for value in sorted(values)], ast.Load())


def assign(target: str, value: ast.expr) -> ast.stmt:
    """`target = value`."""
    return ast.Assign([ast.Name(target, ast.Store())], value)


def leave(code: bool | int, value: ast.expr | None = None) -> ast.Return:
    """How the body of a loop says that it ended: (True, nothing) to go on, (False, nothing) for break.

    Where the loop has a return: (0, nothing) to go on, (1, nothing) for break, (2, value) for return.
    """
    nothing = ast.Attribute(name("_cf"), "NOTHING", ast.Load())
    return ast.Return(ast.Tuple([ast.Constant(code), value or (ast.Constant(None) if code == 2 else nothing)], ast.Load()))


def function(title: str, parameters: Sequence[str], body: list[ast.stmt], outer: set[str], globals_: set[str]) -> ast.FunctionDef:
    """A function inside the converted one; it writes the names `outer` of that and the names `globals_` of the module."""
    head: list[ast.stmt] = []
    if outer - globals_:
        head.append(ast.Nonlocal(sorted(outer - globals_)))
    if outer & globals_:
        head.append(ast.Global(sorted(outer & globals_)))
    made = ast.FunctionDef(
        name=title, args=ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, []), body=head + (body or [ast.Pass()]),
        decorator_list=[], returns=None, type_comment=None,
    )
    made.type_params = []  # type: ignore[attr-defined]
    return made


def located(nodes: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """`nodes` and what is in them, placed at `at` where they have no place yet."""
    line, column = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
    for node in nodes:
        for part in ast.walk(node):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                part.lineno, part.col_offset = line, column  # type: ignore[attr-defined]
                part.end_lineno, part.end_col_offset = line, column  # type: ignore[attr-defined]    # one line: Python names the last line of calls
    return nodes
