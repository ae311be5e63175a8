"""`torchspore check PATH...`: list the names that programs and notebooks use and torchspore lacks. Parses only; needs no torch."""
from __future__ import annotations

import ast
import bisect
import json
import os
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from torchspore.base.text import split_hint, with_hint
from torchspore.cli import check_formats
from torchspore.cli.check_formats import Finding
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.cli.program_analysis import notebooks
from torchspore.cli.program_analysis.calls import is_accepted, older_call_problems
from torchspore.cli.program_analysis.uses import GETTERS, SETTERS, Use, uses
from torchspore.translations import english, translatable, translate

MISSING = 1
SUFFIXES = (".py", notebooks.SUFFIX)
_UNREADABLE = (SyntaxError, ValueError, OSError, RecursionError, MemoryError)


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore check",
        description="Lists the MindSpore names and context options that Python files and notebooks use and that torchspore lacks, calls "
                    "with arguments of older MindSpore releases, and names that NumPy 2 removed. At the end, missing names are ranked by "
                    "the number of files that use them. The exit code is 1 if something is missing, otherwise 0.",
        examples=["torchspore check .", "torchspore check --format sarif src > check.sarif"],
    )
    command.add_argument("paths", nargs="+", metavar="PATH", help="a file, or a folder: every .py and .ipynb file below it")
    command.add_argument("--format", choices=("text", "json", "sarif", "github"), default="text",
                         help='text; json: {"files", "missing": [{"file", "cell", "line", "name", "text"}], "ranked": [{"name", "files"}], '
                              '"older": accepted calls in the spelling of older releases, as in "missing"}; sarif: SARIF 2.1.0; '
                              "github: annotations of a GitHub workflow")
    command.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command: check the paths in `words`, print what is missing, and return the exit code."""
    options = parser().parse_args(list(words))
    words = options.paths
    absent = [word for word in words if not os.path.exists(word)]
    if absent:
        text = translate("torchspore check {path}: no such file or folder (looked in {folder}).")
        return _refuse_path(text.format(path=absent[0], folder=Path.cwd()))
    odd = [word for word in words if not os.path.isfile(word) and not os.path.isdir(word)]
    if odd:
        return _refuse_path(translate("torchspore check {path}: not a regular file.").format(path=odd[0]))
    files = [file for word in words for file in program_files(Path(word))]
    with english(options.format in ("json", "sarif")):
        results = [finding for file in files for finding in report(file)]
    findings = [finding for finding in results if not finding.is_accepted]
    accepted = [finding for finding in results if finding.is_accepted]
    if options.format == "json":
        _print_json(findings, len(files), accepted)
    elif options.format == "sarif":
        print(check_formats.sarif(findings, accepted))
    elif options.format == "github":
        print("\n".join(check_formats.github_annotations(findings, accepted)))
    else:
        _print_accepted(accepted)
        _print(findings, len(files))
    return MISSING if findings else 0


def _refuse_path(text: str) -> int:
    print(with_hint(text, translate("write the path of a Python file or of a folder")), file=sys.stderr)
    return USAGE_ERROR


def rank_names(findings: Sequence[Finding]) -> list[tuple[str, int]]:
    """Return the missing names with the number of files that use them, the most used first."""
    users: dict[str, set[str]] = {}
    for finding in findings:
        users.setdefault(finding.name, set()).add(finding.file)
    return sorted(((name, len(files)) for name, files in users.items()), key=lambda item: (-item[1], item[0]))


def _print_accepted(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print(finding)
    if findings:
        text = (translate("{count} calls with arguments of older releases; torchspore runs them as the line says") if len(findings) > 1
                else translate("1 call with arguments of older releases; torchspore runs it as the line says"))
        print(f"\n{text.format(count=len(findings))}\n")


def _print(findings: Sequence[Finding], files: int) -> None:
    for finding in findings:
        print(finding)
    if not findings:
        print(translate("nothing is missing in {files}").format(files=_files(files)))
        return
    touched = len({finding.file for finding in findings})
    if touched > 1:
        print(f"\n{translate('missing, by the number of files that use it')}")
        for name, count in rank_names(findings):
            print(f"  {count:4} {translate(name)}")
    text = translate("{count} missing in {touched} of {files}")
    print(f"\n{text.format(count=len(findings), touched=touched, files=_files(files))}")


def _print_json(findings: Sequence[Finding], files: int, accepted: Sequence[Finding]) -> None:
    order = [{"name": name, "files": count} for name, count in rank_names(findings)]
    missing, older = ([_as_json(finding) for finding in group] for group in (findings, accepted))
    print(json.dumps({"files": files, "missing": missing, "ranked": order, **({"older": older} if older else {})}, indent=2))


def _as_json(finding: Finding) -> dict[str, object]:
    return {key: value for key, value in asdict(finding).items() if key != "is_accepted"}


def _files(count: int) -> str:
    return (translate("{count} file") if count == 1 else translate("{count} files")).format(count=count)


def program_files(path: Path) -> list[Path]:
    """Return the file itself, or every Python file and notebook below the folder that is not hidden, sorted."""
    if path.is_file():
        return [path]
    candidates = (file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}") if file.is_file())
    return sorted(file for file in candidates if not any(part.startswith(".") for part in file.relative_to(path).parts))


def report(file: Path) -> Iterator[Finding]:
    """Yield the names and options that `file` uses and torchspore lacks."""
    if file.suffix == notebooks.SUFFIX:
        yield from _notebook(file)
        return
    try:
        with tokenize.open(file) as stream:
            results = list(problems(ast.parse(stream.read(), str(file))))
    except _UNREADABLE as error:
        yield _unread(file, None, error)
        return
    for use, text in results:
        yield Finding(str(file), None, use.line, use.name, text, is_accepted(text))


def _notebook(file: Path) -> Iterator[Finding]:
    """Check the cells as one program, so that a name imported in one cell is known in the cells below."""
    try:
        cells = notebooks.cells(file)
    except notebooks.NotANotebook as error:
        yield Finding(str(file), None, 1, translatable("not a notebook"), str(error))
        return
    joined, starts = ast.Module([], []), [0]
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
                text = translate("{name} belongs to the notebook; torchspore runs only Python.").format(name=magic.name)
                yield Finding(str(file), cell.number, magic.line, magic.name, text)
        joined.body += [ast.increment_lineno(statement, starts[-1]) for statement in tree.body]
        starts.append(starts[-1] + cell.source.count("\n") + 1)
    for use, text in problems(joined):
        index = bisect.bisect_left(starts, use.line) - 1
        yield Finding(str(file), cells[index].number, use.line - starts[index], use.name, text, is_accepted(text))


def _unread(file: Path, cell: int | None, error: Exception) -> Finding:
    if isinstance(error, (OSError, RecursionError, MemoryError)):
        why = error.strerror if isinstance(error, OSError) else translate("it is nested too deeply")
        return Finding(str(file), cell, 1, translatable("not read"), translate("can't be read: {reason}").format(reason=why))
    text = translate("not Python 3: {problem}").format(problem=getattr(error, "msg", None) or error)
    return Finding(str(file), cell, getattr(error, "lineno", None) or 1, translatable("not Python 3"), text)


def problems(tree: ast.Module) -> Iterator[tuple[Use, str]]:
    """Yield the names and options of a parsed program that are missing here, then calls of older releases, each with a message."""
    for use in uses(tree):
        problem = option_problem(use) if use.function else name_problem(use)
        if problem:
            yield use, problem
    yield from older_call_problems(tree)


def name_problem(use: Use) -> str | None:
    """Return the one-line message for a name that is missing here; None if it is offered."""
    from torchspore.public_names.lookup import is_offered, text_for

    if is_offered(use.name):
        return None
    sentence, hint = split_hint(text_for(use.name))
    return translate("{sentence} {hint}").format(sentence=sentence, hint=hint[0].upper() + hint[1:]) if hint else sentence


def option_problem(use: Use) -> str | None:
    """Return the one-line message for a context option that does not exist; None if it does."""
    from torchspore.base.suggest import closest
    from torchspore.context.options import names_of

    names = names_of({**SETTERS, **GETTERS}[use.function or ""])
    if use.name in names:
        return None
    near = closest(use.name, names)
    call = f"{use.function}({use.name}=…)" if use.function in SETTERS else f"{use.function}({use.name!r})"
    text = translate("{command}: no such option.").format(command=call)
    return text + (translate(" The nearest is {near}.").format(near=near) if near else "")
