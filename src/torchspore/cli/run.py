"""`torchspore run`: runs a program as Python would, with `import mindspore` answered by torchspore."""
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

  --device NAME   the device of the whole program, whatever it asks for itself (the same as TORCHSPORE_DEVICE=NAME)
  --explain       prints at the end what each context option did
  --report DIR    writes DIR/report.html: what each option did, the loss of each step, time, memory, versions
  --simulate N    this process stands for N devices: what is split over them runs here, with the numbers of each (TORCHSPORE_SIMULATE=N)
  --lenient       imports of missing MindSpore names always succeed, and the first use raises; without this option an import
                  inside a `try` that catches ImportError raises
  --strict-imports  imports of missing MindSpore names always raise

A notebook's cells run in their order, in its folder; an error names the cell and its line. What it hands to a shell is refused.
"""
EXPLAIN = """usage: torchspore explain [--device CPU|GPU|Ascend] (script.py | notebook.ipynb | -m module | -c code) [arguments …]

Runs the program as `torchspore run` does, then prints each option that was set or that acted: its value, where the value came from,
and what came of it here; and of each data pipeline who waited for whom.
"""
OPTIONS = ("--device", "--explain", "--lenient", "--report", "--simulate", "--strict-imports")
DEVICES = ("CPU", "GPU", "Ascend")
USAGE_ERROR = 2


class UsageError(Exception):
    """What was written on the command line and can't be run; its text is the whole message."""


@dataclass(frozen=True)
class Request:
    """A parsed command line. Exactly one of `script`, `module` and `code` is set; `arguments` are the program's own."""

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
    """Reads `torchspore run`'s words up to the program; what follows is the program's own, as with `python`."""
    asked, rest = Request(), list(words)
    while rest:
        word = rest.pop(0)
        if word in ("--explain", "--lenient", "--strict-imports"):
            asked = replace(asked, **{word[2:].replace("-", "_"): True})
        elif word == "--device" or word.startswith("--device="):
            name = word.partition("=")[2] if "=" in word else _next(rest, "--device", "a device: CPU, GPU or Ascend")
            asked = replace(asked, device=_device(name))
        elif word == "--report" or word.startswith("--report="):
            asked = replace(asked, report=word.partition("=")[2] if "=" in word else _next(rest, "--report", "a folder"))
        elif word == "--simulate" or word.startswith("--simulate="):
            asked = replace(asked, simulate=_count(word.partition("=")[2] if "=" in word else _next(rest, "--simulate", "a number")))
        elif word == "-m":
            return replace(asked, module=_next(rest, "-m", "the name of a module"), arguments=tuple(rest))
        elif word == "-c":
            return replace(asked, code=_next(rest, "-c", "a program"), arguments=tuple(rest))
        elif word.startswith("-") and word != "-":
            near = closest(word, OPTIONS, VERY_NEAR)
            hint = f"write {near}" if near else "write the program's own options after its name"
            raise UsageError(with_hint(f"torchspore run {word}: no such option.", hint))
        else:
            return replace(asked, script=word, arguments=tuple(rest))
    raise UsageError(with_hint("torchspore run: expected a program.", "write `torchspore run train.py`"))


def _count(text: str) -> str:
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise UsageError(with_hint(f"torchspore run --simulate {text}: expected a number of devices from 1 to 4096.", "write --simulate 8"))
    return text


def _next(rest: list[str], option: str, expected: str) -> str:
    if not rest:
        raise UsageError(f"torchspore run {option}: expected {expected} after it.")
    return rest.pop(0)


def _device(word: str) -> str:
    for device in DEVICES:
        if word.lower() == device.lower():
            return device
    raise UsageError(with_hint(f"torchspore run --device {word}: expected CPU, GPU or Ascend.", "write `--device CPU`"))


def run(words: Sequence[str]) -> int:
    """The command: runs the program that `words` name and gives its exit code."""
    if words and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if list(words) == ["--explain"] or words[:2] in (["--explain", "-h"], ["--explain", "--help"]):
        print(EXPLAIN, end="")
        return 0 if len(words) > 1 else USAGE_ERROR
    try:
        request = parse(words)
        if request.script is not None:
            _check_exists(request.script)
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
        code = _executed(request)
    else:
        from torchspore.cli.report import Report

        report = Report(request.report, list(words))
        try:
            report.begin()
        except OSError as error:
            text = f"torchspore run --report {request.report}: the folder can't be made ({error.strerror})."
            print(with_hint(text, "name another folder"), file=sys.stderr)
            return USAGE_ERROR
        code = _executed(request)
        report.end(code, program.last_error)
    if request.explain:
        from torchspore.cli import explain
        from torchspore.context import effects

        effects.complete_outcomes()
        explain.show()
    return code


def _executed(request: Request) -> int:
    """Runs what was asked for; gives its exit code."""
    from torchspore.cli import program

    if request.script is not None and request.script.endswith(notebooks.SUFFIX):
        return program.execute_notebook(request.script, request.arguments)
    if request.script is not None:
        return program.execute(request.script, request.arguments)
    if request.module is not None:
        return program.execute_module(request.module, request.arguments)
    return program.execute_code(request.code or "", request.arguments)


def _check_exists(script: str) -> None:
    """Refuses a script that is not there, before anything is imported."""
    path = Path(script)
    if os.path.isdir(script):        # unlike Path.is_dir, False for a name that no file can have
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
    """A hint for a script that does not exist: a similar file beside it, or the command for a module."""
    beside = [found.name for found in path.parent.glob("*.py")] if path.parent.is_dir() else []
    near = closest(path.name, beside)
    if near:
        return f"write `torchspore run {path.parent / near}`"
    return "write the path of a Python file, or `-m` before the name of a module"
