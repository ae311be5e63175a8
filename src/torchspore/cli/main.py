"""`torchspore COMMAND ...`: find the command and pass it the rest of the line."""
from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import torchspore
from torchspore.base.columns import pad, width
from torchspore.base.suggest import closest
from torchspore.base.text import with_hint
from torchspore.cli import output
from torchspore.cli.grammar import USAGE_ERROR
from torchspore.translations import select, translate

COMMANDS = {
    "run": "runs a MindSpore program on PyTorch",
    "explain": "runs a program, then prints what each context option did",
    "context": "lists the context options, or describes one",
    "workers": "runs a program with several processes on this machine",
    "msrun": "the same with the arguments of MindSpore's msrun, also on several machines",
    "port": "writes PyTorch source for the Cells of a file, and compares both",
    "plan": "shows how a program would be split over N devices, and the cost",
    "calibrate": "measures the speeds of this machine, for plans",
    "tune": "searches for faster forms of the graphs that a program has saved",
    "ckpt": "shows, compares and converts checkpoints, also to torch and back",
    "diff": "compares two dumps of operators and names the first one that differs",
    "rdr": "describes what happened to a program, from the recorder's files",
    "replay": "runs a recorded step of a program again, and compares the bits",
    "trace": "shows a profiler's trace as one page",
    "env": "describes this machine and its installed packages, for a bug report",
    "doctor": "runs small computations on each device and checks the results",
    "check": "lists the names and options that programs use and that are missing here",
    "completion": "prints a script that completes commands and options in a shell",
}


def usage() -> str:
    """The text of `torchspore --help`."""
    lines = [f"  {name:11}{translate(text)}" for name, text in COMMANDS.items()]
    same = translate("(the same as `torchspore run`)")
    return "\n".join(
        [
            translate("torchspore {version}: runs unmodified MindSpore programs on PyTorch").format(version=torchspore.__version__),
            "",
            f"{translate('usage: ')}torchspore COMMAND …",
            f"{pad('', width(translate('usage: ')))}python -m torchspore [script.py | -m module | -c code] …    {same}",
            "",
            *lines,
            "",
            translate("`torchspore COMMAND --help` describes its options."),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (the process's by default) and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    select()                           # reports an unknown language before the output
    if words[:1] not in (["run"], ["explain"]):
        output.replace_unprintable()   # a program's output is unchanged
    try:
        code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not output.has_lost_reader():
            raise
        return output.discard()
    return code


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else USAGE_ERROR
    if words[0] in ("-V", "--version"):
        print(f"torchspore {torchspore.__version__}")
        return 0
    if words[0] in COMMANDS:
        command, words = words[0], words[1:]
    elif looks_like_program(words[0]):
        command = "run"
    else:
        near = closest(words[0], COMMANDS)
        hint = (translate("write `{command}`").format(command=f"torchspore {near}") if near
                else translate("write `torchspore run {word}` for a program of that name").format(word=words[0]))
        text = translate("torchspore {word}: expected a command ({commands}) or a Python file.")
        print(with_hint(text.format(word=words[0], commands=", ".join(COMMANDS)), hint), file=sys.stderr)
        return USAGE_ERROR
    if command == "explain":           # a form of `run`: the module of the output reads the environment, which --device sets first
        result: int | None = importlib.import_module("torchspore.cli.run").explain(words)
    else:
        result = importlib.import_module(f"torchspore.cli.{command}").run(words)
    return result or 0


def looks_like_program(word: str) -> bool:
    """Return whether the first word is a script, or an option of `run`, and not a mistyped command."""
    return word.startswith("-") or "." in word or "/" in word or os.path.exists(word)
