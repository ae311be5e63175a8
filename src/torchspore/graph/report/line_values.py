"""The user's line that an error comes from: its calls and subscripts, and the values of simple expressions in it."""
from __future__ import annotations

import ast
import builtins
import dis
import linecache
from collections.abc import Iterator
from types import TracebackType
from typing import Any


def innermost(trace: TracebackType | None) -> TracebackType | None:
    """Return the last entry of a traceback."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def nodes_of_line(trace: TracebackType | None) -> list[ast.AST]:
    """Return the syntax nodes of the innermost line of a traceback; an empty list if the line is not a statement."""
    last = innermost(trace)
    if last is None:
        return []
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno).strip()
    for source in (line, f"{line} pass", f"{line}\n    pass", f"if True: pass\n{line} pass"):
        try:
            return list(ast.walk(ast.parse(source)))
        except SyntaxError:
            continue
    return []


def calls(trace: TracebackType | None, function: str) -> list[ast.Call]:
    """Return the calls of a function in the innermost line of a traceback."""
    return [node for node in nodes_of_line(trace) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function]


def method_calls(trace: TracebackType | None, method: str) -> list[ast.Call]:
    """Return the calls of a method in the innermost line of a traceback."""
    return [node for node in nodes_of_line(trace) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == method]


def value_of(node: ast.AST, trace: TracebackType | None) -> Any:
    """Return the value of a name, a constant or a display of them. Raises LookupError for any other expression."""
    last = innermost(trace)
    frame = None if last is None else last.tb_frame
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = value_of(node.operand, trace)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [value_of(item, trace) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Name) and frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            if node.id in scope:
                return scope[node.id]
    raise LookupError(ast.dump(node))


def subscripts(trace: TracebackType | None, kind: type, is_store: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the index of each subscript of a tuple or list in the innermost line, if both have known values."""
    context = ast.Store if is_store else ast.Load
    for node in nodes_of_line(trace):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, context):
            try:
                container, index = value_of(node.value, trace), value_of(node.slice, trace)
            except LookupError:
                continue
            if isinstance(container, kind):
                yield container, index


def undefined_name(trace: TracebackType | None) -> tuple[str, int] | None:
    """Return the first name, and its line, that the innermost function of a traceback reads and that no scope defines."""
    last = innermost(trace)
    if last is None:
        return None
    frame = last.tb_frame
    line = frame.f_lineno
    for instruction in dis.get_instructions(frame.f_code):
        line = _line_of(instruction) or line
        if instruction.opname == "LOAD_GLOBAL" and not (instruction.argval in frame.f_globals or hasattr(builtins, instruction.argval)):
            return instruction.argval, line
    return None


def _line_of(instruction: Any) -> int | None:
    line: Any = getattr(instruction, "line_number", None) or instruction.starts_line
    return line if isinstance(line, int) and not isinstance(line, bool) else None


def where(trace: TracebackType | None, line: int | None = None) -> str:
    """Return the position and the source of the innermost line: `In file train.py:12`, and the statement."""
    last = innermost(trace)
    if last is None:
        return ""
    path, number = last.tb_frame.f_code.co_filename, line or last.tb_lineno
    return f"In file {path}:{number}\n    {linecache.getline(path, number).strip()}"
