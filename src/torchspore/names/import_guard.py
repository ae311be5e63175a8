"""Whether the program handles an ImportError of the import that runs now. Decided from the source of the frames on the stack."""
from __future__ import annotations

import ast
import linecache
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

_CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_OURS = str(Path(__file__).resolve().parents[1]) + "/"
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + "/"
_RUNNERS = tuple(f"/site-packages/{name}/" for name in ("_pytest", "pluggy", "IPython", "ipykernel", "nbclient", "xdist", "execnet"))

_handled_lines: dict[str, list[tuple[int, int]]] = {}
"""By file, the first and last lines of blocks whose ImportError the program handles."""


def is_guarded() -> bool:
    """Return whether a frame of the program would catch an ImportError raised now and go on without the import.

    A `try` whose handler ends by raising again does not count: it only changes the message. `with` blocks of `contextlib.suppress`,
    `pytest.raises` and the like count.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_program(frame.f_code.co_filename) and _handles(frame):
            return True
        frame = frame.f_back
    return False


def _is_program(filename: str) -> bool:
    if filename.startswith((_OURS, "<frozen ")) or any(part in filename for part in _RUNNERS):
        return False
    return not filename.startswith(_STANDARD_LIBRARY) or "/site-packages/" in filename


def _handles(frame: FrameType) -> bool:
    filename, line = frame.f_code.co_filename, frame.f_lineno
    if filename not in _handled_lines:
        source = "".join(linecache.getlines(filename, frame.f_globals))
        if not source:
            return _is_in_any_try(frame.f_code, frame.f_lasti)
        try:
            _handled_lines[filename] = list(_handled_blocks(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError):
            return _is_in_any_try(frame.f_code, frame.f_lasti)
    return any(first <= line <= last for first, last in _handled_lines[filename])


def _is_in_any_try(code: CodeType, offset: int) -> bool:
    """Return whether an instruction of code without source lies in a block with a handler, of whatever kind. Unknown before Python 3.11."""
    import dis

    parse = getattr(dis, "_parse_exception_table", None)
    return parse is not None and any(entry.start <= offset < entry.end for entry in parse(code))


def _handled_blocks(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        is_handled = (
            any(_catches_imports(handler.type) and not _raises_again(handler) for handler in node.handlers) if isinstance(node, ast.Try)
            else any(_expects_import_error(item.context_expr) for item in node.items) if isinstance(node, ast.With) else False
        )
        if is_handled:
            body = node.body  # type: ignore[attr-defined]
            yield body[0].lineno, body[-1].end_lineno


def _catches_imports(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    if isinstance(kind, ast.Tuple):
        return any(_catches_imports(item) for item in kind.elts)
    return (kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "")) in _CATCHING


def _raises_again(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def _expects_import_error(expression: ast.expr) -> bool:
    """Return whether `expression` is a call with an ImportError among its arguments, such as `suppress(ImportError)`."""
    if not isinstance(expression, ast.Call):
        return False
    arguments = [*expression.args, *(keyword.value for keyword in expression.keywords)]
    return any(_catches_imports(item) for item in arguments if isinstance(item, (ast.Name, ast.Attribute, ast.Tuple)))
