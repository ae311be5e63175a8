"""Run a user's program in this process as `python` would: as `__main__`, with its own sys.argv and sys.path[0]."""
from __future__ import annotations

import ast
import builtins
import io
import linecache
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

import torchspore
from torchspore import alias
from torchspore.base import faults, tracebacks
from torchspore.base.frames import keep_source
from torchspore.base.text import with_hint
from torchspore.cli import output
from torchspore.cli.program_analysis import notebooks
from torchspore.public_names import numpy_removals
from torchspore.translations import translatable, translate

REFUSED = 2
INTERRUPTED = 128 + signal.SIGINT


class _Run:
    """The end of the program."""

    def __init__(self) -> None:
        self.last_error: BaseException | None = None
        """The exception that ended the last program; None after a normal end or sys.exit."""


RUN = _Run()
_HINT = translatable("this may be a bug in torchspore: `torchspore env` prints what a report needs")
_RUNNER = (str(Path(__file__).resolve()), "<frozen ", runpy.__file__)


def execute(script: str, arguments: Sequence[str] = ()) -> int:
    """Run the file `script` (or a folder or zip file with `__main__.py`) and return the exit code."""
    path = Path(script)
    if path.is_dir() or path.suffix in (".zip", ".pyz"):
        return _run_guarded(lambda: runpy.run_path(script, run_name="__main__"), [script, *arguments], str(path))

    def body() -> None:
        with io.open_code(str(path)) as file:
            source = file.read()
        keep_source(script)
        _as_main(compile(source, script, "exec", dont_inherit=True), script)

    return _run_guarded(body, [script, *arguments], str(path.resolve().parent))


def execute_module(module: str, arguments: Sequence[str] = ()) -> int:
    """Run the module as `python -m module` would and return the exit code."""
    return _run_guarded(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True), [module, *arguments], os.getcwd())


def execute_code(code: str, arguments: Sequence[str] = ()) -> int:
    """Run the text `code` as `python -c code` would and return the exit code."""
    return _run_guarded(lambda: _as_main(compile(code, "<string>", "exec", dont_inherit=True), None), ["-c", *arguments], "")


def execute_notebook(script: str, arguments: Sequence[str] = ()) -> int:
    """Run the cells of a notebook in order, in its folder as Jupyter does, and return the exit code."""
    cells = notebooks.cells(Path(script))
    refused = [(cell, magic) for cell in cells for magic in cell.refused]
    if refused:
        cell, magic = refused[0]
        more = translate(" ({count} more below it)").format(count=len(refused) - 1) if len(refused) > 1 else ""
        text = translate("{file}, cell {cell}, line {line}: {name} belongs to the notebook; torchspore runs only Python{more}.")
        text = text.format(file=script, cell=cell.number, line=magic.line, name=magic.name, more=more)
        print(with_hint(text, translate("remove that line, and do its work before the run")), file=sys.stderr)
        return REFUSED
    folder = str(Path(script).resolve().parent)

    def body() -> None:
        os.chdir(folder)
        main = _new_main(None)
        vars(main).setdefault("display", print)
        for cell in cells:
            _run_cell(cell.source, f"{script}, cell {cell.number}", vars(main))

    return _run_guarded(body, [script, *arguments], folder)


def _run_cell(source: str, name: str, scope: dict[str, object]) -> None:
    """Run one cell; print the value of an expression at its end, as a notebook does."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    last_expression = [tree.body.pop()] if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";") else []
    exec(compile(tree, name, "exec", dont_inherit=True), scope)
    if last_expression:
        exec(compile(ast.Interactive(last_expression), name, "single", dont_inherit=True), scope)


def _new_main(path: str | None) -> ModuleType:
    """Create a module `__main__`, which remains after the program's end: pickles and atexit functions need it."""
    main = ModuleType("__main__")
    vars(main)["__builtins__"] = builtins
    if path is not None:
        main.__file__ = path
    sys.modules["__main__"] = main
    return main


def _as_main(code: CodeType, path: str | None) -> None:
    """Run `code` as the module `__main__`."""
    exec(code, vars(_new_main(path)))


def _run_guarded(body: Callable[[], object], argv: list[str], first_path: str) -> int:
    """Run `body` with the program's sys.argv and sys.path[0], and convert its outcome to an exit code."""
    torchspore.install()
    faults.has_runner = True
    sys.argv = argv
    sys.path[:0] = [first_path, str(alias.SHIM)]
    try:
        body()
    except SystemExit as error:
        faults.notify_of_exit(error)
        return _exit_code(error)
    except KeyboardInterrupt as error:
        _flush()
        print(translate("interrupted at {line}").format(line=last_line(error.__traceback__)), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError as error:
        if not output.has_lost_reader():
            return _report(error)
        return output.discard()
    except BaseException as error:
        return _report(error)
    _flush()
    return 0


def _report(error: BaseException) -> int:
    """Print the error with which the program ended. Return the exit code."""
    RUN.last_error = error
    _flush()
    faults.notify(error)
    _show(error)
    return 1


def _flush() -> None:
    """Flush the program's output, so that it precedes our own text."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _exit_code(error: SystemExit) -> int:
    """Return the exit code of sys.exit(...) as Python interprets it: a text is printed and means 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Print the error's traceback without this runner's frames before the user's first line.

    If torchspore raised the error deliberately, only the user's lines are shown: the frames inside torchspore explain nothing.
    """
    is_refusal = tracebacks.is_refusal(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_RUNNER):
        trace = trace.tb_next
    error.__traceback__ = trace
    tracebacks.shorten(error)
    is_default_hook = sys.excepthook is sys.__excepthook__ and not tracebacks.shows_all_frames()
    from torchspore.public_names import older_calls

    hint = (numpy_removals.hint(error) or older_calls.hint(error)) if is_default_hook and not is_refusal else None
    if hint is not None:
        print(with_hint("".join(traceback.format_exception(error)).rstrip("\n"), hint), file=sys.stderr)
    elif is_refusal and is_default_hook:
        print(tracebacks.brief(error), end="", file=sys.stderr)
    elif is_default_hook and (text := tracebacks.fold(error)) is not None:
        print(with_hint(text.rstrip("\n"), translate(_HINT)) if tracebacks.is_a_fault(error) else text.rstrip("\n"), file=sys.stderr)
    else:
        sys.excepthook(type(error), error, error.__traceback__)


def last_line(trace: TracebackType | None) -> str:
    """Return `file:line` of the innermost user line at the interrupt."""
    from torchspore.base.frames import is_user_file

    lines = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(trace) if is_user_file(frame.filename)]
    return lines[-1] if lines else translate("its start")
