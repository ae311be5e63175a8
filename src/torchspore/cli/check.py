"""`torchspore check PATH…`: lists what programs and notebooks use and torchspore lacks. Parses them, runs nothing, needs no torch."""
from __future__ import annotations

import ast
import bisect
import json
import os
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from torchspore.base.text import with_hint
from torchspore.cli import notebooks
from torchspore.cli.uses import GETTERS, SETTERS, Use, uses

USAGE = """usage: torchspore check [--json] PATH …

Lists the MindSpore names and context options that Python files and notebooks use and that torchspore lacks.
A folder stands for every .py and .ipynb file below it. What is missing is ranked at the end by how many files use it.
The exit code is 1 where something is missing, else 0.

  --json          prints {"files", "missing": [{"file", "cell", "line", "name", "text"}], "ranked": [{"name", "files"}]}
"""
MISSING = 1
USAGE_ERROR = 2
SUFFIXES = (".py", notebooks.SUFFIX)
_UNREADABLE = (SyntaxError, ValueError, OSError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Finding:
    """One thing that a file uses and torchspore lacks; `cell` is the number of a notebook's cell."""

    file: str
    cell: int | None
    line: int
    name: str
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.cell is None else f"{self.file}, cell {self.cell}, line {self.line}"
        return f"{place}: {self.text}"


def run(words: Sequence[str]) -> int:
    """The command: checks the paths in `words`, prints what is missing, and gives the exit code."""
    if words and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    if not words:
        print(with_hint("torchspore check: expected a file or a folder.", "write `torchspore check .`"), file=sys.stderr)
        return USAGE_ERROR
    absent = [word for word in words if not os.path.exists(word)]
    if absent:
        text = f"torchspore check {absent[0]}: no such file or folder (looked in {Path.cwd()})."
        print(with_hint(text, "write the path of a Python file or of a folder"), file=sys.stderr)
        return USAGE_ERROR
    odd = [word for word in words if not os.path.isfile(word) and not os.path.isdir(word)]
    if odd:
        print(with_hint(f"torchspore check {odd[0]}: no plain file.", "write the path of a Python file or of a folder"), file=sys.stderr)
        return USAGE_ERROR
    files = [file for word in words for file in program_files(Path(word))]
    found = [finding for file in files for finding in report(file)]
    if as_json:
        _print_json(found, len(files))
    else:
        _print(found, len(files))
    return MISSING if found else 0


def ranked(found: Sequence[Finding]) -> list[tuple[str, int]]:
    """What is missing, that of the most files first."""
    users: dict[str, set[str]] = {}
    for finding in found:
        users.setdefault(finding.name, set()).add(finding.file)
    return sorted(((name, len(files)) for name, files in users.items()), key=lambda item: (-item[1], item[0]))


def _print(found: Sequence[Finding], files: int) -> None:
    for finding in found:
        print(finding)
    if not found:
        print(f"nothing is missing in {files} {_files(files)}")
        return
    touched = len({finding.file for finding in found})
    if touched > 1:
        print("\nmissing, by the number of files that use it")
        for name, count in ranked(found):
            print(f"  {count:4} {name}")
    print(f"\n{len(found)} missing in {touched} of {files} {_files(files)}")


def _print_json(found: Sequence[Finding], files: int) -> None:
    order = [{"name": name, "files": count} for name, count in ranked(found)]
    print(json.dumps({"files": files, "missing": [asdict(finding) for finding in found], "ranked": order}, indent=2))


def _files(count: int) -> str:
    return "file" if count == 1 else "files"


def program_files(path: Path) -> list[Path]:
    """The file itself, or every Python file and notebook below the folder that is no hidden one, sorted."""
    if path.is_file():
        return [path]
    found = (file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}") if file.is_file())
    return sorted(file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))


def report(file: Path) -> Iterator[Finding]:
    """What `file` uses and torchspore lacks."""
    if file.suffix == notebooks.SUFFIX:
        yield from _notebook(file)
        return
    try:
        with tokenize.open(file) as stream:
            found = list(problems(ast.parse(stream.read(), str(file))))
    except _UNREADABLE as error:
        yield _unread(file, None, error)
        return
    for use, text in found:
        yield Finding(str(file), None, use.line, use.name, text)


def _notebook(file: Path) -> Iterator[Finding]:
    """The cells are read as one program, so that a name that one imports is known in those below it."""
    try:
        cells = notebooks.cells(file)
    except notebooks.NotANotebook as error:
        yield Finding(str(file), None, 1, "not a notebook", str(error))
        return
    whole, starts = ast.Module([], []), [0]
    for cell in cells:
        tree = ast.Module([], [])
        try:
            tree = ast.parse(cell.source)
            list(problems(tree))
        except _UNREADABLE as error:
            tree = ast.Module([], [])
            yield _unread(file, cell.number, error)
        for magic in cell.refused:
            if not magic.name.startswith("!pip"):
                text = f"{magic.name} is the notebook's own; torchspore runs Python alone."
                yield Finding(str(file), cell.number, magic.line, magic.name, text)
        whole.body += [ast.increment_lineno(statement, starts[-1]) for statement in tree.body]
        starts.append(starts[-1] + cell.source.count("\n") + 1)
    for use, text in problems(whole):
        place = bisect.bisect_left(starts, use.line) - 1
        yield Finding(str(file), cells[place].number, use.line - starts[place], use.name, text)


def _unread(file: Path, cell: int | None, error: Exception) -> Finding:
    if isinstance(error, (OSError, RecursionError, MemoryError)):
        why = error.strerror if isinstance(error, OSError) else "it nests too deep"
        return Finding(str(file), cell, 1, "not read", f"can't be read: {why}")
    text = f"not Python 3: {getattr(error, 'msg', None) or error}"
    return Finding(str(file), cell, getattr(error, "lineno", None) or 1, "not Python 3", text)


def problems(tree: ast.Module) -> Iterator[tuple[Use, str]]:
    """What a parsed program uses that is missing here, and what is said of it."""
    for use in uses(tree):
        problem = option_problem(use) if use.function else name_problem(use)
        if problem:
            yield use, problem


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
