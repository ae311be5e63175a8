"""Notebooks as files: their cells, and what of IPython's own spellings stands in them. Nothing is run here."""
from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIX = ".ipynb"
SKIPPED = frozenset({"matplotlib", "load_ext", "reload_ext", "unload_ext", "autoreload", "config", "pylab", "precision", "colors", "xmode"})
"""Magics that set up the notebook itself: without one there is nothing to set up."""
TRANSPARENT = frozenset({"time", "timeit", "capture", "prun", "explain"})
"""Magics that run the Python behind them."""
_MAGIC = re.compile(r"^(?P<margin>\s*)(?P<target>[\w., ]+=\s*)?(?P<kind>%%|%|!!?)\s*(?P<name>[\w.]*)(?P<rest>.*)$", re.S)


class NotANotebook(ValueError):
    """The file is no notebook; the text says why."""


@dataclass(frozen=True)
class Magic:
    """A line that is IPython's and not Python's: its line in the cell and its name, `%%bash` or `!pip`."""

    line: int
    name: str


@dataclass(frozen=True)
class Cell:
    """A cell of code: its number as `In [n]` shows it after all were run, the text as Python, and what had to be left out of it."""

    number: int
    source: str
    refused: tuple[Magic, ...]


def cells(path: Path) -> list[Cell]:
    """The cells of code, empty ones left out. Raises NotANotebook."""
    try:
        sheet = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotANotebook(f"not a notebook: {error}") from None
    texts = [text for text in _texts(sheet) if text.strip()]
    return [Cell(number, *_as_python(text)) for number, text in enumerate(texts, start=1)]


def _texts(sheet: Any) -> Iterator[str]:
    """The text of each cell of code; until 2015 cells stood in worksheets and called their text `input`."""
    found = sheet.get("cells") if isinstance(sheet, dict) else None
    if found is None and isinstance(sheet, dict) and isinstance(sheet.get("worksheets"), list):
        found = [cell for page in sheet["worksheets"] if isinstance(page, dict) for cell in page.get("cells", ())]
    if not isinstance(found, list):
        raise NotANotebook("not a notebook: it has no cells")
    for cell in found:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            text = cell.get("source", cell.get("input", ""))
            yield "".join(map(str, text)) if isinstance(text, list) else str(text)


def _as_python(text: str) -> tuple[str, tuple[Magic, ...]]:
    """The cell as Python with as many lines: a magic becomes what it runs, or `pass`."""
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
            break                                  # what is wrong else, Python says when the cell is compiled
        lines[wrong] = _line(match, wrong + 1, refused)
    return "\n".join(lines), tuple(refused)


def _line(match: re.Match[str], number: int, refused: list[Magic]) -> str:
    """What stands in the place of a magic."""
    margin, kind, name = match["margin"], match["kind"], match["name"]
    if kind == "%" and name in TRANSPARENT and name != "explain":
        statement = re.sub(r"^(\s*-\w+(\s+\d+)?)+\s+", "", match["rest"]).strip()
        return f"{margin}{match['target'] or ''}{statement}" if statement else f"{margin}pass"
    if kind != "%" or (name not in SKIPPED and name != "explain"):
        refused.append(Magic(number, f"{kind}{name}"))
    return f"{margin}pass"


def _wrong_line(text: str) -> int | None:
    """The line, from 0, at which Python can't read on; None where it can."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return (error.lineno or 1) - 1 if error.lineno and error.lineno <= text.count("\n") + 1 else None
    except ValueError:
        return None
    return None
