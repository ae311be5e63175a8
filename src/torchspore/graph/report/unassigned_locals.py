"""Describes, as MindSpore's compiler does, why a local variable has no value: a branch or loop that did not run assigns it."""
from __future__ import annotations

import ast
import linecache
from types import TracebackType

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def describe(name: str, trace: TracebackType | None) -> str:
    """Return the description of the variable `name` that the innermost frame of a traceback reads, and the line that reads it.

    Return an empty text if the source does not show an assignment.
    """
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    path, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
    try:
        module = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return ""
    functions = [                                                # the innermost function last
        node for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    description = _describe_in(functions[-1].body, name, line) if functions else ""
    return f"{description} The line `{linecache.getline(path, line).strip()}` reads it." if description else ""


def _describe_in(statements: list[ast.stmt], name: str, line: int) -> str:
    """Return the description from the first statement that assigns the variable; of a statement that contains `line`, from its blocks."""
    for statement in statements:
        if isinstance(statement, _Function | ast.ClassDef):
            continue
        if statement.lineno <= line <= (statement.end_lineno or 0):
            blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
            return next(filter(None, (_describe_in(block, name, line) for block in blocks if isinstance(block, list))), "")
        if isinstance(statement, ast.If):
            is_in_true, is_in_false = _assigns(statement.body, name), _assigns(statement.orelse, name)
            if is_in_true != is_in_false:
                missing, present = ("false", "true") if is_in_true else ("true", "false")
                return f"The local variable '{name}' is not defined in {missing} branch, but defined in {present} branch."
        if isinstance(statement, (ast.For, ast.While)) and _assigns([statement], name):
            loop = "for" if isinstance(statement, ast.For) else "while"
            return f"The local variable '{name}' defined in the '{loop}' loop body cannot be used outside of the loop body."
        if _assigns([statement], name):                        # then a `del` is the reason
            return ""
    return ""


def _assigns(statements: list[ast.stmt], name: str) -> bool:
    """Return whether the statements assign the variable, apart from functions and classes that they define."""
    remaining: list[ast.AST] = list(statements)
    while remaining:
        node = remaining.pop()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if not isinstance(node, _Function | ast.ClassDef):
            remaining += ast.iter_child_nodes(node)
    return False
