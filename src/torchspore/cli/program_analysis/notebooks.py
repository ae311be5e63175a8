"""Notebooks as files: their cells, and IPython's syntax in them. Nothing is run here."""
from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchspore.translations import translate

SUFFIX = ".ipynb"
SKIPPED = frozenset({"matplotlib", "load_ext", "reload_ext", "unload_ext", "autoreload", "config", "pylab", "precision", "colors", "xmode"})
"""Magics that set up the notebook itself: outside a notebook they have no effect."""
TRANSPARENT = frozenset({"time", "timeit", "capture", "prun", "explain"})
"""Magics that run the Python code after them."""
_MAGIC = re.compile(r"^(?P<margin>\s*)(?P<target>[\w., ]+=\s*)?(?P<kind>%%|%|!!?)\s*(?P<name>[\w.]*)(?P<rest>.*)$", re.S)


class NotANotebook(ValueError):
    """The file is not a notebook; the text gives the reason."""


@dataclass(frozen=True)
class Magic:
    """A line of IPython's syntax: its line in the cell and its name, `%%bash` or `!pip`."""

    line: int
    name: str


@dataclass(frozen=True)
class Cell:
    """A code cell: its number as in `In [n]` after running all, its text as Python, and the magics that were removed."""

    number: int
    source: str
    refused: tuple[Magic, ...]


def cells(path: Path) -> list[Cell]:
    """Return the code cells that are not empty. Raise NotANotebook."""
    try:
        sheet = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotANotebook(translate("not a notebook: {error}").format(error=error)) from None
    texts = [text for text in _texts(sheet) if text.strip()]
    return [Cell(number, *_as_python(text)) for number, text in enumerate(texts, start=1)]


def _texts(sheet: Any) -> Iterator[str]:
    """Yield the text of each code cell; until 2015 cells were in worksheets and called their text `input`."""
    cell_list = sheet.get("cells") if isinstance(sheet, dict) else None
    if cell_list is None and isinstance(sheet, dict) and isinstance(sheet.get("worksheets"), list):
        cell_list = [cell for page in sheet["worksheets"] if isinstance(page, dict) for cell in page.get("cells", ())]
    if not isinstance(cell_list, list):
        raise NotANotebook(translate("not a notebook: it has no cells"))
    for cell in cell_list:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            text = cell.get("source", cell.get("input", ""))
            yield "".join(map(str, text)) if isinstance(text, list) else str(text)


def _as_python(text: str) -> tuple[str, tuple[Magic, ...]]:
    """Return the cell as Python with the same number of lines: a magic becomes the code that it runs, or `pass`."""
    lines = text.split("\n")
    refused: list[Magic] = []
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    head = _MAGIC.match(lines[first])
    if head is not None and head["kind"] == "%%":
        lines[first] = ""
        if head["name"] not in TRANSPARENT:
            return "", (Magic(first + 1, f"%%{head['name']}"),)
    for _ in range(len(lines)):
        wrong = _wrong_line("\n".join(lines))
        match = _MAGIC.match(lines[wrong]) if wrong is not None else None
        if wrong is not None and match is None and lines[wrong].rstrip().endswith("?"):
            lines[wrong] = ""                      # `Tensor?` shows help
            continue
        if wrong is None or match is None:
            break                                  # Python reports other errors when the cell is compiled
        lines[wrong] = _line(match, wrong + 1, refused)
    return "\n".join(lines), tuple(refused)


def _line(match: re.Match[str], number: int, refused: list[Magic]) -> str:
    """Return the replacement of a magic."""
    margin, kind, name = match["margin"], match["kind"], match["name"]
    if kind == "%" and name in TRANSPARENT and name != "explain":
        statement = re.sub(r"^(\s*-\w+(\s+\d+)?)+\s+", "", match["rest"]).strip()
        return f"{margin}{match['target'] or ''}{statement}" if statement else f"{margin}pass"
    if kind != "%" or (name not in SKIPPED and name != "explain"):
        refused.append(Magic(number, f"{kind}{name}"))
    return f"{margin}pass"


def _wrong_line(text: str) -> int | None:
    """Return the line, counted from 0, at which Python's parser fails; None if it does not."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return (error.lineno or 1) - 1 if error.lineno and error.lineno <= text.count("\n") + 1 else None
    except ValueError:
        return None
    return None
