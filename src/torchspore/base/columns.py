"""Text in the columns of a terminal, on which a Chinese character is two columns wide."""
from __future__ import annotations

import re
import unicodedata

_WIDE = ("W", "F")
_PIECE = re.compile(r"[ \t\n]+|[^\s\u2e80-\uffff]+|[\u2e80-\uffff]")
"""White space, a word, or one character of a script without spaces."""
_NOT_FIRST = frozenset("，。、；：！？）》」』”’…")
_NOT_LAST = frozenset("（《「『“‘")
"""Punctuation that never begins a line, and punctuation that never ends one."""


def width(text: str) -> int:
    """Return the number of columns of a text."""
    return len(text) if text.isascii() else sum(2 if unicodedata.east_asian_width(character) in _WIDE else 1 for character in text)


def pad(text: str, columns: int) -> str:
    """Append spaces until the text has this number of columns."""
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int) -> list[str]:
    """Break a text into lines of at most this number of columns, between words and between Chinese characters."""
    lines: list[str] = []
    line = ""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            line += " " if line else ""
        elif line and width(line) + width(piece) > columns and piece not in _NOT_FIRST:
            opening = line[-1] if line[-1] in _NOT_LAST and len(line) > 1 else ""
            lines.append(line.removesuffix(opening).rstrip())
            line = opening + piece
        else:
            line += piece
    return [*lines, line.rstrip()] if line.strip() else lines or [""]
