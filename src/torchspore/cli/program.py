"""Runs a user's program in this process as `python` would: as `__main__`, with its own sys.argv and sys.path[0]."""
from __future__ import annotations

import builtins
import io
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
from torchspore.errors import TorchsporeError

INTERRUPTED = 128 + signal.SIGINT
_RUNNER = (str(Path(__file__).resolve()), "<frozen ", runpy.__file__)
_PACKAGE = (str(Path(torchspore.__file__).resolve().parent) + os.sep, "<frozen importlib")


def execute(script: str, arguments: Sequence[str] = ()) -> int:
    """Runs the file `script` (or a folder or zip file with `__main__.py`) and gives the exit code."""
    path = Path(script)
    if path.is_dir() or path.suffix in (".zip", ".pyz"):
        return _guarded(lambda: runpy.run_path(script, run_name="__main__"), [script, *arguments], str(path))

    def body() -> None:
        with io.open_code(str(path)) as file:
            source = file.read()
        _as_main(compile(source, script, "exec", dont_inherit=True), script)

    return _guarded(body, [script, *arguments], str(path.resolve().parent))


def execute_module(module: str, arguments: Sequence[str] = ()) -> int:
    """Runs the module as `python -m module` would and gives the exit code."""
    return _guarded(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True), [module, *arguments], os.getcwd())


def execute_code(code: str, arguments: Sequence[str] = ()) -> int:
    """Runs the text `code` as `python -c code` would and gives the exit code."""
    return _guarded(lambda: _as_main(compile(code, "<string>", "exec", dont_inherit=True), None), ["-c", *arguments], "")


def _as_main(code: CodeType, path: str | None) -> None:
    """Runs `code` as the module `__main__`, which stays after its end: what it pickles or hands to atexit finds it."""
    main = ModuleType("__main__")
    vars(main)["__builtins__"] = builtins
    if path is not None:
        main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, vars(main))


def _guarded(body: Callable[[], object], argv: list[str], first_path: str) -> int:
    """Runs `body` with the program's sys.argv and sys.path[0], and turns how it ends into an exit code."""
    torchspore.install()
    sys.argv = argv
    sys.path[:0] = [first_path, str(alias.SHIM)]
    try:
        body()
    except SystemExit as error:
        return _exit_code(error)
    except KeyboardInterrupt as error:
        _flush()
        print(f"interrupted at {_last_line(error.__traceback__)}", file=sys.stderr)
        return INTERRUPTED
    except BaseException as error:
        _flush()
        error.__traceback__ = _own_removed(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    _flush()
    return 0


def _flush() -> None:
    """Writes out what the program printed, so that it stands before our own text."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _exit_code(error: SystemExit) -> int:
    """The exit code of sys.exit(…), as Python understands it: a text is printed and means 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _own_removed(error: BaseException) -> TracebackType | None:
    """The error's traceback without this runner's frames before the user's first line.

    Where torchspore itself refuses something, it ends at the user's last line: the way to the refusal explains nothing.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_RUNNER):
        trace = trace.tb_next
    if not isinstance(error, TorchsporeError):
        return trace
    last, step = None, trace
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            last = step
        step = step.tb_next
    if last is not None:
        last.tb_next = None
    return trace


def _last_line(trace: TracebackType | None) -> str:
    """`file:line` of the innermost line of the user's program that the interrupt met."""
    from torchspore.base.frames import is_users

    lines = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(trace) if is_users(frame.filename)]
    return lines[-1] if lines else "its start"
