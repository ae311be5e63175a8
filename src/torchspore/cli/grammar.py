"""The common form of every command line: one argparse tree, errors in the form of other messages, exit code 2 for a usage error."""
from __future__ import annotations

import argparse
import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from torchspore.base.columns import width, wrap
from torchspore.base.suggest import VERY_NEAR, closest
from torchspore.base.text import join_choices, with_hint
from torchspore.cli import output
from torchspore.translations import translatable, translate

USAGE_ERROR = 2
PROGRAM = translatable("(script.py | -m module | -c code) [arguments …]")
"""The end of the usage of a command that runs a program."""
_CHOICE = re.compile(r"invalid choice: '?(?P<word>.*?)'?(?:, maybe you meant .*?)? \(choose from (?P<choices>.*)\)")
"""argparse's message about a word that is not among the choices; its quotes differ between versions of Python."""


class UsageError(Exception):
    """A command line that is not valid; its text is the complete message."""


class Ended(SystemExit):
    """The parser has ended the command: `code` is 0 after `--help`, 2 after an error message."""


def returns_exit_code(run: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], int]:
    """Make a command return its exit code if its parser ends it."""
    @functools.wraps(run)
    def wrapped(words: Sequence[str]) -> int:
        try:
            return run(words)
        except Ended as ended:
            return int(ended.code or 0)

    return wrapped


_HEADINGS = (translatable("usage: "), translatable("positional arguments"), translatable("options"),
             translatable("show this help message and exit"))
"""argparse's texts in every help."""


class _Formatter(argparse.HelpFormatter):
    """Translates all texts, wraps descriptions, and prints the lines of examples unchanged."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, translate(_HEADINGS[0]) if prefix is None else prefix)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        text = super()._format_usage(usage, actions, groups, prefix)
        wider = width(prefix or "") - len(prefix or "")               # argparse indents the further lines by the number of characters
        return text if not wider else text.rstrip("\n").replace("\n", "\n" + " " * wider) + "\n\n"

    def start_section(self, heading: str | None) -> None:
        super().start_section(translate(heading) if heading else heading)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return translate(action.help) if action.help else action.help

    def _format_text(self, text: str) -> str:
        return super()._format_text(translate(text))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_EXAMPLES):
            return translate(_EXAMPLES) + text.removeprefix(_EXAMPLES)
        return super()._fill_text(text, width, indent) if _is_narrow(text) else "\n".join(indent + line for line in wrap(text, width))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if _is_narrow(text) else wrap(text, width)


_EXAMPLES = translatable("examples:")


def _is_narrow(text: str) -> bool:
    """Return whether each character is one column wide, as argparse assumes."""
    return width(text) == len(text)


class Parser(argparse.ArgumentParser):
    """A parser of a command whose errors name the command, the expected words and a hint.

    `hints` has the hint for an option's errors, by its name; other errors show the first of `examples`. `runs_program` is True for commands
    that run a program: the words after their options belong to the program, as with `python`.
    """

    def __init__(
        self, *, runs_program: bool = False, examples: Sequence[str] = (), hints: Mapping[str, str] | None = None, **settings: Any,
    ) -> None:
        if runs_program:
            settings.setdefault("usage", f"{settings['prog']} {translate('[options]')} {translate(PROGRAM)}")
        if examples:
            settings["epilog"] = _EXAMPLES + "\n" + "\n".join(f"  {example}" for example in examples)
        super().__init__(allow_abbrev=False, formatter_class=_Formatter, **settings)
        self.examples = tuple(examples)
        self.hints = dict(hints or {})
        self.runs_program = runs_program

    def option_names(self) -> list[str]:
        """Return the names of the options, such as `--device`."""
        return [name for action in self._actions for name in action.option_strings]

    def error(self, message: str) -> NoReturn:
        """Print the error in torchspore's form to stderr, and exit with code 2."""
        print(self.describe_error(message), file=sys.stderr)
        raise Ended(USAGE_ERROR)

    def print_help(self, file: Any = None) -> None:
        output.replace_unprintable()
        super().print_help(file)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End the command."""
        if message:
            print(message, end="", file=sys.stderr)
        raise Ended(status)

    def describe_error(self, message: str) -> str:
        """Return the text for one of argparse's messages."""
        hint = (translate("write `{command}`").format(command=self.examples[0]) if self.examples
                else translate("`{command} --help` describes the command").format(command=self.prog))
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            return self._unknown(unknown.split()[0], hint)
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            return with_hint(translate("{subject}: expected {expected}.").format(subject=self.prog, expected=missing), hint)
        if not message.startswith("argument "):
            return with_hint(f"{self.prog}: {message.removesuffix('.')}.", hint)
        argument, _, problem = message.removeprefix("argument ").partition(": ")
        choice = _CHOICE.fullmatch(problem)
        if choice:
            choices = [word.strip("' ") for word in choice["choices"].split(",")]
            near = closest(choice["word"], choices)
            subject = self.prog if " | " in argument or not argument.startswith("-") else f"{self.prog} {argument}"
            hint = translate("write `{command}`").format(command=f"{subject} {near}") if near else hint
            subject, expected = f"{subject} {choice['word']}", translate(", ").join(choices)
            return with_hint(translate("{subject}: expected {expected}.").format(subject=subject, expected=expected), hint)
        name = next((name for name in argument.split("/") if name in self.hints), argument.split("/")[-1])
        if problem == "expected one argument":
            problem = translate(": expected a value after it")
        elif not problem.startswith("invalid "):
            problem = " " + problem
        else:
            problem = ": " + problem
        return with_hint(f"{self.prog} {name}{problem.removesuffix('.')}{translate('.')}", translate(self.hints.get(name, hint)))

    def _unknown(self, word: str, hint: str) -> str:
        if not word.startswith("-"):
            return with_hint(translate("{command}: unexpected extra argument.").format(command=f"{self.prog} {word}"), hint)
        near = closest(word.partition("=")[0], self.option_names(), VERY_NEAR)
        if near is None and self.runs_program:
            hint = translate("write the program's own options after its name")
        text = translate("{command}: no such option.").format(command=f"{self.prog} {word.partition('=')[0]}")
        return with_hint(text, translate("write {word}").format(word=near) if near else hint)


def split_program(parser: Parser, words: Sequence[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """Parse the options in front of the program; return them, and the program with its arguments."""
    takes_value = {name: action.nargs != 0 for action in parser._actions for name in action.option_strings}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "-c", "-"):
        name, separator, _ = words[at].partition("=")
        at += 2 if not separator and takes_value.get(name, False) else 1
    return parser.parse_args(list(words[:at])), tuple(words[at:])


def command_parser(name: str) -> Parser:
    """Return the parser of a command, whose module defines `parser()`; `explain` is a form of `run`."""
    module = importlib.import_module(f"torchspore.cli.{'run' if name == 'explain' else name}")
    parser: Parser = module.parser("torchspore explain") if name == "explain" else module.parser()
    return parser


def tree(commands: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the parser of the complete command line, for shell completion: each of `commands` is a subcommand with its description."""
    root = argparse.ArgumentParser(prog="torchspore", description=translatable("Runs unmodified MindSpore programs on PyTorch."))
    root.add_argument("--version", action="store_true", help=translatable("prints the version"))
    actions = root.add_subparsers(metavar="COMMAND")
    for name, description in commands.items():
        command = command_parser(name)
        subparser = actions.add_parser(name, help=translate(description), parents=[command], add_help=False)
        if command.runs_program:
            subparser.add_argument("program", nargs="*", help=translate("the program and its arguments"))
    return root


def type_error(subject: str, expected: str) -> argparse.ArgumentTypeError:
    """Return the error for a word of another type; the parser adds the command and the hint."""
    text = translate("{subject}: expected {expected}.").format(subject=subject, expected=expected)
    return argparse.ArgumentTypeError(text.removesuffix(translate(".")))


def number(low: float, high: float, kind: Callable[[str], Any] = int) -> Callable[[str], Any]:
    """Return a type for numbers from `low` to `high`."""
    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            form = translate("a number from {low:g} to {high:g}") if high < float("inf") else translate("a number from {low:g}")
            raise type_error(f"{text:.60}", form.format(low=low, high=high))
        return value

    return convert


def positive(text: str) -> float:
    """Convert a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise type_error(f"{text:.60}", translate("a number above 0"))
    return value


def output_file(text: str) -> str:
    """Convert the path of a file to write, in an existing folder; return it absolute."""
    path = os.path.abspath(text) if text else ""
    if not text or not os.path.isdir(os.path.dirname(path)) or os.path.isdir(path):
        raise type_error(f"{text:.200}", translate("a file in an existing folder"))
    return path


def word_of(*words: str) -> Callable[[str], str]:
    """Return a type for one of these words, in any case."""
    def convert(text: str) -> str:
        for word in words:
            if text.lower() == word.lower():
                return word
        raise type_error(f"{text:.60}", join_choices(words))

    return convert
