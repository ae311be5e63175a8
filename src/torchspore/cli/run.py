"""`torchspore run`: run a program as Python would, with `import mindspore` answered by torchspore."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchspore.base.suggest import VERY_NEAR, closest
from torchspore.base.text import with_hint
from torchspore.cli import notebooks

USAGE = """usage: torchspore run [--device CPU|GPU|Ascend] [--explain] [--lenient | --strict-imports] [--report DIR] [--simulate N]
                      (script.py | nb.ipynb | -m module | -c code) [words …]

Runs a MindSpore program on PyTorch, unchanged.

  --device NAME   the device of the whole program, overriding its own choice (the same as TORCHSPORE_DEVICE=NAME)
    --explain       prints at the end what each context option did
    --report DIR    writes DIR/report.html: what each option did, the loss of each step, time, memory, versions
    --simulate N    this process simulates N devices: split work runs here, with the numbers of each device (TORCHSPORE_SIMULATE=N)
  --lenient       imports of missing MindSpore names always succeed, and the first use raises; without this option an import
                  inside a `try` that catches ImportError raises
  --strict-imports  imports of missing MindSpore names always raise

A notebook's cells run in order, in its folder; an error names the cell and its line. Shell commands in it are refused.
"""
EXPLAIN = """usage: torchspore explain [--device CPU|GPU|Ascend] (script.py | notebook.ipynb | -m module | -c code) [arguments …]

Runs the program as `torchspore run` does, then prints each option that was set or that acted: its value, where the value came from,
and its outcome; and for each data pipeline which side waited.
"""
OPTIONS = ("--device", "--explain", "--lenient", "--report", "--simulate", "--strict-imports")
DEVICES = ("CPU", "GPU", "Ascend")
USAGE_ERROR = 2


class UsageError(Exception):
    """A command line that can't be run; its text is the complete message."""


@dataclass(frozen=True)
class Request:
    """A parsed command line. Exactly one of `script`, `module` and `code` is set; `arguments` are passed to the program."""

    script: str | None = None
    module: str | None = None
    code: str | None = None
    arguments: tuple[str, ...] = ()
    device: str | None = None
    explain: bool = False
    lenient: bool = False
    strict_imports: bool = False
    report: str | None = None
    simulate: str | None = None


def parse(words: Sequence[str]) -> Request:
    """Parse the words of `torchspore run` up to the program; the words after it belong to the program, as with `python`."""
    request, remaining = Request(), list(words)
    while remaining:
        word = remaining.pop(0)
        if word in ("--explain", "--lenient", "--strict-imports"):
            request = replace(request, **{word[2:].replace("-", "_"): True})
        elif word == "--device" or word.startswith("--device="):
            name = word.partition("=")[2] if "=" in word else _next(remaining, "--device", "a device: CPU, GPU or Ascend")
            request = replace(request, device=_device(name))
        elif word == "--report" or word.startswith("--report="):
            request = replace(request, report=word.partition("=")[2] if "=" in word else _next(remaining, "--report", "a folder"))
        elif word == "--simulate" or word.startswith("--simulate="):
            count = word.partition("=")[2] if "=" in word else _next(remaining, "--simulate", "a number")
            request = replace(request, simulate=_count(count))
        elif word == "-m":
            return replace(request, module=_next(remaining, "-m", "the name of a module"), arguments=tuple(remaining))
        elif word == "-c":
            return replace(request, code=_next(remaining, "-c", "a program"), arguments=tuple(remaining))
        elif word.startswith("-") and word != "-":
            near = closest(word, OPTIONS, VERY_NEAR)
            hint = f"write {near}" if near else "write the program's own options after its name"
            raise UsageError(with_hint(f"torchspore run {word}: no such option.", hint))
        else:
            return replace(request, script=word, arguments=tuple(remaining))
    raise UsageError(with_hint("torchspore run: expected a program.", "write `torchspore run train.py`"))


def _count(text: str) -> str:
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise UsageError(with_hint(f"torchspore run --simulate {text}: expected a number of devices from 1 to 4096.", "write --simulate 8"))
    return text


def _next(remaining: list[str], option: str, expected: str) -> str:
    if not remaining:
        raise UsageError(f"torchspore run {option}: expected {expected} after it.")
    return remaining.pop(0)


def _device(word: str) -> str:
    for device in DEVICES:
        if word.lower() == device.lower():
            return device
    raise UsageError(with_hint(f"torchspore run --device {word}: expected CPU, GPU or Ascend.", "write `--device CPU`"))


def run(words: Sequence[str]) -> int:
    """Run the program that `words` name and return its exit code."""
    if words and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if list(words) == ["--explain"] or words[:2] in (["--explain", "-h"], ["--explain", "--help"]):
        print(EXPLAIN, end="")
        return 0 if len(words) > 1 else USAGE_ERROR
    try:
        request = parse(words)
        if request.script is not None:
            check_exists(request.script)
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    if request.device is not None:
        os.environ["TORCHSPORE_DEVICE"] = request.device
    if request.simulate is not None:
        os.environ["TORCHSPORE_SIMULATE"] = request.simulate
    if request.lenient:
        os.environ["TORCHSPORE_LENIENT"] = "1"
    if request.strict_imports:
        os.environ["TORCHSPORE_STRICT_IMPORTS"] = "1"
    if request.explain:
        from torchspore.context import effects

        effects.expect_explain()
    from torchspore.cli import program

    if request.report is None:
        code = _execute(request)
    else:
        from torchspore.cli.report import Report

        report = Report(request.report, list(words))
        try:
            report.begin()
        except OSError as error:
            text = f"torchspore run --report {request.report}: the folder can't be created ({error.strerror})."
            print(with_hint(text, "name another folder"), file=sys.stderr)
            return USAGE_ERROR
        code = _execute(request)
        report.end(code, program.RUN.last_error)
    if request.explain:
        from torchspore.cli import explain
        from torchspore.context import effects

        effects.complete_outcomes()
        explain.show()
    return code


def _execute(request: Request) -> int:
    """Run the requested program; return its exit code."""
    from torchspore.cli import program

    if request.script is not None and request.script.endswith(notebooks.SUFFIX):
        return program.execute_notebook(request.script, request.arguments)
    if request.script is not None:
        return program.execute(request.script, request.arguments)
    if request.module is not None:
        return program.execute_module(request.module, request.arguments)
    return program.execute_code(request.code or "", request.arguments)


def check_exists(script: str) -> None:
    """Refuse a script that does not exist, before anything is imported."""
    path = Path(script)
    if os.path.isdir(script):        # unlike Path.is_dir, False for an impossible file name
        if (path / "__main__.py").exists():
            return
        raise UsageError(with_hint(f"torchspore run {script}: a folder without __main__.py.", "name the program's file"))
    if not os.path.exists(script):
        raise UsageError(with_hint(f"torchspore run {script}: no such file (looked in {Path.cwd()}).", _nearby(path)))
    if path.suffix == notebooks.SUFFIX:
        try:
            notebooks.cells(path)
        except notebooks.NotANotebook as error:
            raise UsageError(f"torchspore run {script}: {error}.") from None


def _nearby(path: Path) -> str:
    """Return a hint for a script that does not exist: a similar file in the folder, or the command for a module."""
    siblings = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
    near = closest(path.name, siblings)
    if near:
        return f"write `torchspore run {path.parent / near}`"
    return "write the path of a Python file, or `-m` before the name of a module"
