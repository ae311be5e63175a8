"""What pieces of a function's syntax tree assign, read and leave."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.While)


def own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All parts of `nodes` that belong to the same function: nested functions and classes are given, but not entered."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            yield from own(ast.iter_child_nodes(node))


def stored(nodes: Iterable[ast.AST], own_comprehension: bool = False) -> set[str]:
    """The names that `nodes` bind or delete in their function; targets of comprehensions are no names of the function."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and not own_comprehension:
            found.add(node.id)
        elif isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        if not isinstance(node, _SCOPES):
            found |= stored(ast.iter_child_nodes(node), own_comprehension or isinstance(node, _COMPREHENSIONS))
    return found


def declared(nodes: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names in `global` or `nonlocal` statements of the function."""
    return {name for node in own(nodes) if isinstance(node, kind) for name in node.names}


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
    """Whether control can leave the block around `node` from inside it: a return, or a break or continue of a loop around it."""
    return has_return(node) or _has_jump(node)


def has_return(node: ast.AST) -> bool:
    """Whether there is a return of this function inside `node`."""
    return any(isinstance(part, ast.Return) for part in own([node]))


def _has_jump(node: ast.AST) -> bool:
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, _LOOPS):
        return any(_has_jump(part) for part in node.orelse)
    return any(_has_jump(part) for part in ast.iter_child_nodes(node))


def can_convert(node: ast.AST) -> bool:
    """Whether a function is one that is run from its beginning to its end: no generator, nothing that looks at its own local names."""
    for part in own(ast.iter_child_nodes(node)):
        if isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return False
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in ("locals", "vars", "exec", "eval", "dir"):
            return False
        if isinstance(part, ast.Name) and part.id.startswith("_cf"):
            return False
    return True


def binds(expression: ast.AST) -> bool:
    """Whether an expression binds names or suspends the function, so that it can't become a function of its own."""
    return any(isinstance(part, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for part in ast.walk(expression))
