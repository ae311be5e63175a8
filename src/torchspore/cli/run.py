"""`torchspore run`: run a program as Python would, with `import mindspore` answered by torchspore."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchspore.base.suggest import closest
from torchspore.base.text import with_hint
from torchspore.cli.grammar import USAGE_ERROR, Ended, Parser, UsageError, number, split_program, word_of
from torchspore.cli.program_analysis import notebooks
from torchspore.translations import translate

DEVICES = ("CPU", "GPU", "Ascend")


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


def parser(prog: str = "torchspore run") -> Parser:
    """Return the parser of `torchspore run`, and of `torchspore explain`."""
    description = "Runs a MindSpore program on PyTorch, unchanged."
    if prog.endswith("explain"):
        description += (" Then prints each option that was set or that acted: its value, where the value came from, and its outcome; "
                        "and for each data pipeline which side waited.")
    description += " The cells of a notebook run in order, in its folder; its shell commands are refused."
    command = Parser(
        prog=prog, description=description, runs_program=True,
        examples=[f"{prog} train.py", f"{prog} --device CPU -m package.train --epochs 3"],
        hints={"--device": "write `--device CPU`", "--simulate": "write --simulate 8", "--report": "write --report report"},
    )
    command.add_argument("--device", type=word_of(*DEVICES), metavar="NAME",
                         help="the device of the program, CPU, GPU or Ascend, overriding its own choice (TORCHSPORE_DEVICE)")
    if not prog.endswith("explain"):
        command.add_argument("--explain", action="store_true", help="prints at the end what each context option did")
    command.add_argument("--report", metavar="DIR",
                         help="writes DIR/report.html: what each option did, the loss of each step, time, memory, versions")
    command.add_argument("--simulate", type=number(1, 4096), metavar="N",
                         help="this process simulates N devices: split work runs here, with the numbers of each (TORCHSPORE_SIMULATE)")
    command.add_argument("--lenient", action="store_true",
                         help="imports of missing MindSpore names always succeed, and the first use raises; without this option an import "
                              "inside a `try` that catches ImportError raises")
    command.add_argument("--strict-imports", action="store_true", help="imports of missing MindSpore names always raise")
    return command


def parse(words: Sequence[str], prog: str = "torchspore run") -> Request:
    """Parse the words of `torchspore run` up to the program; the words after it belong to the program, as with `python`.

    Raises UsageError without a program, SystemExit for a wrong option, whose message is on stderr.
    """
    options, program = split_program(parser(prog), words)
    request = Request(device=options.device, explain=getattr(options, "explain", True), lenient=options.lenient,
                      strict_imports=options.strict_imports, report=options.report,
                      simulate=None if options.simulate is None else str(options.simulate))
    if not program:
        raise UsageError(with_hint(translate("{command}: expected a program.").format(command=prog), _write(f"{prog} train.py")))
    first, *arguments = program
    if first not in ("-m", "-c"):
        return replace(request, script=first, arguments=tuple(arguments))
    if not arguments:
        expected, example = (
            (translate("the name of a module"), "-m package.train") if first == "-m" else (translate("a program"), "-c 'import mindspore'"))
        text = translate("{command}: expected {expected} after it.").format(command=f"{prog} {first}", expected=expected)
        raise UsageError(with_hint(text, _write(f"{prog} {example}")))
    if first == "-m":
        return replace(request, module=arguments[0], arguments=tuple(arguments[1:]))
    return replace(request, code=arguments[0], arguments=tuple(arguments[1:]))


def explain(words: Sequence[str]) -> int:
    """Run the program that `words` name, print the outcomes of the options, and return the program's exit code.

    Graphs of O1 and O2 wait for their compiler, because a short program would end before the report knows their forms.
    """
    os.environ.setdefault("TORCHSPORE_WAIT", "1")
    return run(words, "torchspore explain")


def run(words: Sequence[str], prog: str = "torchspore run") -> int:
    """Run the program that `words` name and return its exit code."""
    try:
        request = parse(words, prog)
        if request.script is not None:
            check_exists(request.script)
    except Ended as ended:
        return int(ended.code or 0)
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
            text = translate("torchspore run --report {folder}: the folder can't be created ({reason}).")
            text = text.format(folder=request.report, reason=error.strerror)
            print(with_hint(text, translate("name another folder")), file=sys.stderr)
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
        text = translate("torchspore run {path}: a folder without __main__.py.").format(path=script)
        raise UsageError(with_hint(text, translate("name the program's file")))
    if not os.path.exists(script):
        text = translate("torchspore run {path}: no such file (looked in {folder}).").format(path=script, folder=Path.cwd())
        raise UsageError(with_hint(text, _nearby(path)))
    if path.suffix == notebooks.SUFFIX:
        try:
            notebooks.cells(path)
        except notebooks.NotANotebook as error:
            raise UsageError(translate("{setting}: {reason}.").format(setting=f"torchspore run {script}", reason=error)) from None


def _nearby(path: Path) -> str:
    """Return a hint for a script that does not exist: a similar file in the folder, or the command for a module."""
    siblings = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
    near = closest(path.name, siblings)
    if near:
        return _write(f"torchspore run {path.parent / near}")
    return translate("write the path of a Python file, or `-m` before the name of a module")


def _write(command: str) -> str:
    return translate("write `{command}`").format(command=command)
