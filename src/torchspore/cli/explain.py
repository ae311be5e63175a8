"""What `torchspore explain` prints: of each option what its value was, where it came from, and what it did."""

from __future__ import annotations

import sys
from typing import TextIO

from torchspore.context import effects
from torchspore.context.table import HEADS, Row, plain, rows


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
        plain(found, stream)


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
