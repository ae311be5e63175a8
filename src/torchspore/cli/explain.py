"""What `torchspore explain` prints: of each option what its value was, where it came from, and what it did."""

from __future__ import annotations

import sys
from typing import TextIO

from torchspore.cli import ranks
from torchspore.context.table import HEADS, Row, plain, rows

__all__ = ["rows", "show", "table"]


def show() -> None:
    """Prints the table to the program's standard output."""
    table(sys.stdout)


def table(stream: TextIO) -> None:
    """Prints the options, then the sections that other layers noted; with rich on a terminal, as plain columns elsewhere.

    Where several processes ran the program, rank 0 marks what is otherwise in the others.
    """
    mine = ranks.own()
    theirs = ranks.others(mine)
    found, notes = ranks.compared(mine.rows, theirs), ranks.notes(mine.notes, theirs)
    if theirs:
        print(ranks.summary(theirs), file=stream)
    if not found:
        print("No option of the context was set; all are at their defaults.", file=stream)
    if stream.isatty():
        _rich(found, notes, stream)
    else:
        plain(found, stream, notes)


def _rich(found: list[Row], notes: dict[str, list[str]], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    shown = Table(*HEADS)
    for row in found:
        shown.add_row(*(Text(cell) for cell in row))
    if found:
        console.print(shown)
    for section, lines in notes.items():
        console.print(Text(f"\n{section}", style="bold"))
        for note in lines:
            console.print(Text(f"  {note}"))
