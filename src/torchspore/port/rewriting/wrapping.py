"""Breaks the lines that a port makes too long."""
from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass

WIDTH = 120
_SHORT = 40
"""Shorter brackets stay in one line."""
_F_STRINGS = {getattr(tokenize, name, -1): step for name, step in (("FSTRING_START", 1), ("FSTRING_END", -1))}


@dataclass
class _Break:
    """A comma after which a line may end."""

    depth: int
    column: int
    """Where the rest of the line begins."""
    indent: str
    """The white space before the rest."""
    bracket: tuple[int, int]


def wrap_long_lines(code: str, original: set[str]) -> str:
    """Break the lines of code after commas in brackets, the outer ones first; the lines of the original stay as they are."""
    skipped = set(original)
    for _ in range(1000):
        lines = code.split("\n")
        rows = [row for row, line in enumerate(lines, 1) if len(line) > WIDTH and line not in skipped]
        if not rows:
            break
        line = lines[rows[0] - 1]
        breaks = [each for each in _breaks(code, lines, rows[0]) if each.column <= WIDTH + 1]
        if not breaks:
            skipped.add(line)
            continue
        best = min(breaks, key=lambda each: (each.depth, -each.column))
        lines[rows[0] - 1 : rows[0]] = [line[: best.column].rstrip(), best.indent + line[best.column :].lstrip()]
        if lines[rows[0]] == line:
            break
        code = "\n".join(lines)
    return code


def _breaks(code: str, lines: list[str], row: int) -> list[_Break]:
    """Return the commas in brackets of a line after which something follows in it."""
    breaks: list[_Break] = []
    stack: list[tuple[int, int]] = []
    names: list[bool] = []
    """Of each bracket whether the variables of a comprehension or a lambda are read."""
    in_text = 0
    line = lines[row - 1]
    lead = line[: len(line) - len(line.lstrip())]
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.start[0] > row:
            break
        in_text += _F_STRINGS.get(token.type, 0)
        if names and token.string in ("for", "lambda", "in", ":"):
            names[-1] = token.string in ("for", "lambda")
        if token.type != tokenize.OP or in_text:
            continue
        if token.string in "([{":
            stack.append(token.start)
            names.append(False)
        elif token.string in ")]}":
            opened, column = stack.pop()
            names.pop()
            if opened == row == token.start[0] and token.start[1] - column < _SHORT:
                breaks = [each for each in breaks if each.bracket != (opened, column)]
        elif token.string == "," and stack and not names[-1] and token.start[0] == row and line[token.end[1] :].strip():
            opened, column = stack[-1]
            head = lines[opened - 1]
            is_aligned = head[column + 1 :].strip()
            start = head[: len(head) - len(head.lstrip())]
            indent = start + " " * (column + 1 - len(start)) if is_aligned else lead
            breaks.append(_Break(len(stack), token.end[1], indent, stack[-1]))
    return breaks
