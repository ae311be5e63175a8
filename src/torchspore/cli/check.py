"""`torchspore check PATH…`: lists what programs use and torchspore lacks. Parses them, runs nothing, needs no torch."""
from __future__ import annotations

import ast
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchspore.base.text import with_hint
from torchspore.cli.uses import GETTERS, SETTERS, Use, uses

USAGE = """usage: torchspore check PATH …

Lists the MindSpore names and context options that Python files use and that torchspore lacks.
A folder stands for every .py file below it. The exit code is 1 where something is missing, else 0.
"""
MISSING = 1
USAGE_ERROR = 2


def run(words: Sequence[str]) -> int:
    """The command: checks the paths in `words`, prints what is missing, and gives the exit code."""
    if words and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if not words:
        print(with_hint("torchspore check: expected a file or a folder.", "write `torchspore check .`"), file=sys.stderr)
        return USAGE_ERROR
    absent = [word for word in words if not Path(word).exists()]
    if absent:
        text = f"torchspore check {absent[0]}: no such file or folder (looked in {Path.cwd()})."
        print(with_hint(text, "write the path of a Python file or of a folder"), file=sys.stderr)
        return USAGE_ERROR
    files = [file for word in words for file in python_files(Path(word))]
    count, touched = 0, 0
    for file in files:
        lines = list(report(file))
        count, touched = count + len(lines), touched + bool(lines)
        for line in lines:
            print(line)
    if count:
        print(f"\n{count} missing in {touched} of {len(files)} {_files(len(files))}")
        return MISSING
    print(f"nothing is missing in {len(files)} {_files(len(files))}")
    return 0


def _files(count: int) -> str:
    return "file" if count == 1 else "files"


def python_files(path: Path) -> list[Path]:
    """The file itself, or every .py file below the folder that is no hidden one, sorted."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*.py") if not any(part.startswith(".") for part in file.relative_to(path).parts))


def report(file: Path) -> Iterator[str]:
    """A line for each thing that `file` uses and torchspore lacks."""
    try:
        with tokenize.open(file) as stream:
            tree = ast.parse(stream.read(), str(file))
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        yield f"{file}:{getattr(error, 'lineno', None) or 1}: not Python 3: {getattr(error, 'msg', None) or error}"
        return
    for use in uses(tree):
        problem = option_problem(use) if use.function else name_problem(use)
        if problem:
            yield f"{file}:{use.line}: {problem}"


def name_problem(use: Use) -> str | None:
    """What is said of a name that is missing here, on one line; None where it is offered."""
    from torchspore.names.lookup import is_offered, text_for

    return None if is_offered(use.name) else text_for(use.name).replace("\n\nhint: the", " The")


def option_problem(use: Use) -> str | None:
    """What is said of a context option that does not exist, on one line; None where it does."""
    from torchspore.base.suggest import closest
    from torchspore.context.options import names_of

    known = names_of({**SETTERS, **GETTERS}[use.function or ""])
    if use.name in known:
        return None
    near = closest(use.name, known)
    written = f"{use.function}({use.name}=…)" if use.function in SETTERS else f"{use.function}({use.name!r})"
    return f"{written}: no such option." + (f" The nearest is {near}." if near else "")
