"""Catalogues of translations: the subset of gettext's .po format that `tools/messages.py` writes and translators' editors keep."""
from __future__ import annotations

import json
import re
from pathlib import Path

_LINES = r'((?:"[^\n]*"(?:\n|\Z))+)'
_ENTRY = re.compile(f"^msgid {_LINES}msgstr {_LINES}", re.M)


def path_of(language: str) -> Path:
    """Return the file of a language."""
    return Path(__file__).with_name(f"{language}.po")


def read(language: str) -> dict[str, str]:
    """Return the translation of each English text; texts without a translation are left out."""
    messages = parse(path_of(language).read_text(encoding="utf-8"))
    return {text: translation for text, translation in messages.items() if text and translation}


def parse(content: str) -> dict[str, str]:
    """Return msgid -> msgstr, also for empty translations; the header is the translation of the empty text."""
    return {_unquote(text): _unquote(translation) for text, translation in _ENTRY.findall(content)}


def _unquote(quoted: str) -> str:
    """Return the text of one or several lines in quotes; the escapes of .po files are those of JSON."""
    if "\\" in quoted:
        return "".join(json.loads(line) for line in quoted.splitlines())
    return quoted.strip()[1:-1].replace('"\n"', "")


def comment_of(content: str) -> str:
    """Return the text before the first entry: the comment of a catalogue, with the empty line after it."""
    return content.partition('msgid "')[0] if content.startswith("#") else ""


def format_entry(text: str, translation: str) -> str:
    """Return the lines of an entry."""
    return f"msgid {_quote(text)}\nmsgstr {_quote(translation)}\n"


def _quote(text: str) -> str:
    """Return a text in quotes; one with line breaks on a line for each of its lines."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return json.dumps(text, ensure_ascii=False)
    return "\n".join(['""', *(json.dumps(line, ensure_ascii=False) for line in lines)])
