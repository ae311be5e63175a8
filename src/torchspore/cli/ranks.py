"""What `explain` prints where several processes ran the program: rank 0's table, and under it what is otherwise in the others."""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from torchspore.context import effects
from torchspore.context.table import Row, rows

_SECONDS = 5.0
"""How long rank 0 waits for what the others have to say; one that has failed says nothing."""
_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass
class Said:
    """What one rank has to say: its rows, and the lines of each section."""

    rows: list[Row]
    notes: dict[str, list[str]] = field(default_factory=dict)


def own() -> Said:
    """That of this process."""
    return Said(rows(), effects.notes())


def others(mine: Said) -> dict[int, Said | None]:
    """What the other ranks say, to rank 0; the others tell it and get nothing. None stands for one that has not told."""
    groups: Any = sys.modules.get("torchspore.distributed.comm.groups")        # a program in one process may never have loaded it
    if groups is None or not groups.is_distributed():
        return {}
    store = groups.store()
    try:
        store.set(f"explain/{groups.rank()}", json.dumps(asdict(mine)))
    except (RuntimeError, OSError):
        return {}
    return {rank: _told(store, rank) for rank in range(1, groups.size())} if groups.rank() == 0 else {}


def _told(store: Any, rank: int) -> Said | None:
    try:
        store.wait([f"explain/{rank}"], timedelta(seconds=_SECONDS))
        found = json.loads(store.get(f"explain/{rank}"))
    except (RuntimeError, OSError):
        return None
    return Said([(str(a), str(b), str(c), str(d)) for a, b, c, d in found["rows"]], found["notes"])


def compared(mine: Sequence[Row], theirs: dict[int, Said | None]) -> list[Row]:
    """The rows of rank 0; after each those that other ranks have otherwise, with their ranks in the place of the option."""
    tables = {rank: {row[0]: row[1:] for row in said.rows} for rank, said in theirs.items() if said is not None}
    known = [row[0] for row in mine]
    more = [name for table in tables.values() for name in table if name not in known]
    found: list[Row] = []
    for name in dict.fromkeys([*known, *more]):
        first = next((row[1:] for row in mine if row[0] == name), ("its default", "", ""))
        found.append((name, *first))
        differing: dict[tuple[str, str, str], list[int]] = {}
        for rank, table in tables.items():
            cells = table.get(name, ("its default", "", ""))
            if cells != first:
                differing.setdefault(cells, []).append(rank)
        found += [(f"  ! {_named(ranks)}", *cells) for cells, ranks in differing.items()]
    return found


def notes(mine: dict[str, list[str]], theirs: dict[int, Said | None]) -> dict[str, list[str]]:
    """The sections of rank 0, with the lines that others have and it has not; lines that differ in numbers alone count as one."""
    found = {section: list(lines) for section, lines in mine.items()}
    for section in dict.fromkeys(name for said in theirs.values() if said is not None for name in said.notes):
        have = {_NUMBER.sub("#", line) for line in mine.get(section, [])}
        differing: dict[str, list[int]] = {}
        for rank, said in theirs.items():
            for line in said.notes.get(section, []) if said is not None else []:
                if _NUMBER.sub("#", line) not in have:
                    differing.setdefault(line, []).append(rank)
        if differing:
            found.setdefault(section, []).extend(f"! {_named(ranks)}: {line}" for line, ranks in differing.items())
    return found


def summary(theirs: dict[int, Said | None]) -> str:
    """One line about the ranks; empty where there is one."""
    if not theirs:
        return ""
    silent = [rank for rank, said in theirs.items() if said is None]
    return f"This is rank 0 of {len(theirs) + 1}; what others have otherwise is marked by !" + (
        f"; {_named(silent)} told nothing within {_SECONDS:g} s" if silent else "")


def _named(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:4])) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    return f"rank {shown}"
