"""The source of a function as a syntax tree, sure to be the source of what runs."""
from __future__ import annotations
import __future__ as futures

import ast
import dis
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from torchspore.graph.control_flow import fixed_conditions

_FUTURES = 0
for _name in futures.all_feature_names:
    _FUTURES |= getattr(futures, _name).compiler_flag

_JUMPS = {*dis.hasjrel, *dis.hasjabs}

Definition = ast.FunctionDef | ast.Lambda


class NoSource(Exception):
    """The function can't be read; the text says why."""


def definition(function: FunctionType) -> Definition:
    """The syntax tree of `function`, with the line numbers of its file. Raises NoSource."""
    definition: Definition | None = getattr(function, "_cf_definition", None)
    if definition is not None:                                        # a piece of a function that runs in parts
        return definition
    try:
        return _definition(function, *_lines(function))
    except NoSource:
        # `support_binary` keeps the source in the function; the file comes first, because it may have been edited since.
        source_text = getattr(function, "source", None)
        if not (isinstance(source_text, tuple) and len(source_text) == 2):
            raise
        return _definition(function, list(source_text[0]), int(source_text[1]))


def _definition(function: FunctionType, lines: list[str], first: int) -> Definition:
    code = function.__code__
    tree = _parsed(lines)
    ast.increment_lineno(tree, max(first, 1) - 1)
    candidates = [node for node in ast.walk(tree) if _may_be(node, code)]
    if len(candidates) > 1:
        candidates = [node for node in candidates if _is(node, code, class_of(function))] or candidates
    if len(candidates) != 1:
        raise NoSource("its source is not at hand")
    node = candidates[0]
    assert isinstance(node, (ast.FunctionDef, ast.Lambda))
    if not any(isinstance(part, ast.Assert) for part in ast.walk(node)) and not _is(node, code, class_of(function)):
        raise NoSource("its source has changed since it was loaded")  # asserts are omitted: pytest rewrites them
    return node


def class_of(function: FunctionType) -> str | None:
    """The name of the class in whose body `function` was defined, which `self.__name` needs."""
    parts = function.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2].isidentifier() else None


def flags(code: CodeType) -> int:
    """The `from __future__` flags that `code` was compiled with."""
    return code.co_flags & _FUTURES


def codes(code: CodeType) -> Iterator[CodeType]:
    """`code` and all code objects inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _lines(function: FunctionType) -> tuple[list[str], int]:
    filename = function.__code__.co_filename
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)           # `inspect.findsource` reads an attribute of each loaded module
    start = function.__code__.co_firstlineno - 1
    if start >= len(lines):
        raise NoSource("its source is not at hand")
    if function.__name__ == "<lambda>":
        return _statement(lines, start)
    try:
        return inspect.getblock(lines[start:]), start + 1
    except (SyntaxError, IndentationError):
        raise NoSource("its source is not at hand") from None


def _statement(lines: list[str], start: int) -> tuple[list[str], int]:
    """The lines of the statement that holds the lambda of line `start` (from 0)."""
    for first in range(start, max(start - 20, -1), -1):
        for end in range(start + 1, min(start + 20, len(lines)) + 1):
            try:
                _parsed(lines[first:end])
            except NoSource:
                continue
            return lines[first:end], first + 1
    raise NoSource("its source is not at hand")


def _parsed(lines: list[str]) -> ast.Module:
    text = textwrap.dedent("".join(line if line.endswith("\n") else line + "\n" for line in lines))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        raise NoSource("its source is not at hand") from None
    if "@jit.cond:" in text:
        fixed_conditions.mark(tree, text.splitlines())
    margin = len(lines[0].rstrip("\n")) - len(text.partition("\n")[0])
    for part in ast.walk(tree) if margin else ():
        if "col_offset" in part._attributes:                    # tracebacks and saved graphs mark the position in the file's line
            part.col_offset += margin  # type: ignore[attr-defined]
            part.end_col_offset += margin  # type: ignore[attr-defined]
    return tree


def _may_be(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)
    return isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno


def _is(node: ast.AST, code: CodeType, class_name: str | None) -> bool:
    """Return whether `node` compiles to what `code` does."""
    assert isinstance(node, (ast.FunctionDef, ast.Lambda))
    candidate = compiled(node, code, class_name, code.co_freevars)
    return candidate is not None and _essence(candidate) == _essence(code)


def _essence(code: CodeType) -> list[tuple[str, Any]]:
    """Return the meaning of a code object, without the parts that depend on which imports of its module the compiler saw."""
    return [
        (
            step.opname.replace("METHOD", "ATTR"),
            step.argval if isinstance(step.argval, (str, int, float)) and step.opcode not in _JUMPS else None,
        )
        for step in dis.get_instructions(code) if step.opname not in ("PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION", "CALL_METHOD")
    ]


def compiled(node: Definition, code: CodeType, class_name: str | None, free: tuple[str, ...]) -> CodeType | None:
    """Return the code object of `node` alone, in a scope where `free` are free variables; None if it cannot be identified."""
    inner: ast.stmt
    if isinstance(node, ast.Lambda):
        inner = ast.copy_location(ast.Expr(node), node)
    else:
        inner = ast.copy_location(ast.FunctionDef(
            name=node.name, args=node.args, body=node.body, decorator_list=[], returns=None, type_comment=None,
            **_no_parameters(),
        ), node)
    if class_name is not None:
        inner = ast.ClassDef(
            name=class_name, bases=[], keywords=[], body=[inner], decorator_list=[],
            **_no_parameters(),
        )
    names = "".join(f"{name} = " for name in free)
    own_names = {class_name if class_name is not None else getattr(node, "name", None)} - {None, *free}
    head = "".join(f"    global {name}\n" for name in own_names)  # what calls itself by name finds itself among the globals
    outer = ast.parse("def scope():\n" + head + (f"    if 0: {names}None\n" if free else "") + "    pass")
    scope = outer.body[0]
    assert isinstance(scope, ast.FunctionDef)
    scope.body[-1:] = [inner]
    module_code = compile(ast.fix_missing_locations(outer), code.co_filename, "exec", flags(code), dont_inherit=True)
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    for found in codes(module_code):
        if found.co_name == name and found.co_firstlineno == node.lineno:
            return found
    return None


def _no_parameters() -> dict[str, Any]:
    """The field that Python 3.12 added to definitions."""
    return {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
