"""The table of `explain` for several processes: rank 0's rows, each followed by differing rows of the other ranks."""
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
from torchspore.distributed.comm import rank_lists
from torchspore.translations import translate

_SECONDS = 5.0
"""How long rank 0 waits for the others; a rank that has failed does not report."""
_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass
class RankReport:
    """The report of one rank: its rows, and the lines of each section."""

    rows: list[Row]
    notes: dict[str, list[str]] = field(default_factory=dict)


def local_report() -> RankReport:
    """Return the report of this process."""
    return RankReport(rows(), effects.notes())


def others(mine: RankReport) -> dict[int, RankReport | None]:
    """Return the reports of the other ranks on rank 0; the others send theirs and get {}. None means no report arrived."""
    groups: Any = sys.modules.get("torchspore.distributed.comm.groups")        # a single-process program may not have loaded it
    if groups is None or not groups.is_distributed():
        return {}
    store = groups.store()
    try:
        store.set(f"explain/{groups.rank()}", json.dumps(asdict(mine)))
    except (RuntimeError, OSError):
        return {}
    return {rank: _read_report(store, rank) for rank in range(1, groups.size())} if groups.rank() == 0 else {}


def _read_report(store: Any, rank: int) -> RankReport | None:
    try:
        store.wait([f"explain/{rank}"], timedelta(seconds=_SECONDS))
        data = json.loads(store.get(f"explain/{rank}"))
    except (RuntimeError, OSError):
        return None
    return RankReport([(str(a), str(b), str(c), str(d)) for a, b, c, d in data["rows"]], data["notes"])


def compare_rows(mine: Sequence[Row], theirs: dict[int, RankReport | None]) -> list[Row]:
    """Return the rows of rank 0, each followed by differing rows of other ranks with the ranks in place of the option."""
    tables = {rank: {row[0]: row[1:] for row in report.rows} for rank, report in theirs.items() if report is not None}
    names = [row[0] for row in mine]
    more = [name for table in tables.values() for name in table if name not in names]
    result: list[Row] = []
    absent = (translate("its default"), "", "")
    for name in dict.fromkeys([*names, *more]):
        first = next((row[1:] for row in mine if row[0] == name), absent)
        result.append((name, *first))
        differing: dict[tuple[str, str, str], list[int]] = {}
        for rank, table in tables.items():
            cells = table.get(name, absent)
            if cells != first:
                differing.setdefault(cells, []).append(rank)
        result += [(f"  ! {rank_lists.describe(ranks)}", *cells) for cells, ranks in differing.items()]
    return result


def notes(mine: dict[str, list[str]], theirs: dict[int, RankReport | None]) -> dict[str, list[str]]:
    """Return the sections of rank 0, with additional lines of other ranks; lines that differ only in numbers count as equal."""
    sections = {section: list(lines) for section, lines in mine.items()}
    for section in dict.fromkeys(name for report in theirs.values() if report is not None for name in report.notes):
        have = {_NUMBER.sub("#", line) for line in mine.get(section, [])}
        differing: dict[str, list[int]] = {}
        for rank, report in theirs.items():
            for line in report.notes.get(section, []) if report is not None else []:
                if _NUMBER.sub("#", line) not in have:
                    differing.setdefault(line, []).append(rank)
        if differing:
            sections.setdefault(section, []).extend(f"! {rank_lists.describe(ranks)}: {line}" for line, ranks in differing.items())
    return sections


def summary(theirs: dict[int, RankReport | None]) -> str:
    """Return one line about the ranks; "" for a single process."""
    if not theirs:
        return ""
    silent = [rank for rank, report in theirs.items() if report is None]
    text = translate("This is rank 0 of {count}; differences in others are marked by !").format(count=len(theirs) + 1)
    late = translate("; {ranks} did not report within {seconds:g} s")
    return text + late.format(ranks=rank_lists.describe(silent), seconds=_SECONDS) if silent else text
