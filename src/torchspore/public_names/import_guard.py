"""Detect whether the program handles an ImportError of the current import, from the source of the frames on the stack."""
from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

from torchspore.base import frames

_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_BASES = frozenset({"Exception", "BaseException"})
_RUNNERS = tuple(f"/site-packages/{name}/" for name in ("_pytest", "pluggy", "IPython", "ipykernel", "nbclient", "xdist", "execnet"))

_handled_blocks: dict[str, list[tuple[int, int, bool]]] = {}
"""By file, the first and last line of blocks whose ImportError the program handles, and whether the handler names ImportError."""


def is_guarded() -> bool:
    """Return whether a frame of the program would catch an ImportError raised now and continue without the import.

    The frame of the import statement counts with any handler that catches ImportError. Frames around it, which import the program's
    modules or call its functions, count only if the handler names ImportError: `except Exception` there is a report of any failure.
    A handler that ends by raising again never counts, because it only changes the message. `with` blocks of `contextlib.suppress`,
    `pytest.raises` and the like count as handlers.
    """
    frame: FrameType | None = sys._getframe(1)
    is_innermost = True
    while frame is not None:
        if _is_program(frame.f_code.co_filename):
            if _handles(frame, is_innermost):
                return True
            is_innermost = False
        frame = frame.f_back
    return False


def _is_program(filename: str) -> bool:
    filename = frames.with_slashes(filename)
    if filename.startswith((frames.PACKAGE, "<frozen ")) or any(part in filename for part in _RUNNERS):
        return False
    return not filename.startswith(frames.LIBRARY) or "/site-packages/" in filename


def _handles(frame: FrameType, is_innermost: bool) -> bool:
    filename, line = frame.f_code.co_filename, frame.f_lineno
    if filename not in _handled_blocks:
        source = "".join(linecache.getlines(filename, frame.f_globals))
        try:
            tree = ast.parse(source) if source else None
        except (SyntaxError, ValueError, RecursionError):
            tree = None
        if tree is None:
            return is_innermost and _is_in_any_try(frame.f_code, frame.f_lasti)
        _handled_blocks[filename] = list(_find_handled_blocks(tree))
    return any(first <= line <= last and (is_innermost or is_named) for first, last, is_named in _handled_blocks[filename])


def _is_in_any_try(code: CodeType, offset: int) -> bool:
    """Return whether an instruction of code without source is in a block with a handler of any kind. Unknown before Python 3.11."""
    import dis

    parse = getattr(dis, "_parse_exception_table", None)
    return parse is not None and any(entry.start <= offset < entry.end for entry in parse(code))


def _find_handled_blocks(tree: ast.AST) -> Iterator[tuple[int, int, bool]]:
    groups = _named_groups(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            handlers = [handler for handler in node.handlers if not isinstance(handler.body[-1], ast.Raise)]
            kinds = [groups.get(name, frozenset({name})) for handler in handlers for name in _caught_names(handler.type)]
        elif isinstance(node, ast.With):
            kinds = [_argument_names(item.context_expr) & _IMPORT_ERRORS for item in node.items]
        else:
            continue
        names = frozenset().union(*kinds)
        if names & (_IMPORT_ERRORS | _BASES):
            yield node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno, bool(names & _IMPORT_ERRORS)


def _named_groups(tree: ast.AST) -> dict[str, frozenset[str]]:
    """Return the exception classes of assignments such as `MISSING = (ImportError, AttributeError)`, by name."""
    return {
        target.id: _caught_names(node.value)
        for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute, ast.Tuple))
        for target in node.targets if isinstance(target, ast.Name)
    }


def _caught_names(kind: ast.expr | None) -> frozenset[str]:
    """Return the names of the exception classes in `except kind`; a bare `except` catches BaseException."""
    if kind is None:
        return frozenset({"BaseException"})
    if isinstance(kind, ast.Tuple):
        return frozenset().union(*map(_caught_names, kind.elts))
    return frozenset({kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "")})


def _argument_names(expression: ast.expr) -> frozenset[str]:
    """Return the names of exception classes among the arguments of a call such as `suppress(ImportError)`."""
    if not isinstance(expression, ast.Call):
        return frozenset()
    arguments = [*expression.args, *(keyword.value for keyword in expression.keywords)]
    return frozenset().union(*(_caught_names(item) for item in arguments if isinstance(item, (ast.Name, ast.Attribute, ast.Tuple))))
