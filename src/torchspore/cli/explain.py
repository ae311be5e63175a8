"""The output of `torchspore explain`: the value, the source and the outcome of each option."""

from __future__ import annotations

import sys
from typing import TextIO

from torchspore.cli import output, ranks
from torchspore.context.table import HEADS, Row, plain, rows
from torchspore.translations import translate

__all__ = ["rows", "show", "table"]


def show() -> None:
    """Print the table to the program's standard output."""
    output.replace_unprintable()
    table(sys.stdout)


def table(stream: TextIO) -> None:
    """Print the options, then the sections that other layers noted; with rich on a terminal, otherwise as plain columns.

    If several processes ran the program, rank 0 marks differences in the others.
    """
    local = ranks.local_report()
    theirs = ranks.others(local)
    table_rows, notes = ranks.compare_rows(local.rows, theirs), ranks.notes(local.notes, theirs)
    if theirs:
        print(ranks.summary(theirs), file=stream)
    if not table_rows:
        print(translate("No option of the context was set; all are at their defaults."), file=stream)
    if stream.isatty():
        _rich(table_rows, notes, stream)
    else:
        plain(table_rows, stream, notes)


def _rich(table_rows: list[Row], notes: dict[str, list[str]], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    rich_table = Table(*map(translate, HEADS))
    for row in table_rows:
        rich_table.add_row(*(Text(cell) for cell in row))
    if table_rows:
        console.print(rich_table)
    for section, lines in notes.items():
        console.print(Text(f"\n{section}", style="bold"))
        for note in lines:
            console.print(Text(f"  {note}"))
