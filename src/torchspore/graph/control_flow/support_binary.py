"""`support_binary`: the source of captured functions is stored in the program, so that a compiled .pyc or .so can be converted.

A run of the .py appends, for each function in a graph, a line that attaches its source:

    setattr(Net.construct, 'source', (['    def construct(self, x):\\n', '        return x\\n'], 12))

A .pyc or .so that is compiled from such a file contains it; the converter of branches and loops looks there first.
"""
from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torchspore.base import once
from torchspore.base.files import write_atomically
from torchspore.base.frames import is_user_file
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.graph.capture.converted_code import original

_pythons: dict[int, tuple[Any, FunctionType]] = {}
"""Functions compiled by Cython, by their ids, and the functions to convert in their place. A capture would record an attribute of theirs.
"""
_Source = tuple[list[str], int]


def keep(codes: Iterable[CodeType]) -> None:
    """Writes the sources of these functions into their files; each once."""
    by_file: dict[str, list[CodeType]] = {}
    for code in map(original, codes):
        name = code.co_filename
        if is_user_file(name) and name.endswith(".py") and "site-packages" not in name and os.path.isfile(name):
            by_file.setdefault(name, []).append(code)
    outcome = Outcome.applied("each graph's source is at hand, or in its .py file")
    for name, functions in by_file.items():
        try:
            count = _append(name, functions)
        except OSError as error:
            outcome = Outcome.no_effect(f"{name} can't be written ({error.strerror})")
            if once.first_time(("support_binary", name)):
                warnings.warn(
                    f"support_binary: the source of graphs can't be stored in {name}: {error.strerror}.\n\n"
                    "hint: make the file writable, run it once, and then compile it.", UserWarning, stacklevel=2,
                )
            continue
        if count:
            outcome = Outcome.applied(f"the source of {count} functions was stored in {name}")
    effects.report("support_binary", outcome)


def readable(function: Any) -> Any:
    """A function compiled by Cython that carries its source, as a function of Python that can be converted; anything else as it is."""
    if isinstance(function, MethodType):
        inner = readable(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, FunctionType) or type(function).__name__ != "cython_function_or_method":
        return function
    source = getattr(function, "source", None)
    return function if source is None else _as_python(function, source)


def _append(name: str, codes: list[CodeType]) -> int:
    """Append the missing functions to the file; return their number."""
    text = Path(name).read_text(encoding="utf-8")
    lines, count = text.splitlines(keepends=True), 0
    for path, function in _named(name, codes):
        try:
            source, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            continue
        start = f"setattr({path}, 'source', "
        line_text = f"{start}({source!r}, {first}))\n"
        there = [number for number, line in enumerate(lines) if line.startswith(start)]
        if there and lines[there[0]] == line_text:
            continue
        count += 1
        if there:
            lines[there[0]] = line_text
        else:
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            lines += ["\n", f"# The source of {path}, with which a compiled .pyc or .so of this file runs in GRAPH_MODE.\n", line_text]
    if count:
        _replace(name, "".join(lines))
    return count


def _named(name: str, codes: list[CodeType]) -> Iterator[tuple[str, FunctionType]]:
    """Return the functions of a file with these codes, and the functions that they call, in the order of the file."""
    module = next((m for m in list(sys.modules.values()) if isinstance(m, ModuleType) and getattr(m, "__file__", None) == name), None)
    variables = vars(module) if module is not None else {}
    wanted_codes, found_functions = set(codes), []
    for path, function in _functions(variables, variables.get("__name__"), ""):
        if function.__code__ in wanted_codes:
            wanted_codes.remove(function.__code__)
            found_functions.append((path, function))
    return iter(sorted(found_functions, key=lambda item: item[1].__code__.co_firstlineno))


def _functions(variables: dict[str, Any], module: str | None, prefix: str) -> Iterator[tuple[str, FunctionType]]:
    for name, value in list(variables.items()):
        path = f"{prefix}{name}"
        if isinstance(value, (staticmethod, classmethod)):
            continue
        while hasattr(value, "__wrapped__") and callable(value) and not isinstance(value, type):
            value, path = value.__wrapped__, f"{path}.__wrapped__"
        if isinstance(value, FunctionType) and value.__module__ == module:
            yield path, value
        elif isinstance(value, type) and value.__module__ == module and value.__qualname__ == path:
            yield from _functions(vars(value), module, f"{path}.")  # type: ignore[arg-type]


def _replace(name: str, text: str) -> None:
    """Replace the file's text atomically. Raises OSError."""
    if not os.access(name, os.W_OK):
        raise PermissionError(13, "Permission denied", name)
    write_atomically(Path(name), text, os.stat(name).st_mode)


def _as_python(function: Any, source: _Source) -> Any:
    _, converted = _pythons.get(id(function), (None, None))
    if converted is None:
        lines, first = source
        tree = ast.parse(textwrap.dedent("".join(lines)))
        ast.increment_lineno(tree, first - 1)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                node.decorator_list = []
        module = compile(tree, function.__code__.co_filename, "exec")
        code = next(constant for constant in module.co_consts if isinstance(constant, CodeType) and constant.co_name == function.__name__)
        converted = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
        converted.__kwdefaults__ = function.__kwdefaults__
        converted.source = source  # type: ignore[attr-defined]
        _pythons[id(function)] = (function, converted)
    return converted
