"""Python source as a tree: which names a piece of it reads and writes, and how new pieces are built."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.While)


def nodes_in_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All parts of `nodes` that belong to the same function: nested functions and classes are given, but not entered."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            yield from nodes_in_scope(ast.iter_child_nodes(node))


def stored(nodes: Iterable[ast.AST], includes_comprehensions: bool = False) -> set[str]:
    """The names that `nodes` bind or delete in their function; targets of comprehensions are not names of the function."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and not includes_comprehensions:
            names.add(node.id)
        elif isinstance(node, ast.NamedExpr):
            names.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        if not isinstance(node, _SCOPES):
            names |= stored(ast.iter_child_nodes(node), includes_comprehensions or isinstance(node, _COMPREHENSIONS))
    return names


def declared(nodes: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names in `global` or `nonlocal` statements of the function."""
    return {name for node in nodes_in_scope(nodes) if isinstance(node, kind) for name in node.names}


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that `nodes` read, nested functions included."""
    return {
        part.id for node in nodes for part in ast.walk(node)
        if isinstance(part, ast.Name) and (isinstance(part.ctx, (ast.Load, ast.Del)) or part.id == "_cf")
    } | {
        part.target.id for node in nodes for part in ast.walk(node)
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    }


def leaves(node: ast.AST) -> bool:
    """Return whether control can leave the block around `node` from inside it: a return, or a break or continue of a loop around it."""
    return has_return(node) or _has_jump(node)


def has_return(node: ast.AST) -> bool:
    """Return whether there is a return of this function inside `node`."""
    return any(isinstance(part, ast.Return) for part in nodes_in_scope([node]))


def _has_jump(node: ast.AST) -> bool:
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, _LOOPS):
        return any(_has_jump(part) for part in node.orelse)
    return any(_has_jump(part) for part in ast.iter_child_nodes(node))


def can_convert(node: ast.AST) -> bool:
    """Return whether a function runs from its beginning to its end: no generator, no code that reads its local names."""
    for part in nodes_in_scope(ast.iter_child_nodes(node)):
        if isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return False
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in ("locals", "vars", "exec", "eval", "dir"):
            return False
        if isinstance(part, ast.Name) and part.id.startswith("_cf"):
            return False
    return True


def binds(expression: ast.AST) -> bool:
    """Return whether an expression binds names or suspends the function, so that it can't become a function of its own."""
    return any(isinstance(part, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for part in ast.walk(expression))


def target_pattern(target: ast.AST) -> tuple[object, ...] | None:
    """The pattern of the names to which a tuple is assigned: None for each name, a pattern for names in parentheses.

    None for a single name, and if a name has a star.
    """
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(part, ast.Starred) for part in target.elts):
        return None
    return tuple(target_pattern(part) for part in target.elts)


def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def helper(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of one of our helpers, which converted code knows as `_cf`."""
    return ast.Call(ast.Attribute(name("_cf"), function, ast.Load()), list(arguments), [])


def is_helper(node: ast.Call) -> bool:
    """Return whether a call is one that the converter wrote."""
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
    """Return how the body of a loop reports its end: (True, nothing) to go on, (False, nothing) for break.

    If the loop has a return: (0, nothing) to go on, (1, nothing) for break, (2, value) for return.
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
    function = ast.FunctionDef(
        name=title, args=ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, []), body=head + (body or [ast.Pass()]),
        decorator_list=[], returns=None, type_comment=None,
    )
    function.type_params = []  # type: ignore[attr-defined]
    return function


def located(nodes: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """Give `nodes` and their children the position `at` if they have none."""
    line, column = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
    for node in nodes:
        for part in ast.walk(node):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                part.lineno, part.col_offset = line, column  # type: ignore[attr-defined]
                part.end_lineno, part.end_col_offset = line, column  # type: ignore[attr-defined]    # one line: Python names the last line of calls
    return nodes
