#!/usr/bin/env python3
"""Collects the messages that are shown in the user's language, and compares them with the translations.

    tools/messages.py            writes new messages into src/torchspore/translations/zh.po, and removes those that no code uses
    tools/messages.py --check    fails if a message has no translation, an entry is stale, or placeholders differ

A message is a literal text in one of the calls in MARKERS, in a call of `tr` of a page's script, of a command's help, or of a context
option's declaration. The literal texts in the calls in CHECKS, of hundreds of checks of arguments, may have a translation; without one
they are shown in English.
"""
from __future__ import annotations

import argparse
import ast
import itertools
import os
import re
import string
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/torchspore"
sys.path.insert(0, str(ROOT / "src"))

from torchspore.translations import LANGUAGES, VARIABLE, catalogue  # noqa: E402
from torchspore.translations.refusals import EXPECTED, GOT, HINT  # noqa: E402

MARKERS = {
    "translate": None, "translatable": None, "applied": "Outcome", "no_effect": "Outcome", "refused": "Outcome", "idle": "Outcome",
    "note": "effects", "Refusal": None, "_needs_values": None, "refuse": "", "ends_trace": "running_trace", "_reason": None,
}
"""Functions whose literal texts are translated when they are shown, and the object or module whose attribute they are; "" for any."""
CHECKS = {"message": 1, "with_type": 0, "with_hint": 1, "check_type": 4}
"""Functions that translate what was expected, and its position among their arguments; each may have a hint by keyword."""
HEADER = "Content-Type: text/plain; charset=UTF-8\nLanguage: {language}\n"
_FIELD = re.compile(r"\w*")
"""The name of a placeholder; the help of `torchspore check` has braces of JSON."""
_PERCENT = re.compile(r"%\(\w+\)\w|%%|%\d")


def messages_of_code(tree: ast.AST) -> Iterator[str]:
    """Yield the literal texts in calls of MARKERS. Raise ValueError for an f-string, whose text is another one in each call."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name not in MARKERS or MARKERS[name] not in ("", getattr(owner, "attr", getattr(owner, "id", None))):
            continue
        for part in _parts(node.args):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value:
                yield part.value
            elif isinstance(part, ast.JoinedStr) and name in ("translate", "translatable"):
                raise ValueError(f"line {part.lineno}: an f-string has no translation; write translate(...).format(...)")


def _parts(arguments: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yield the arguments; of a conditional expression both values."""
    for argument in arguments:
        if isinstance(argument, ast.IfExp):
            yield from _parts((argument.body, argument.orelse))
        else:
            yield argument


def messages_of_checks(tree: ast.AST) -> Iterator[str]:
    """Yield the literal texts in calls of CHECKS."""
    for node in ast.walk(tree):
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in CHECKS:
            at = CHECKS[name]
            arguments = [*node.args[at:at + 1], *(keyword.value for keyword in node.keywords if keyword.arg in ("expected", "hint"))]
            for part in _parts(arguments):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
                elif isinstance(part, ast.JoinedStr) and isinstance(part.values[0], ast.Constant):
                    head, got, _ = str(part.values[0].value).partition(", got ")          # f"a Cell, got {kind}"
                    yield from [head] * bool(got)


def messages_of_refusals(tree: ast.AST) -> Iterator[str]:
    """Yield the templates of errors that code writes in English: what was expected, and the hint; see translations/refusals.py."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            for part in _parts(node.exc.args[:1]):
                sentence, _, hint = _template(part).partition(HINT)
                _, is_expected, expected = sentence.partition(EXPECTED)
                if is_expected:
                    head, _, actual = expected.partition(". ")[0].removesuffix(".").partition(GOT)
                    yield from (_renumbered(EXPECTED + head), *([_renumbered(actual)] if "{" in actual else []))
                    yield from [_renumbered(hint.removesuffix("."))] * bool(hint)


def _template(node: ast.expr) -> str:
    """Return a text, of an f-string with its values as fields; "" for anything else."""
    if isinstance(node, ast.Constant):
        return node.value.replace("{", "{{").replace("}", "}}") if isinstance(node.value, str) else ""
    return "".join("{}" if isinstance(part, ast.FormattedValue) else _template(part) for part in getattr(node, "values", ()))


def _renumbered(template: str) -> str:
    """Return a template with its fields numbered from 0; one without fields as the text that it stands for."""
    numbers = itertools.count()
    text = re.sub(r"(?<!\{)\{\}", lambda _: f"{{{next(numbers)}}}", template)
    return text if text != template else template.replace("{{", "{").replace("}}", "}")


def messages_of_parser(parser: Any) -> Iterator[str]:
    """Yield the texts of a command's help, and its hints."""
    yield parser.description
    yield from getattr(parser, "hints", {}).values()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (pseudo.help for pseudo in action._choices_actions)
            for inner in action.choices.values():
                yield from messages_of_parser(inner)
        if action.help:
            yield action.help


def messages_of_option(option: Any) -> Iterator[str]:
    """Yield the texts of an option or an alias."""
    yield option.doc
    yield from (getattr(option, "idle", ""), getattr(option, "experimental", ""))
    yield from getattr(option, "fixed_outcomes", {}).values()
    kind = getattr(option, "kind", None)
    yield from (getattr(kind, "description", ""), getattr(kind, "unit", ""))


def collect() -> dict[str, str]:
    """Return each message with the file or command that contains it, in the order of files."""
    os.environ.pop(VARIABLE, None)
    from torchspore.html_pages.page import literals

    messages = _of_files(messages_of_code)
    for path in sorted(SOURCE.rglob("*.js")):
        for text in literals(path.read_text(encoding="utf-8")):
            messages.setdefault(text, path.relative_to(ROOT).as_posix())
    from torchspore.cli import grammar
    from torchspore.cli.main import COMMANDS
    from torchspore.context.options import ALIASES, OPTIONS

    for name, description in COMMANDS.items():
        for text in (description, *messages_of_parser(grammar.command_parser(name))):
            if text:
                messages.setdefault(text, f"torchspore {name} --help")
    for key, option in {**OPTIONS, **ALIASES}.items():
        for text in messages_of_option(option):
            if text:
                messages.setdefault(text, f"option {key}")
    return messages


def _of_files(read: Callable[[ast.AST], Iterator[str]]) -> dict[str, str]:
    """Return the texts of the code, each with its first file."""
    messages: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        try:
            for text in read(ast.parse(path.read_text(encoding="utf-8"))):
                messages.setdefault(text, name)
        except ValueError as error:
            raise SystemExit(f"{name}: {error}") from None
    return messages


def collect_checks() -> dict[str, str]:
    """Return what checks of arguments expect, and the templates of other errors, each with its file; a translation is optional."""
    return {**_of_files(messages_of_refusals), **_of_files(messages_of_checks)}


def placeholders(text: str) -> list[str]:
    """Return the parts that a translation must also contain: `{name}`, `%(default)s`, `%0`, and commands and names in backquotes."""
    try:
        parts = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError:                     # a text with braces that no code formats
        parts = []
    fields = [
        f"{{{name or number}!{conversion}:{form}}}" for number, (name, form, conversion) in enumerate(parts) if _FIELD.fullmatch(name)
    ]
    return sorted([*fields, *_PERCENT.findall(text), *re.findall("`[^`]*`", text)])


def problems(messages: Mapping[str, str], translations: Mapping[str, str], checks: Mapping[str, str]) -> list[str]:
    """Describe the differences between the messages of the code and a catalogue. A text of `checks` needs no translation."""
    lines = [f"{origin}: no translation of {text!r}" for text, origin in messages.items() if not translations.get(text)]
    lines += [f"no code uses {text!r}" for text in translations if text and text not in messages and text not in checks]
    for text, translation in translations.items():
        if text and translation and placeholders(text) != placeholders(translation):
            lines.append(f"the translation has other placeholders: {text!r}: {translation!r}")
        if text and translation and text.count("\n") != translation.count("\n"):
            lines.append(f"the translation has another number of lines: {text!r}")
    return lines


def format_catalogue(language: str, messages: Mapping[str, str], content: str) -> str:
    """Return the text of a catalogue with the messages of the code, an empty translation for each new one, and the comment of `content`."""
    translations = catalogue.parse(content)
    entries = [catalogue.comment_of(content) + catalogue.format_entry("", HEADER.format(language=language))]
    for origin in dict.fromkeys(messages.values()):
        texts = [text for text, other in messages.items() if other == origin]
        entries += [f"#: {origin}\n{catalogue.format_entry(text, translations.get(text, ''))}" for text in texts]
    return "\n".join(entries)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if `--check` finds a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the translations differ from the code")
    arguments = parser.parse_args(words)
    messages, checks = collect(), collect_checks()
    has_problem = False
    for language in LANGUAGES:
        path = catalogue.path_of(language)
        if language == "en":
            continue
        content = path.read_text(encoding="utf-8") if path.exists() else ""
        translations = catalogue.parse(content)
        lines = problems(messages, translations, checks)
        has_problem |= bool(lines)
        for line in lines:
            print(f"{path.relative_to(ROOT)}: {line}")
        if not arguments.check:
            translated = {text: origin for text, origin in checks.items() if translations.get(text)}
            path.write_text(format_catalogue(language, {**translated, **messages}, content), encoding="utf-8")
    return int(has_problem and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
