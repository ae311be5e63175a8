"""What `torchspore explain` prints: of each option what its value was, where it came from, and what it did."""

from __future__ import annotations

import sys
from typing import TextIO

from torchspore.base.frames import near
from torchspore.base.text import short
from torchspore.context import effects
from torchspore.context.option import Option
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE

Row = tuple[str, str, str, str]
HEADS = ("option", "value", "from", "outcome")


def show() -> None:
    """Prints the table to the program's standard output."""
    table(sys.stdout)


def table(stream: TextIO) -> None:
    """Prints the options, then the sections that other layers noted; with rich on a terminal, as plain columns elsewhere."""
    found = rows()
    if not found:
        print("No option of the context was set; all are at their defaults.", file=stream)
    if stream.isatty():
        _rich(found, stream)
    else:
        _plain(found, stream)


def rows() -> list[Row]:
    """Gives (option, value, source, outcome) of each option that was set, or that has acted."""
    found = []
    for key, option in OPTIONS.items():
        if option.parent in OPTIONS:
            continue
        if STORE.source(key)[0] != "default" or effects.has_outcome(key):
            found.append((key, short(STORE.get(key)), _source(option), _outcome(option)))
    return found


def _source(option: Option) -> str:
    source, setting = STORE.source(option.key)
    where = near(setting.where) if setting is not None and setting.where else ""
    if source == "forced environment":
        asked = STORE.asked(option.key)
        told = f"; the program asks for {short(asked.written)}" if asked is not None and setting and asked.value != setting.value else ""
        return f"{where}, forced{told}"
    return where or source


def _outcome(option: Option) -> str:
    outcome = effects.outcome_of(option, STORE.get(option.key))
    return str(outcome) if outcome is not None else "kept; nothing that looks at it has run"


def _plain(found: list[Row], stream: TextIO) -> None:
    lines = [HEADS, *found] if found else []
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(3)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line[:3], widths, strict=True)]
        print("  ".join([*cells, line[3]]).rstrip(), file=stream)
    for section, notes in effects.notes().items():
        print(f"\n{section}", file=stream)
        for note in notes:
            print(f"  {note}", file=stream)


def _rich(found: list[Row], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    shown = Table(*HEADS)
    for row in found:
        shown.add_row(*(Text(cell) for cell in row))
    if found:
        console.print(shown)
    for section, notes in effects.notes().items():
        console.print(Text(f"\n{section}", style="bold"))
        for note in notes:
            console.print(Text(f"  {note}"))
